// ObjectIndex: object -> where it is stored; a local RocksDB that caches the repository's index segments.
// Losing it costs time, never data.
//
// One process at a time has the cache of a repository; another that comes meanwhile, and one that was told
// --no-cache, works with a temporary one that is removed at the end. It also keeps the resume log: what an
// unfinished backup has done already. Thread-safe.
#pragma once

#include "lib/base/result.h"
#include "lib/engine/resume_log.h"
#include "lib/object/object_store.h"
#include "store/index_segment.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace kin::store {

struct Location {
  ObjectId pack;
  BlockRange range;
  std::uint64_t content_size = 0;  // of the block
  ObjectKind kind = ObjectKind::data;
  std::uint64_t size = 0;  // of the object
};

class ObjectIndex : public ResumeLog {
 public:
  // busy if another process has it; a damaged or foreign cache is emptied, not reported. `directory` is made
  // if need be.
  static Result<std::unique_ptr<ObjectIndex>> open(const std::string& directory);
  // In a new directory under `parent` that disappears with the index.
  static Result<std::unique_ptr<ObjectIndex>> open_temporary(const std::string& parent);
  ~ObjectIndex() override;

  // corrupt if the cache is damaged: clear() it and add the segments again.
  Result<std::optional<Location>> locate(const ObjectId& id);
  Result<void> add(const std::string& segment_name, const IndexSegment& segment);
  std::set<std::string> segments() const;  // the names of those added
  bool has_pack(const ObjectId& id) const;
  std::uint64_t approximate_objects() const;
  Result<void> clear();

  // A mark that lives as long as the cache: "clean" after a run that left nothing behind.
  Result<void> set_clean(bool clean);
  bool is_clean() const;

  Result<void> record(const std::vector<std::pair<std::string, Bytes>>& entries) override;
  Result<std::optional<Bytes>> recorded(const std::string& path) override;
  Result<void> clear_records(const std::string& prefix) override;

 private:
  struct State;
  explicit ObjectIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kin::store

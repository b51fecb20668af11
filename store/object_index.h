// ObjectIndex: object -> where it is stored; a local RocksDB that caches the repository's index segments.
// Losing it costs time, never data.
//
// One process at a time has the cache of a repository; another that comes meanwhile, and one that was told
// --no-cache, works with a temporary one that is removed at the end. If its process is killed, the next
// temporary one sweeps it. It also keeps the resume log: what an unfinished backup has done already.
//
// To open a database for writing costs a log, a manifest, threads and several fsyncs. So the cache is opened
// to be read, and again when something is first written. Thread-safe.
#pragma once

#include "lib/base/result.h"
#include "lib/engine/resume_log.h"
#include "lib/object/object_store.h"
#include "store/index_segment.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>

namespace kin::store {

struct Location {
  ObjectId pack;
  BlockRange range;
  std::uint64_t content_size = 0;  // of the block
  ObjectKind kind = ObjectKind::data;
  std::uint64_t size = 0;        // of the object
  std::optional<ObjectId> base;  // of the block
};

class ObjectIndex : public ResumeLog {
 public:
  // busy if another process has it; a damaged or foreign cache is emptied, not reported. `directory` is made
  // if need be.
  static Result<std::unique_ptr<ObjectIndex>> open(const std::string& directory);
  // In a new directory under `parent` that disappears with the index; in memory, where that cannot be had.
  static Result<std::unique_ptr<ObjectIndex>> open_temporary(const std::string& parent);
  ~ObjectIndex() override;

  // When the cache fails, as one does that someone deletes or whose disk is full: goes on, empty, as a
  // temporary index, and the segments must be added again. `why` if this one is in memory already.
  Result<void> retreat(const std::string& parent, const Error& why);

  // corrupt if the cache is damaged: clear() it and add the segments again.
  Result<std::optional<Location>> locate(const ObjectId& id);
  Result<void> add(const std::string& segment_name, const IndexSegment& segment);
  std::set<std::string> segments() const;  // the names of those added
  bool has_pack(const ObjectId& id) const;
  std::vector<IndexPack> packs() const;  // of the segments added
  Result<void> clear();

  // Where it is now; empty if it is in memory.
  std::string directory() const;

  // A mark that lives as long as the cache: "clean" after a run that left nothing behind. Durable on return.
  Result<void> set_clean(bool clean);
  bool is_clean() const;

  // Packs that were seen to be damaged, and may have been mended since. Only a hint, as records are; but
  // clear() and retreat() keep it, since it cannot be read again from the repository.
  void note_damaged(const ObjectId& pack, bool damaged);
  std::vector<ObjectId> damaged_packs() const;
  // When a pack was last read to its end and found sound, in seconds since 1970; none: that is no longer so.
  // Likewise a hint, and kept.
  void note_sound(const ObjectId& pack, std::optional<std::int64_t> seconds);
  std::map<ObjectId, std::int64_t> sound_packs() const;

  // Only a hint: what could not be noted is read again, and is no error. recorded() tells if it cannot look.
  Result<void> record(const std::vector<std::pair<std::string, Bytes>>& entries) override;
  Result<std::optional<Bytes>> recorded(const std::string& path) override;
  Result<void> clear_records(const std::string& prefix) override;

 private:
  struct State;
  explicit ObjectIndex(std::unique_ptr<State> state);
  static Result<std::unique_ptr<State>> temporary_state(const std::string& parent);
  static Result<std::unique_ptr<State>> memory_state();
  Result<void> begin_writing();

  // Held by all who use the database, and alone by who replaces it.
  mutable std::shared_mutex in_use_;
  std::unique_ptr<State> state_;
};

}  // namespace kin::store

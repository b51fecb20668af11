// ContentFiles: contents by their hashes, one file each: what an exchange has deleted or replaced (the
// trash), and what is on its way in. They are in the directory of the state and not in the store, where other
// programs would find them.
//
// A deletion can be undone from the trash; and it keeps contents that the other end may still use as bases.
#pragma once

#include "lib/container/byte_source.h"
#include "lib/sync/item.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kin::sync {

// Every content in a file named by its hash. One thread at a time.
class ContentFiles {
 public:
  // Made when it is first needed.
  explicit ContentFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string path_of(const ObjectId& object) const;
  bool has(const ObjectId& object) const;
  // Whole or absent; on the disk after sync(). busy if it is not this content.
  Result<void> put(const ObjectId& object, ByteSource& content);
  Result<std::unique_ptr<ByteSource>> open(const ObjectId& object) const;  // not_found
  // The size, if what is there is this content: corrupt if a crash left something else.
  Result<std::uint64_t> check(const ObjectId& object) const;

  // Of a content that comes in pieces: how much there is, and more of it. A file that is not yet whole is
  // named otherwise, so that it is never taken for one.
  std::uint64_t part_bytes(const ObjectId& object) const;
  Result<void> add_part(const ObjectId& object, std::uint64_t offset, ByteView bytes);
  // All of it is there: the path, once its hash is right; wrong_base, and it is gone, if not.
  Result<std::string> finish_part(const ObjectId& object);
  std::vector<std::pair<ObjectId, std::uint64_t>> parts() const;

  void remove(const ObjectId& object);
  Result<void> sync();  // all that was put since the last call
  // Files that have not been touched for so many seconds.
  void remove_older_than(std::int64_t seconds);

 private:
  std::string part_path(const ObjectId& object) const;
  Result<void> make();

  const std::string directory_;
  bool made_ = false;
  std::vector<std::string> unsynced_;
};

// A file as a source.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
Result<Bytes> read_all(ByteSource& source, std::uint64_t limit_bytes);  // io if there is more

}  // namespace kin::sync

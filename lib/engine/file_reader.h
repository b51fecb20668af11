// FileReader: a file's bytes as objects, in parts, so that a file of any size passes through bounded memory.
// One instance per thread.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/engine/node_io.h"
#include "lib/engine/walker.h"

#include <functional>
#include <string>
#include <vector>

namespace kin {

struct NewObject {
  ObjectId id;
  Bytes bytes;
};

// Some of a file's content: extents, and the objects that the data extents name, in the same order.
struct FilePart {
  std::vector<Extent> extents;
  std::vector<NewObject> objects;
  std::uint64_t size = 0;
};

class FileReader {
 public:
  using Emit = std::function<bool(FilePart part)>;  // false: stop

  explicit FileReader(const BlockStore& store);

  // Opens and reads the entry's file. The node becomes what the file was when it was opened, and its size
  // what was read. True if the file stayed the same meanwhile. Holes are skipped, not read. cancelled if
  // `emit` gave false.
  Result<bool> read_file(WalkEntry& entry, const Emit& emit);

  // To the end of a pipe.
  Result<std::uint64_t> read_stream(int fd, const std::string& name, const Emit& emit);

 private:
  // From the descriptor's position up to `limit` bytes or the end.
  Result<std::uint64_t> read_run(int fd, std::uint64_t limit, const std::string& path, const Emit& emit);

  const BlockStore& store_;
  OwnerNames names_;
  Bytes buffer_;
};

}  // namespace kin

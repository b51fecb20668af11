// FileReader: a file's bytes as objects, in parts, so that a file of any size passes through bounded memory.
// One instance per thread.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/engine/node_io.h"
#include "lib/engine/walker.h"

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace kin {

struct NewObject {
  ObjectId id;
  Bytes bytes;
  Sketch sketch;
  std::optional<ObjectId> previous;  // what the file had in its place before
  bool is_new = false;               // neither stored nor on its way
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

  // To the end of a pipe. cancelled if `emit` gave false, and soon after `stop`, however idle the pipe is.
  Result<std::uint64_t> read_stream(int fd, const std::string& name, const Emit& emit,
                                    const std::stop_token& stop);

 private:
  using Read = std::function<Result<std::size_t>(std::span<std::uint8_t> into)>;  // less than asked: the end

  // Up to `limit` bytes or the end.
  Result<std::uint64_t> read_run(const Read& read, std::uint64_t limit, const Emit& emit);

  const BlockStore& store_;
  OwnerNames names_;
  Bytes buffer_;
};

}  // namespace kin

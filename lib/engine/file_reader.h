// FileReader: a file's bytes as objects, in parts, so that a file of any size passes through bounded memory.
// One instance per thread.
#pragma once

#include "lib/engine/container_opener.h"
#include "lib/engine/entry_source.h"
#include "lib/engine/file_sample.h"
#include "lib/engine/node_io.h"
#include "lib/engine/segmenter.h"
#include "lib/engine/walker.h"

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace kin {

// Some of a file's content: extents, and objects that they need. Where both are data they are in the same
// order; a container's objects come before its extent.
struct FilePart {
  std::vector<Extent> extents;
  std::vector<NewObject> objects;
  std::uint64_t size = 0;  // bytes of the file that were read for it, and not before

  std::size_t object_bytes() const {
    std::size_t bytes = 0;
    for (const NewObject& object : objects) bytes += object.bytes.size();
    return bytes;
  }
};

class FileReader {
 public:
  using Emit = std::function<bool(FilePart part)>;  // false: stop

  // Containers of these formats are opened. After `stop`, a reading of a pipe or of a container soon ends
  // with cancelled; others when `emit` gives false.
  FileReader(BlockStore& store, const Formats& formats, std::stop_token stop);

  // Opens and reads the entry's file. The node becomes what the file was when it was opened, and its size
  // what was read. True if the file stayed the same meanwhile. Holes are skipped, not read. cancelled if
  // `emit` gave false. `only`: these parts, in order; all else is taken for a hole, unless it is nothing.
  Result<bool> read_file(WalkEntry& entry, const Emit& emit, std::span<const FileSample::Drawn> only = {});

  // To the end of a pipe. cancelled if `emit` gave false, and soon after a stop, however idle the pipe is.
  Result<std::uint64_t> read_stream(int fd, const std::string& name, const Emit& emit);

  // The content of the source's current entry; gives the file's size. What looks like a container goes
  // through a temporary file, since it may have to be read twice. cancelled if `emit` gave false.
  Result<std::uint64_t> read_entry(EntrySource& source, const std::string& path, const Emit& emit);

  // What became of the containers that were met since the last call.
  ContainerCounts take_container_counts() { return std::exchange(counts_, {}); }

 private:
  // Up to `limit` bytes or the end.
  Result<std::uint64_t> read_run(const Segmenter::Read& read, std::uint64_t limit, const Emit& emit);
  // The first run of an entry, which may be all of it and a container.
  Result<std::uint64_t> read_first_run(EntrySource& source, const std::string& path, const Emit& emit,
                                       std::optional<std::uint64_t>& next_run);
  // A container that is not opened, if it is one.
  Result<void> count_sparse(int fd, const std::string& path);
  // The file's size, if it is a container and opens. Otherwise the file stands where it stood. `before`: its
  // earlier version.
  Result<std::optional<std::uint64_t>> read_container(int fd, std::uint64_t limit, const std::string& path,
                                                      const std::optional<Extent>& before, const Emit& emit);

  const std::stop_token stop_;
  Segmenter segmenter_;
  ContainerOpener opener_;
  const bool opens_;  // any format
  ContainerCounts counts_;
  std::uint64_t read_before_ = 0;  // of this file, as a container that then did not open
  OwnerNames names_;
};

}  // namespace kin

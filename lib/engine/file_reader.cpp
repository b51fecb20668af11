#include "lib/engine/file_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kin {
namespace {

Result<Fd> open_for_reading(const WalkEntry& entry) {
  // Without O_NONBLOCK, a FIFO that took the file's place would hang us. O_NOATIME is for owners only.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd fd(::openat(entry.directory->get(), entry.disk_name.c_str(), kFlags | O_NOATIME));
  if (!fd && errno == EPERM) fd = Fd(::openat(entry.directory->get(), entry.disk_name.c_str(), kFlags));
  if (!fd) return errno_error("cannot open", entry.path);
  return fd;
}

// Where the next run of data begins and ends, at or after `offset`; the end of the file if there is none.
Result<std::pair<std::uint64_t, std::uint64_t>> next_data(int fd, std::uint64_t offset, std::uint64_t size,
                                                          const std::string& path) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::pair{size, size};  // only a hole is left
  // A file system that knows no holes has none.
  if (data < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) return std::pair{offset, size};
  if (data < 0) return errno_error("cannot read", path);
  const off_t hole = ::lseek(fd, data, SEEK_HOLE);
  return std::pair{static_cast<std::uint64_t>(data), hole < 0 ? size : static_cast<std::uint64_t>(hole)};
}

}  // namespace

FileReader::FileReader(const BlockStore& store, const Formats& formats)
    : segmenter_(store), opener_(store, formats, segmenter_), opens_(!formats.containers.empty()) {}

Result<std::uint64_t> FileReader::read_run(const Segmenter::Read& read, std::uint64_t limit,
                                           const Emit& emit) {
  return segmenter_.run(read, limit, [&](NewObject object) {
    FilePart part;
    part.size = object.bytes.size();
    part.extents.push_back({Extent::Kind::data, part.size, object.id});
    part.objects.push_back(std::move(object));
    return emit(std::move(part));
  });
}

Result<std::optional<std::uint64_t>> FileReader::read_container(int fd, const std::string& path,
                                                                const Emit& emit) {
  class File : public ByteSource {
   public:
    File(int fd, const std::string& path) : fd_(fd), path_(path) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
      KIN_TRY_ASSIGN(const std::size_t got, read_up_to(fd_, into, path_));
      unreported_ += got;
      return got;
    }
    std::uint64_t take_unreported() { return std::exchange(unreported_, 0); }

   private:
    const int fd_;
    const std::string& path_;
    std::uint64_t unreported_ = 0;
  };
  std::array<std::uint8_t, kHeadBytes> head;
  KIN_TRY_ASSIGN(const std::size_t size, read_up_to_at(fd, head, 0, path));
  if (opener_.detect(ByteView(head).first(size)) == nullptr) return std::optional<std::uint64_t>();
  File file(fd, path);
  KIN_TRY_ASSIGN(const std::optional<Extent> extent, opener_.open(file, [&](NewObject object) {
    FilePart part;
    part.size = file.take_unreported();
    part.objects.push_back(std::move(object));
    return emit(std::move(part));
  }));
  if (!extent) {
    if (::lseek(fd, 0, SEEK_SET) < 0) return errno_error("cannot read", path);
    return std::optional<std::uint64_t>();
  }
  FilePart part;
  part.size = file.take_unreported();
  part.extents.push_back(*extent);
  if (!emit(std::move(part))) return interrupted();
  return std::optional(extent->size);
}

Result<std::uint64_t> FileReader::read_stream(int fd, const std::string& name, const Emit& emit,
                                              const std::stop_token& stop) {
  const Segmenter::Read read = [&](std::span<std::uint8_t> into) { return read_pipe(fd, into, name, stop); };
  return read_run(read, std::numeric_limits<std::uint64_t>::max(), emit);
}

Result<bool> FileReader::read_file(WalkEntry& entry, const Emit& emit) {
  KIN_TRY_ASSIGN(const Fd fd, open_for_reading(entry));
  struct stat before {};
  if (::fstat(fd.get(), &before) != 0) return errno_error("cannot read", entry.path);
  if (!S_ISREG(before.st_mode)) return Error(ErrorCode::io, printable(entry.path) + " is no longer a file");
  Node node = node_from_stat(std::move(entry.node.name), before, names_);
  node.attributes = std::move(entry.node.attributes);
  entry.node = std::move(node);

  const Segmenter::Read read = [&](std::span<std::uint8_t> into) {
    return read_up_to(fd.get(), into, entry.path);
  };
  const auto size = static_cast<std::uint64_t>(before.st_size);
  const bool sparse = static_cast<std::uint64_t>(before.st_blocks) * 512 < size;
  std::uint64_t done = 0;
  std::optional<std::uint64_t> opened;
  if (!sparse && opens_) {
    KIN_TRY_ASSIGN(opened, read_container(fd.get(), entry.path, emit));
  }
  if (opened) {
    done = *opened;
  } else if (!sparse) {
    // Files of /proc say that they are empty, and are not.
    const std::uint64_t limit = size == 0 ? std::numeric_limits<std::uint64_t>::max() : size;
    KIN_TRY_ASSIGN(done, read_run(read, limit, emit));
  }
  while (sparse && done < size) {
    KIN_TRY_ASSIGN(const auto run, next_data(fd.get(), done, size, entry.path));
    const auto [begin, end] = run;
    if (begin > done) {
      FilePart hole;
      hole.extents.push_back({Extent::Kind::hole, begin - done, {}});
      hole.size = begin - done;
      if (!emit(std::move(hole))) return interrupted();
      done = begin;
    }
    if (end <= begin) break;
    if (::lseek(fd.get(), static_cast<off_t>(begin), SEEK_SET) < 0)
      return errno_error("cannot read", entry.path);
    KIN_TRY_ASSIGN(const std::uint64_t got, read_run(read, std::min(end, size) - begin, emit));
    done += got;
    if (got < std::min(end, size) - begin) break;
  }
  entry.node.size = done;
  struct stat after {};
  if (::fstat(fd.get(), &after) != 0) return errno_error("cannot read", entry.path);
  return done == static_cast<std::uint64_t>(after.st_size) && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

}  // namespace kin

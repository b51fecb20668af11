#include "lib/engine/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {

Result<Fd> open_for_reading(const WalkEntry& entry) {
  // Without O_NONBLOCK, a FIFO that took the file's place would hang us. O_NOATIME is for owners only.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd fd(::openat(entry.directory->get(), entry.disk_name.c_str(), kFlags | O_NOATIME));
  if (!fd && errno == EPERM) fd = Fd(::openat(entry.directory->get(), entry.disk_name.c_str(), kFlags));
  if (!fd) return errno_error("cannot open", entry.path);
  return fd;
}

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

Result<bool> has_holes(int fd, const struct stat& info, const std::string& path) {
  const auto size = static_cast<std::uint64_t>(info.st_size);
  // Fewer blocks than bytes may also be a file system that compresses.
  if (static_cast<std::uint64_t>(info.st_blocks) * 512 >= size) return false;
  KIN_TRY_ASSIGN(const auto run, next_data(fd, 0, size, path));
  if (::lseek(fd, 0, SEEK_SET) < 0) return errno_error("cannot read", path);
  return run.first > 0 || run.second < size;
}

}  // namespace kin

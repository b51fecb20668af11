#include "lib/base/file.h"

#include "lib/base/text.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> Fd::close(std::string_view path) {
  if (::close(std::exchange(fd_, -1)) != 0) return errno_error("cannot close", path);
  return {};
}

Error errno_error(std::string_view doing, std::string_view path, int error_number) {
  const ErrorCode code = error_number == ENOENT                             ? ErrorCode::not_found
                         : error_number == ENOSPC || error_number == EDQUOT ? ErrorCode::no_space
                                                                            : ErrorCode::io;
  return Error(code, fmt::format("{} {}: {}", doing, printable(path), std::strerror(error_number)));
}

Result<std::size_t> read_up_to(int fd, std::span<std::uint8_t> into, std::string_view path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::read(fd, into.data() + done, into.size() - done);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot read", path);
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// A signal that asks to stop mostly reaches another thread than the one that waits here.
Result<std::size_t> read_pipe(int fd, std::span<std::uint8_t> into, std::string_view path,
                              const std::stop_token& stop) {
  constexpr int kLookForStopMilliseconds = 100;
  std::size_t done = 0;
  while (done < into.size()) {
    if (stop.stop_requested()) return interrupted();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kLookForStopMilliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;  // a read might wait for hours
    if (ready < 0) return errno_error("cannot read", path);
    const ssize_t n = ::read(fd, into.data() + done, into.size() - done);
    if (n == 0) break;
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return errno_error("cannot read", path);
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<std::size_t> read_up_to_at(int fd, std::span<std::uint8_t> into, std::uint64_t offset,
                                  std::string_view path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot read", path);
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<void> write_all(int fd, ByteView bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> write_all_at(int fd, ByteView bytes, std::uint64_t offset, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<Bytes> read_file(const std::string& path, std::uint64_t limit_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("cannot open", path);
  Bytes out;
  for (std::size_t step = 64 << 10;; step *= 2) {
    const std::size_t had = out.size();
    out.resize(had + step);
    KIN_TRY_ASSIGN(const std::size_t n, read_up_to(fd.get(), std::span(out).subspan(had), path));
    out.resize(had + n);
    if (out.size() > limit_bytes)
      return Error(ErrorCode::io, fmt::format("{} has more than {} bytes", printable(path), limit_bytes));
    if (n < step) return out;
  }
}

Result<std::vector<std::string>> list_directory(int directory, std::string_view path) {
  // Opened anew: a copy would share its position with the caller's descriptor.
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) {
    const int error_number = errno;
    if (own >= 0) ::close(own);
    return errno_error("cannot list", path, error_number);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(stream);
    if (entry == nullptr && errno != 0) return errno_error("cannot list", path);
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

Result<Fd> temporary_file() {
  const char* const given = std::getenv("TMPDIR");
  const std::string directory = given != nullptr && *given != 0 ? given : "/tmp";
  Fd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  // Not every file system has files without names.
  std::string path = directory + "/kin-XXXXXX";
  fd = Fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return errno_error("cannot make a temporary file in", directory);
  ::unlink(path.c_str());
  return fd;
}

Result<void> make_directories(const std::string& path, unsigned mode) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return {};
    return errno_error("cannot make directory", path, ENOTDIR);
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty() && parent != path) KIN_TRY(make_directories(parent, mode));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return errno_error("cannot make directory", path);
  return {};
}

void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace kin

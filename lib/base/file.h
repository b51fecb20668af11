// Files by descriptor: Fd owns one; reads and writes go on until done or failed; errors carry errno's text.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cerrno>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kin {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Reports what the destructor would swallow: some file systems say only here that the disk is full.
  Result<void> close(std::string_view path);

 private:
  int fd_ = -1;
};

// "cannot open /a/b: Permission denied", from errno. `doing` is such as "cannot open".
Error errno_error(std::string_view doing, std::string_view path, int error_number = errno);

// Fewer bytes than asked for means end of file.
Result<std::size_t> read_up_to(int fd, std::span<std::uint8_t> into, std::string_view path);
// The same for what may be silent for hours, as a pipe is: cancelled, once a stop is asked for.
Result<std::size_t> read_pipe(int fd, std::span<std::uint8_t> into, std::string_view path,
                              const std::stop_token& stop);
Result<std::size_t> read_up_to_at(int fd, std::span<std::uint8_t> into, std::uint64_t offset,
                                  std::string_view path);
Result<void> write_all(int fd, ByteView bytes, std::string_view path);
Result<void> write_all_at(int fd, ByteView bytes, std::uint64_t offset, std::string_view path);

// A whole file; io if it has more than `limit_bytes`.
Result<Bytes> read_file(const std::string& path, std::uint64_t limit_bytes);

// The names in an open directory but "." and "..", in no order. `path` is for messages.
Result<std::vector<std::string>> list_directory(int directory, std::string_view path);

// A file that has no name and goes with its descriptor, in $TMPDIR.
Result<Fd> temporary_file();

Result<void> make_directories(const std::string& path, unsigned mode);

// As many open files as the hard limit allows: a walk holds one descriptor per directory level.
void raise_open_file_limit();

}  // namespace kin

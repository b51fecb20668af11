#include "store/cache_directory.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::store {

bool is_there(const Fd& file, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// Our own lock, taken before RocksDB's, tells "in use" from "damaged".
Result<Fd> lock_cache(const std::string& directory) {
  const std::string path = fmt::format("{}{}", directory, kCacheLockName);
  const Error busy(ErrorCode::busy, "another kin uses the local cache");
  Error failure = busy;
  // Again, if someone removes the directory or the file before we have it locked.
  for (int tries = 0; tries < 100; ++tries) {
    if (auto made = make_directories(directory, 0700); !made) {
      failure = std::move(made).error();
      if (failure.code() == ErrorCode::not_found) continue;
      return failure;
    }
    Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock && errno == ENOENT) continue;
    if (!lock) return errno_error("cannot open", path);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? busy : errno_error("cannot lock", path);
    if (is_there(lock, path)) return lock;
  }
  return failure;
}

Result<TemporaryCache> make_temporary_cache(const std::string& parent) {
  TemporaryCache out;
  std::string path = fmt::format("{}/{}XXXXXX", parent, kTemporaryCachePrefix);
  if (::mkdtemp(path.data()) == nullptr)
    return Error(ErrorCode::io, errno_error("cannot make a directory in", parent).message());
  out.directory = path;
  // The lock gets its name only when it is held, so no sweeper ever finds it free.
  const std::string unnamed = path + "/new", named = fmt::format("{}{}", path, kCacheLockName);
  out.lock = Fd(::open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (out.lock && ::flock(out.lock.get(), LOCK_EX | LOCK_NB) == 0 &&
      ::rename(unnamed.c_str(), named.c_str()) == 0)
    return out;
  Error error = errno_error("cannot lock", path);
  ::unlink(unnamed.c_str());
  ::rmdir(path.c_str());
  return error;
}

}  // namespace kin::store

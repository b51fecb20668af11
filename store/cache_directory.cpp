#include "store/cache_directory.h"

#include "lib/base/text.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <filesystem>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kin::store {
namespace {

Result<std::vector<std::string>> names_in(const std::string& directory) {
  const Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Error(ErrorCode::io, errno_error("cannot list", directory).message());
  return list_directory(folder.get(), directory);
}

}  // namespace

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
    if (!is_there(lock, path)) continue;
    ::futimens(lock.get(), nullptr);  // who only reads leaves no other trace
    return lock;
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

void remove_temporary_cache(const std::string& directory) {
  if (directory.empty()) return;  // of one in memory; what is below it would be below the root
  std::error_code ignored;
  if (const auto names = names_in(directory))
    for (const std::string& name : *names)
      if (name != kCacheLockName.substr(1))
        std::filesystem::remove_all(fmt::format("{}/{}", directory, name), ignored);
  std::filesystem::remove_all(directory, ignored);
}

void sweep_temporary_caches(const std::string& parent) {
  const auto names = names_in(parent);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kTemporaryCachePrefix)) continue;
    const std::string path = fmt::format("{}/{}", parent, name);
    const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const Fd lock(
        ::openat(folder.get(), kCacheLockName.data() + 1, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_temporary_cache(path);
  }
}

bool is_quickly_read(const std::string& database) {
  const auto names = names_in(database);
  if (!names) return false;
  bool has_log = false;  // as every sound one does
  for (const std::string& name : *names) {
    struct stat info {};
    if (!name.ends_with(".log")) continue;
    if (::stat(fmt::format("{}/{}", database, name).c_str(), &info) != 0 || info.st_size > 0) return false;
    has_log = true;
  }
  return has_log;
}

Result<bool> remove_cache(const std::string& directory) {
  const auto lock_in = [](const std::string& path) { return fmt::format("{}{}", path, kCacheLockName); };
  std::vector<std::pair<std::string, Fd>> layouts;  // this kin's, and those of others
  KIN_TRY_ASSIGN(const std::vector<std::string> names, names_in(directory));
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", directory, name);
    // Made if it is not there: someone may be about to make this cache.
    Fd lock(::open(lock_in(path).c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600));
    if (lock && (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || !is_there(lock, lock_in(path)))) return false;
    layouts.emplace_back(path, std::move(lock));
  }
  // The locks go last: who comes before that finds the cache in use, who comes after makes a new one.
  std::error_code error;
  for (const auto& [path, lock] : layouts) {
    if (!error && lock) {
      KIN_TRY_ASSIGN(const std::vector<std::string> files, names_in(path));
      for (const std::string& name : files)
        if (!error && name != kCacheLockName.substr(1))
          std::filesystem::remove_all(fmt::format("{}/{}", path, name), error);
      ::unlink(lock_in(path).c_str());
      ::rmdir(path.c_str());
    } else if (!error) {
      std::filesystem::remove_all(path, error);
    }
  }
  ::rmdir(directory.c_str());
  if (error)
    return Error(ErrorCode::io, fmt::format("cannot remove {}: {}", printable(directory), error.message()));
  return true;
}

}  // namespace kin::store

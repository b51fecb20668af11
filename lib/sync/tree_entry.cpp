#include "lib/sync/tree_entry.h"

#include "lib/base/hash.h"
#include "lib/base/random.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace kin::sync::tree {
namespace {

constexpr std::size_t kMostDepth = 200;
constexpr std::string_view kBefore = ".kin-", kAfter = ".tmp";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kTemporaryNameBytes = kBefore.size() + kDigits + kAfter.size();
constexpr std::int64_t kOldSeconds = 36 * 3600;

}  // namespace

std::string temporary_name() { return fmt::format("{}{:016x}{}", kBefore, random_number(), kAfter); }

bool is_temporary(std::string_view name) {
  for (std::size_t at = 0; (at = name.find(kBefore, at)) != std::string_view::npos; ++at) {
    const std::string_view rest = name.substr(at + kBefore.size());
    if (rest.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
        rest.size() >= kDigits && rest.substr(kDigits).starts_with(kAfter))
      return true;
  }
  return false;
}

// By ctime: the mtime of a new file is that of the file that it is a copy of.
bool is_left_over(std::string_view name, const struct stat& info) {
  return name.size() == kTemporaryNameBytes && is_temporary(name) &&
         info.st_ctim.tv_sec < now().seconds - kOldSeconds &&
         (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode));
}

bool fits(const std::string& folder) {
  return folder.size() <= kMostFolderBytes &&
         static_cast<std::size_t>(std::count(folder.begin(), folder.end(), '/')) < kMostDepth;
}

std::string path_by(const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

Entry entry_of(const struct stat& info, const std::string& folder, const std::string& name) {
  Entry entry;
  entry.local = entry.item.name = name;
  entry.item.folder = folder;
  entry.item.mode = info.st_mode & kModeBits;
  if (S_ISDIR(info.st_mode)) {
    entry.item.type = ItemType::directory;
    entry.fingerprint = {info.st_ino, 0, entry.item.mode};
    return entry;
  }
  entry.item.type = ItemType::file;
  entry.item.time = {info.st_mtim.tv_sec, static_cast<std::uint32_t>(info.st_mtim.tv_nsec)};
  entry.fingerprint = fingerprint_of(info);
  entry.item.size = entry.fingerprint.size;
  return entry;
}

Result<Entry> look(int directory, const std::string& folder, const std::string& name,
                   const std::string& path) {
  struct stat info {};
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error("cannot look at", path);
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return entry_of(info, folder, name);
  if (!S_ISLNK(info.st_mode)) return Error(ErrorCode::unsupported, printable(path) + " is a special file");
  std::array<char, kMostFolderBytes + 1> target;
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (size < 0) return errno_error("cannot read link", path);
  if (static_cast<std::size_t>(size) > kMostFolderBytes)
    return Error(ErrorCode::invalid_argument, printable(path) + " is a link to too long a path");
  Entry entry;
  entry.local = entry.item.name = name;
  entry.item.folder = folder;
  entry.item.type = ItemType::symlink;
  entry.item.target.assign(target.data(), static_cast<std::size_t>(size));
  const Digest digest = hash(as_bytes(entry.item.target));
  entry.fingerprint.inode = info.st_ino;
  std::memcpy(&entry.fingerprint.modified_ns, digest.data(), sizeof entry.fingerprint.modified_ns);
  return entry;
}

Result<Entry> set_metadata(int directory, const std::string& folder, const std::string& name,
                           const std::string& path, const Item& item,
                           const std::optional<Fingerprint>& expected) {
  const Fd file(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file && errno == ENOENT) return not_as_it_was(path);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return errno_error("cannot look at", path);
  const Entry now = entry_of(info, folder, name);
  if (!S_ISREG(info.st_mode) || (expected && now.fingerprint != *expected)) return not_as_it_was(path);
  const std::string by_descriptor = path_by(file);
  // Its new mode may forbid to read it.
  const Fd readable(::open(by_descriptor.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const std::uint32_t mode = item.mode & kModeBits;
  const timespec time{static_cast<time_t>(item.time.seconds), static_cast<long>(item.time.nanoseconds)};
  const timespec times[2] = {time, time};
  // A new one has no other bits either, whatever its content came from.
  if ((!expected || now.item.mode != mode) && ::chmod(by_descriptor.c_str(), mode) != 0)
    return errno_error("cannot set the mode of", path);
  if (now.item.time != item.time && ::utimensat(AT_FDCWD, by_descriptor.c_str(), times, 0) != 0)
    return errno_error("cannot set the time of", path);
  if (!readable)
    ::sync();
  else if (::fsync(readable.get()) != 0)
    return errno_error("cannot sync", path);
  if (::fstat(file.get(), &info) != 0) return errno_error("cannot look at", path);
  return entry_of(info, folder, name);
}

Result<Fd> open_below(int at, const std::string& name, const std::string& path, ErrorCode if_other) {
  Fd fd(::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd) return fd;
  if (errno == ENOTDIR || errno == ELOOP) return Error(if_other, printable(path) + " is not a directory");
  return errno_error("cannot open", path);
}

Result<Fd> Root::open(const std::string& folder) const {
  Fd at(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return errno_error("cannot open", path_);
  for (const std::string& name : components_of(folder)) {
    KIN_TRY_ASSIGN(at, open_below(at.get(), name, full(folder), ErrorCode::not_found));
  }
  return at;
}

}  // namespace kin::sync::tree

#include "lib/engine/target_directory.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace kin {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

mode_t mode_of(NodeType type) {
  switch (type) {
    case NodeType::fifo:
      return S_IFIFO;
    case NodeType::socket:
      return S_IFSOCK;
    case NodeType::character_device:
      return S_IFCHR;
    case NodeType::block_device:
      return S_IFBLK;
    default:
      return S_IFREG;
  }
}

// The mode that the directory had, if it was changed.
std::optional<mode_t> make_usable(const Fd& parent, const std::string& name) {
  if (::faccessat(parent.get(), name.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES)
    return {};
  const Fd directory(::openat(parent.get(), name.c_str(), kDirectoryFlags | O_PATH));
  struct stat info {};
  if (!directory || ::fstat(directory.get(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  const mode_t mode = info.st_mode & 07777;
  // Should it fail, whoever writes there will say so.
  if (::chmod(fmt::format("/proc/self/fd/{}", directory.get()).c_str(), mode | 0700) != 0) return {};
  return mode;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> id_of(const Fd& directory) {
  struct stat info {};
  if (::fstat(directory.get(), &info) != 0) return {};
  return std::pair<std::uint64_t, std::uint64_t>(info.st_dev, info.st_ino);
}

constexpr int kPlaceFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The directory, or where it would be made: the nearest one above that is there.
Fd nearest_directory(std::filesystem::path path) {
  std::error_code failed;
  // "new/../x" is x, even before `new` is there.
  if (auto real = std::filesystem::weakly_canonical(path, failed); !failed) path = std::move(real);
  Fd at(::open(path.c_str(), kPlaceFlags));
  while (!at && path.has_relative_path()) {
    path = path.parent_path();
    at = Fd(::open(path.empty() ? "." : path.c_str(), kPlaceFlags));
  }
  return at;
}

// Whether it is one of these directories or lies in one.
bool lies_in(Fd at, const DirectoryIds& directories) {
  while (at) {
    const auto id = id_of(at);
    if (id && directories.contains(*id)) return true;
    Fd above(::openat(at.get(), "..", kPlaceFlags));
    if (!above || id_of(above) == id) return false;
    at = std::move(above);
  }
  return false;
}

}  // namespace

bool is_one_of(const Fd& parent, const std::string& name, const DirectoryIds& directories) {
  if (directories.empty()) return false;
  struct stat info {};
  return ::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         directories.contains({info.st_dev, info.st_ino});
}

UsableDirectory::~UsableDirectory() {
  // Should it fail, the directory stays writable for its owner; nobody else gains.
  if (mode_before_ && ::fchmod(fd_->get(), *mode_before_) != 0) return;
}

UsableDirectory open_usable_directory(const Fd& parent, const std::string& name) {
  const std::optional<mode_t> before = make_usable(parent, name);
  Fd fd = open_directory(parent, name);
  if (!fd) return {nullptr, std::nullopt};
  return {std::make_shared<const Fd>(std::move(fd)), before};
}

Fd open_directory(const Fd& parent, const std::string& name) {
  return Fd(::openat(parent.get(), name.c_str(), kDirectoryFlags));
}

Result<std::shared_ptr<const Fd>> open_target(const std::string& path, const DirectoryIds& never_touch,
                                              bool make) {
  const Error refused(
      ErrorCode::invalid_argument,
      fmt::format("the target {} belongs to the repository or to kin's cache", printable(path)));
  if (lies_in(nearest_directory(path), never_touch)) return refused;
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && !S_ISDIR(info.st_mode))
    return Error(ErrorCode::invalid_argument,
                 fmt::format("the target {} is not a directory", printable(path)));
  if (!there && !make) return std::shared_ptr<const Fd>();
  if (make) KIN_TRY(make_directories(path, 0700));
  auto fd = std::make_shared<const Fd>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!*fd) return errno_error("cannot open", path);
  // Again, now that there is nothing to guess.
  if (lies_in(Fd(::openat(fd->get(), ".", kPlaceFlags)), never_touch)) return refused;
  return fd;
}

Result<UsableDirectory> open_or_make_directory(const Fd& parent, const std::string& name) {
  for (bool first = true;; first = false) {
    UsableDirectory directory = open_usable_directory(parent, name);
    if (directory.fd()) return directory;
    const bool in_the_way = errno == ENOTDIR || errno == ELOOP;
    if (!first || (errno != ENOENT && !in_the_way)) return errno_error("cannot open", name);
    if (in_the_way && ::unlinkat(parent.get(), name.c_str(), 0) != 0)
      return errno_error("cannot remove", name);
    if (::mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return errno_error("cannot make directory", name);
  }
}

Result<Fd> open_below(const Fd& root, const std::vector<std::string>& components) {
  Fd at(::openat(root.get(), ".", kDirectoryFlags));
  for (const std::string& name : components) {
    if (!at) break;
    at = open_directory(at, name);
  }
  if (!at) return errno_error("cannot open", components.empty() ? "the target" : components.back());
  return at;
}

Result<void> remove_entry(const Fd& parent, const std::string& name, const std::string& path) {
  if (::unlinkat(parent.get(), name.c_str(), 0) == 0) return {};
  const int refused = errno;
  if ((refused == EISDIR || refused == EPERM) && ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0)
    return {};
  return errno_error("cannot delete", path, errno == ENOTDIR ? refused : errno);
}

Result<void> make_special(const Fd& parent, const Node& node, const std::string& name) {
  if (node.type == NodeType::symlink) {
    if (::symlinkat(node.target.c_str(), parent.get(), name.c_str()) != 0)
      return errno_error("cannot make link", name);
    return {};
  }
  const dev_t device =
      makedev(static_cast<unsigned>(node.device_number >> 32), static_cast<unsigned>(node.device_number));
  if (::mknodat(parent.get(), name.c_str(), mode_of(node.type) | 0600, device) != 0)
    return errno_error(fmt::format("cannot make {}", name_of(node.type)), name);
  return {};
}

std::string temporary_name(std::uint64_t number) { return fmt::format(".kin-{}-{}", ::getpid(), number); }

bool is_temporary_name(std::string_view name) {
  return name.starts_with(fmt::format(".kin-{}-", ::getpid()));
}

Result<void> put_in_place(const Fd& parent, const std::string& name,
                          const std::function<Result<void>()>& make_room,
                          const std::function<Result<void>(const std::string& name)>& make) {
  auto made = make(name);
  if (made || ::faccessat(parent.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return made;
  const std::string beside = temporary_name(0);
  KIN_TRY(make(beside));
  Result<void> moved;
  if (::renameat(parent.get(), beside.c_str(), parent.get(), name.c_str()) != 0) {
    moved = errno == EISDIR ? make_room() : errno_error("cannot replace", name);
    if (moved && ::renameat(parent.get(), beside.c_str(), parent.get(), name.c_str()) != 0)
      moved = errno_error("cannot replace", name);
  }
  // Also after success: renaming one name of a file to another of its names does nothing.
  ::unlinkat(parent.get(), beside.c_str(), 0);
  return moved;
}

}  // namespace kin

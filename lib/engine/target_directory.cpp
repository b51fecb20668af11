#include "lib/engine/target_directory.h"

#include <fmt/core.h>

#include <fcntl.h>
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

void make_usable(const Fd& parent, const std::string& name) {
  if (::faccessat(parent.get(), name.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES) return;
  const Fd directory(::openat(parent.get(), name.c_str(), kDirectoryFlags | O_PATH));
  struct stat info {};
  if (!directory || ::fstat(directory.get(), &info) != 0 || info.st_uid != ::geteuid()) return;
  // Should it fail, whoever writes there will say so.
  static_cast<void>(
      ::chmod(fmt::format("/proc/self/fd/{}", directory.get()).c_str(), (info.st_mode & 07777) | 0700));
}

}  // namespace

Fd open_directory(const Fd& parent, const std::string& name) {
  return Fd(::openat(parent.get(), name.c_str(), kDirectoryFlags));
}

Result<std::shared_ptr<const Fd>> open_target(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    return Error(ErrorCode::invalid_argument,
                 fmt::format("the target {} is not a directory", printable(path)));
  KIN_TRY(make_directories(path, 0700));
  auto fd = std::make_shared<const Fd>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!*fd) return errno_error("cannot open", path);
  return fd;
}

Result<std::shared_ptr<const Fd>> open_or_make_directory(const Fd& parent, const std::string& name,
                                                         bool replace) {
  make_usable(parent, name);
  for (bool first = true;; first = false) {
    auto fd = std::make_shared<const Fd>(open_directory(parent, name));
    if (*fd) return fd;
    const bool in_the_way = errno == ENOTDIR || errno == ELOOP;
    if (!first || (errno != ENOENT && !in_the_way)) return errno_error("cannot open", name);
    if (in_the_way && !replace)
      return Error(ErrorCode::io,
                   fmt::format("cannot make directory {}: something else is there", printable(name)));
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

Result<void> remove_entry(const Fd& parent, const std::string& name, bool recursive) {
  if (::unlinkat(parent.get(), name.c_str(), 0) == 0) return {};
  if (errno != EISDIR && errno != EPERM) return errno_error("cannot remove", name);
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  if (!recursive || (errno != ENOTEMPTY && errno != EEXIST)) return errno_error("cannot remove", name);
  const Fd inside = open_directory(parent, name);
  if (!inside) return errno_error("cannot open", name);
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(inside.get(), name));
  for (const std::string& entry : names) KIN_TRY(remove_entry(inside, entry, true));
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0) return errno_error("cannot remove", name);
  return {};
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

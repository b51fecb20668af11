#include "lib/engine/target_directory.h"

#include <fmt/core.h>

#include <dirent.h>
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

}  // namespace

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
  for (bool first = true;; first = false) {
    auto fd = std::make_shared<const Fd>(::openat(parent.get(), name.c_str(), kDirectoryFlags));
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
    at = Fd(::openat(at.get(), name.c_str(), kDirectoryFlags));
  }
  if (!at) return errno_error("cannot open", components.empty() ? "the target" : components.back());
  return at;
}

Result<std::vector<std::string>> list_entries(const Fd& directory) {
  const int copy = ::openat(directory.get(), ".", kDirectoryFlags);
  DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) ::close(copy);
    return errno_error("cannot list", "a directory of the target");
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream))
    if (is_safe_name(entry->d_name)) names.emplace_back(entry->d_name);
  return names;
}

Result<void> remove_entry(const Fd& parent, const std::string& name, bool recursive) {
  if (::unlinkat(parent.get(), name.c_str(), 0) == 0) return {};
  if (errno != EISDIR && errno != EPERM) return errno_error("cannot remove", name);
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  if (!recursive || (errno != ENOTEMPTY && errno != EEXIST)) return errno_error("cannot remove", name);
  const Fd inside(::openat(parent.get(), name.c_str(), kDirectoryFlags));
  if (!inside) return errno_error("cannot open", name);
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_entries(inside));
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

Result<void> put_in_place(const Fd& parent, const std::string& name, bool recursive,
                          const std::function<Result<void>(const std::string& name)>& make) {
  auto made = make(name);
  if (made || ::faccessat(parent.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return made;
  const std::string beside = temporary_name(0);
  KIN_TRY(make(beside));
  Result<void> moved;
  if (::renameat(parent.get(), beside.c_str(), parent.get(), name.c_str()) != 0) {
    moved = errno == EISDIR ? remove_entry(parent, name, recursive) : errno_error("cannot replace", name);
    if (moved && ::renameat(parent.get(), beside.c_str(), parent.get(), name.c_str()) != 0)
      moved = errno_error("cannot replace", name);
  }
  // Also after success: renaming one name of a file to another of its names does nothing.
  ::unlinkat(parent.get(), beside.c_str(), 0);
  return moved;
}

}  // namespace kin

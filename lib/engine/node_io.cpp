#include "lib/engine/node_io.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <grp.h>
#include <optional>
#include <pwd.h>
#include <set>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace kin {
namespace {

NodeType type_from_mode(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return NodeType::directory;
    case S_IFLNK:
      return NodeType::symlink;
    case S_IFIFO:
      return NodeType::fifo;
    case S_IFSOCK:
      return NodeType::socket;
    case S_IFCHR:
      return NodeType::character_device;
    case S_IFBLK:
      return NodeType::block_device;
    default:
      return NodeType::file;
  }
}

// The xattr calls have no *at form; a path through /proc reaches any file by descriptor and name, without
// opening it.
std::string path_at(int directory, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", directory, name);
}

bool has_no_attributes(int error_number) {
  return error_number == ENOTSUP || error_number == ENODATA || error_number == ENOENT;
}

Timestamp from_timespec(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

// `path` leads to the file itself through /proc.
Result<void> apply_attributes(int directory, const std::string& name, const std::string& path,
                              const Node& node) {
  std::optional<Error> failed;
  std::set<std::string> wanted;
  for (const ExtendedAttribute& attribute : node.attributes) {
    wanted.insert(attribute.name);
    if (::setxattr(path.c_str(), attribute.name.c_str(), attribute.value.data(), attribute.value.size(), 0) ==
        0)
      continue;
    const bool privileged =
        !attribute.name.starts_with("user.") && !attribute.name.starts_with("system.posix_acl");
    if (errno == EPERM && privileged && ::geteuid() != 0) continue;
    if (!failed) failed = errno_error("cannot set attribute " + attribute.name + " of", name);
  }
  // A new file may inherit an ACL from its directory, and an overwritten one has its old attributes.
  KIN_TRY_ASSIGN(const std::vector<ExtendedAttribute> present, read_attributes(directory, name));
  for (const ExtendedAttribute& attribute : present) {
    if (wanted.contains(attribute.name) || attribute.name.starts_with("security.")) continue;
    if (::removexattr(path.c_str(), attribute.name.c_str()) != 0 && !failed && errno != EPERM &&
        !has_no_attributes(errno))
      failed = errno_error("cannot remove attribute " + attribute.name + " of", name);
  }
  if (failed) return *failed;
  return {};
}

}  // namespace

const std::string& OwnerNames::user(std::uint32_t uid) {
  const auto [at, added] = users_.try_emplace(uid);
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer;
  // The reentrant form: several readers ask at once.
  if (added && ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    at->second = found->pw_name;
  return at->second;
}

const std::string& OwnerNames::group(std::uint32_t gid) {
  const auto [at, added] = groups_.try_emplace(gid);
  ::group entry{};
  ::group* found = nullptr;
  std::array<char, 65536> buffer;
  if (added && ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    at->second = found->gr_name;
  return at->second;
}

Node node_from_stat(std::string name, const struct stat& info, OwnerNames& names) {
  Node node;
  node.name = std::move(name);
  node.type = type_from_mode(info.st_mode);
  node.mode = info.st_mode & 07777;
  node.uid = info.st_uid;
  node.gid = info.st_gid;
  node.user = names.user(info.st_uid);
  node.group = names.group(info.st_gid);
  node.mtime = from_timespec(info.st_mtim);
  node.ctime = from_timespec(info.st_ctim);
  node.device = info.st_dev;
  node.inode = info.st_ino;
  node.links = node.type == NodeType::directory ? 1 : info.st_nlink;
  if (node.type == NodeType::file) node.size = static_cast<std::uint64_t>(info.st_size);
  if (node.type == NodeType::character_device || node.type == NodeType::block_device)
    node.device_number = std::uint64_t{major(info.st_rdev)} << 32 | minor(info.st_rdev);
  return node;
}

Result<struct stat> stat_at(int directory, const std::string& name) {
  struct stat info {};
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error("cannot read", name);
  return info;
}

Result<std::vector<ExtendedAttribute>> read_attributes(int directory, const std::string& name) {
  const std::string path = path_at(directory, name);
  // Most files have none, and most that have some have few.
  std::array<char, 1024> small;
  ssize_t size = ::llistxattr(path.c_str(), small.data(), small.size());
  std::string names(small.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (size < 0 && errno == ERANGE) {
    size = ::llistxattr(path.c_str(), nullptr, 0);
    if (size < 0) break;
    names.resize(static_cast<std::size_t>(size));
    size = ::llistxattr(path.c_str(), names.data(), names.size());
    if (size >= 0) names.resize(static_cast<std::size_t>(size));
  }
  std::vector<ExtendedAttribute> out;
  if (size < 0 && !has_no_attributes(errno)) return errno_error("cannot list the attributes of", name);
  if (size <= 0) return out;
  for (const char* at = names.data(); at < names.data() + names.size(); at += out.back().name.size() + 1) {
    ExtendedAttribute& attribute = out.emplace_back();
    attribute.name = at;
    attribute.value.resize(64 << 10);  // the kernel's limit
    const ssize_t got = ::lgetxattr(path.c_str(), at, attribute.value.data(), attribute.value.size());
    if (got < 0 && !has_no_attributes(errno))
      return errno_error("cannot read attribute " + attribute.name + " of", name);
    attribute.value.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    attribute.value.shrink_to_fit();
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

Result<std::string> read_link(int directory, const std::string& name) {
  std::array<char, 8192> target;  // the kernel's limit is 4,096
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (size < 0) return errno_error("cannot read link", name);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

bool same_state(const Node& now, const Node& before) {
  return now.type == before.type && now.size == before.size && now.mtime == before.mtime &&
         now.ctime == before.ctime && now.inode == before.inode && now.mode == before.mode &&
         now.uid == before.uid && now.gid == before.gid && now.device_number == before.device_number;
}

Result<void> apply_metadata(int directory, const std::string& name, const Node& node) {
  // Once the name is looked up, everything goes to that file, whatever someone makes of the name meanwhile.
  const Fd file(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return errno_error("cannot open", name);
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  std::optional<Error> failed;
  const auto keep = [&](Result<void> result) {
    if (!result && !failed) failed = std::move(result).error();
  };
  // Owner before mode: a change of owner clears setuid. Attributes before mode: an ACL's mask is the group's
  // bits.
  std::uint32_t mode = node.mode;
  if (::fchownat(file.get(), "", node.uid, node.gid, AT_EMPTY_PATH) != 0) {
    if (errno != EPERM || ::geteuid() == 0) keep(errno_error("cannot set the owner of", name));
    mode &= ~06000U;  // it would run as someone whom the file's owner did not mean
  }
  keep(apply_attributes(directory, name, path, node));
  if (node.type != NodeType::symlink && ::chmod(path.c_str(), mode) != 0)
    keep(errno_error("cannot set the mode of", name));
  const timespec mtime{static_cast<time_t>(node.mtime.seconds), static_cast<long>(node.mtime.nanoseconds)};
  const timespec times[2] = {mtime, mtime};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) keep(errno_error("cannot set the time of", name));
  if (failed) return *failed;
  return {};
}

}  // namespace kin

#include "lib/engine/walker.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {
namespace {

constexpr std::string_view kCacheTag = "Signature: 8a477f597d28d172789f06886806bc55";

std::optional<ObjectId> subtree_of(const std::optional<Node>& node) {
  if (!node || node->type != NodeType::directory) return std::nullopt;
  return node->subtree;
}

WalkEntry leave() {
  WalkEntry entry;
  entry.kind = WalkEntry::Kind::leave;
  return entry;
}

std::string join(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.ends_with('/') ? directory + name : directory + "/" + name;
}

bool starts_with(int directory, const std::string& name, std::string_view header) {
  const Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;
  Bytes start(header.size());
  const auto size = read_up_to(fd.get(), start, name);
  return size && *size == header.size() && as_text(start) == header;
}

// The parent's entries, in step with ours.
class BeforeCursor {
 public:
  BeforeCursor(ObjectReader* reader, std::optional<ObjectId> tree) {
    if (reader != nullptr && tree) cursor_.emplace(*reader, *tree);
  }

  // Names must come in ascending order. A parent that cannot be read is no parent: the files are read again.
  std::optional<Node> find(const std::string& name) {
    while (cursor_ && (!current_ || current_->name < name)) {
      auto next = cursor_->next();
      if (!next || !*next) {
        cursor_.reset();
        current_.reset();
        return std::nullopt;
      }
      current_ = **std::move(next);
    }
    if (!current_ || current_->name != name) return std::nullopt;
    return std::exchange(current_, std::nullopt);
  }

 private:
  std::optional<TreeCursor> cursor_;
  std::optional<Node> current_;
};

}  // namespace

// The sources as a tree: leaves are sources, inner nodes the directories above them.
struct Walker::PlanNode {
  const BackupSource* source = nullptr;
  std::string path;  // on disk, where there is one
  std::map<std::string, PlanNode> children;
};

Walker::Walker(const WalkOptions& options, ObjectReader* parent_reader, std::optional<ObjectId> parent,
               Emit emit, Skip skip)
    : options_(options),
      parent_reader_(parent_reader),
      parent_(parent),
      emit_(std::move(emit)),
      skip_(std::move(skip)) {}

Result<void> Walker::walk() {
  PlanNode root;
  root.path = "/";
  std::size_t found = 0;
  for (const BackupSource& source : options_.sources) {
    struct stat info {};
    if (::lstat(source.path.c_str(), &info) != 0) {
      skip_(source.path, errno_error("cannot read", source.path));
      continue;
    }
    ++found;
    PlanNode* at = &root;
    // The directories above an absolute source are those on disk; --as-path may name some that are not.
    const std::vector<std::string> on_disk = path_components(source.path);
    const bool same = source.path.starts_with('/') && on_disk == source.tree_path;
    std::string path = same ? "/" : "";
    for (std::size_t i = 0; i < source.tree_path.size() && at->source == nullptr; ++i) {
      at = &at->children[source.tree_path[i]];
      if (same) at->path = path = join(path, source.tree_path[i]);
    }
    if (at->source != nullptr) continue;  // inside another source, or the same
    at->source = &source;
    at->children.clear();
  }
  if (found == 0) return Error(ErrorCode::not_found, "nothing to back up: none of the paths can be read");
  walk_plan(root, "", parent_);
  return {};
}

bool Walker::walk_plan(const PlanNode& plan, const std::string& tree_path, std::optional<ObjectId> before) {
  if (plan.source != nullptr) {
    // Only for a source that becomes the root itself.
    const std::string& path = plan.source->path;
    auto directory = std::make_shared<const Fd>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    if (!*directory || ::fstat(directory->get(), &info) != 0) {
      skip_(path, errno_error("cannot open", path));
      return true;
    }
    return walk_directory(directory, path, tree_path, before, info.st_dev, 0);
  }
  BeforeCursor cursor(parent_reader_, before);
  for (const auto& [name, child] : plan.children) {
    std::optional<Node> node_before = cursor.find(name);
    const std::string child_tree_path = tree_path + "/" + name;
    if (child.source != nullptr) {
      if (!walk_source(*child.source, name, child_tree_path, std::move(node_before))) return false;
      continue;
    }
    WalkEntry entry = directory_above(child, name, node_before);
    entry.tree_path = child_tree_path;
    if (!emit_(std::move(entry)) || !walk_plan(child, child_tree_path, subtree_of(node_before)) ||
        !emit_(leave()))
      return false;
  }
  return true;
}

bool Walker::walk_source(const BackupSource& source, const std::string& name, const std::string& tree_path,
                         std::optional<Node> before) {
  std::string path = source.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  std::string above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::string disk_name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (path != source.path) {  // "link/": the directory that it leads to, as the kernel takes it
    above = source.path;
    disk_name.clear();
  }
  if (disk_name.empty()) disk_name = ".";
  auto directory = std::make_shared<const Fd>(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!*directory) {
    skip_(path, errno_error("cannot open", above));
    return true;
  }
  return walk_entry(directory, disk_name, name, path, tree_path, std::move(before), std::nullopt, 0);
}

// The entry of a directory that is there only because a source is below it.
WalkEntry Walker::directory_above(const PlanNode& plan, const std::string& name,
                                  const std::optional<Node>& before) {
  WalkEntry entry;
  entry.kind = WalkEntry::Kind::enter;
  entry.path = plan.path;
  struct stat info {};
  if (!plan.path.empty() && ::stat(plan.path.c_str(), &info) == 0) {
    entry.node = node_from_stat(name, info, names_);
    const Fd directory(::open(plan.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (auto attributes = read_attributes(directory.get(), "."); directory && attributes)
      entry.node.attributes = *std::move(attributes);
    return entry;
  }
  entry.node.name = name;
  entry.node.type = NodeType::directory;
  entry.node.mode = 0755;
  entry.node.uid = ::geteuid();
  entry.node.gid = ::getegid();
  entry.node.user = names_.user(entry.node.uid);
  entry.node.group = names_.group(entry.node.gid);
  entry.node.mtime = entry.node.ctime = before ? before->mtime : now();
  return entry;
}

bool Walker::has_exclusion_marker(const OpenDirectory& directory) const {
  for (const std::string& marker : options_.exclude_if_present) {
    const std::size_t colon = marker.find(':');
    const std::string name = marker.substr(0, colon);
    if (colon == std::string::npos
            ? ::faccessat(directory->get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0
            : starts_with(directory->get(), name, std::string_view(marker).substr(colon + 1)))
      return true;
  }
  return false;
}

bool Walker::walk_directory(const OpenDirectory& directory, const std::string& path,
                            const std::string& tree_path, std::optional<ObjectId> before,
                            std::uint64_t device, int depth) {
  if (depth > kMostDirectoryDepth) {
    skip_(path, Error(ErrorCode::io, fmt::format("{}: more than {} directories deep", printable(path),
                                                 kMostDirectoryDepth)));
    return true;
  }
  auto names = list_directory(directory->get(), path);
  if (!names) {
    skip_(path, names.error());
    return true;
  }
  std::sort(names->begin(), names->end());
  if (has_exclusion_marker(directory)) return true;
  if (options_.exclude_caches && starts_with(directory->get(), "CACHEDIR.TAG", kCacheTag))
    *names = {"CACHEDIR.TAG"};
  BeforeCursor cursor(parent_reader_, before);
  for (const std::string& name : *names)
    if (!walk_entry(directory, name, name, join(path, name), tree_path + "/" + name, cursor.find(name),
                    device, depth))
      return false;
  return true;
}

bool Walker::walk_entry(const OpenDirectory& directory, const std::string& disk_name, const std::string& name,
                        const std::string& path, const std::string& tree_path, std::optional<Node> before,
                        std::optional<std::uint64_t> device, int depth) {
  if (options_.excludes.matches(path)) return true;
  struct stat found {};
  const struct stat* const info = &found;
  if (::fstatat(directory->get(), disk_name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    skip_(path, errno_error("cannot read", path));
    return true;
  }
  const bool other_system = options_.one_file_system && device && *device != info->st_dev;
  if (other_system && !S_ISDIR(info->st_mode)) return true;
  if (options_.exclude_larger_than && S_ISREG(info->st_mode) &&
      static_cast<std::uint64_t>(info->st_size) > *options_.exclude_larger_than)
    return true;

  WalkEntry entry;
  entry.node = node_from_stat(name, *info, names_);
  entry.path = path;
  entry.tree_path = tree_path;
  entry.directory = directory;
  entry.disk_name = disk_name;
  const bool unchanged = before && same_state(entry.node, *before);
  if (unchanged) {
    entry.node.attributes = before->attributes;
    entry.node.target = before->target;
  } else {
    auto attributes = options_.attributes ? read_attributes(directory->get(), disk_name)
                                          : Result<std::vector<ExtendedAttribute>>({});
    if (!attributes) {
      skip_(path, Error(attributes.error()).context(printable(path)));
      return true;
    }
    entry.node.attributes = *std::move(attributes);
    if (entry.node.type == NodeType::symlink) {
      auto target = read_link(directory->get(), disk_name);
      if (!target) {
        skip_(path, Error(target.error()).context(printable(path)));
        return true;
      }
      entry.node.target = *std::move(target);
    }
  }
  if (entry.node.type != NodeType::directory) {
    entry.kind = entry.node.type == NodeType::file ? WalkEntry::Kind::file : WalkEntry::Kind::other;
    entry.before = std::move(before);
    return emit_(std::move(entry));
  }

  if (options_.never_enter.contains({info->st_dev, info->st_ino})) return true;
  OpenDirectory inside;
  if (!other_system) {
    inside = std::make_shared<const Fd>(
        ::openat(directory->get(), disk_name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!*inside) {
      skip_(path, errno_error("cannot open", path));
      return true;
    }
  }
  entry.kind = WalkEntry::Kind::enter;
  if (!emit_(std::move(entry))) return false;
  // A mount point of another file system is kept as an empty directory.
  if (inside && !walk_directory(inside, path, tree_path, subtree_of(before), info->st_dev, depth + 1))
    return false;
  return emit_(leave());
}

}  // namespace kin

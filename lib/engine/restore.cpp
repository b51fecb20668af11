#include "lib/engine/restore.h"

#include "lib/engine/content_check.h"
#include "lib/engine/node_io.h"
#include "lib/engine/restore_report.h"
#include "lib/engine/restore_window.h"
#include "lib/engine/target_directory.h"
#include "lib/object/tree.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace kin {
namespace {

constexpr std::size_t kMostLeftDirectories = 256;
constexpr std::size_t kMostLinks = 4096;

using Action = RestoreObserver::Action;

Error untouchable() {
  return Error(ErrorCode::io, "the repository or kin's cache is in its place, and stays as it is");
}

class Restore {
 public:
  Restore(BlockStore& store, const RestoreRequest& request, RestoreObserver& observer, std::stop_token stop)
      : store_(store),
        request_(request),
        stop_(stop),
        report_(observer),
        window_(
            store, request, report_,
            [this](const Fd& parent, const std::string& name, const std::string& path) {
              return make_room(parent, name, path);
            },
            std::move(stop)) {}

  Result<RestoreStats> run();

 private:
  // A directory on the way down. It is made only when something in it is wanted.
  struct Place {
    Place* parent = nullptr;
    Node node;
    std::string path;                                        // below the target
    bool entered = false;                                    // something in it, or it itself, is wanted
    std::shared_ptr<const Fd> fd = nullptr;                  // once entered, but for a dry run
    std::optional<std::shared_ptr<const Fd>> existing = {};  // what existing() found
  };

  struct LeftDirectory {
    std::shared_ptr<const Fd> parent;
    Node node;
    std::string path;
  };

  Result<void> restore_directory(Place& place, const ObjectId& tree, int depth);
  Result<void> restore_node(Place& place, Node node, int depth);
  Result<void> restore_content(RestoreEntry entry);
  void restore_special(const RestoreEntry& entry);
  std::shared_ptr<LinkedFile> linked_file(const Node& node);
  Result<void> make_links();
  Result<void> make_link(RestoreEntry entry);
  Result<std::pair<Fd, std::string>> find_below(const std::string& path);
  Result<void> keep_name(RestoreEntry entry);
  Result<bool> holds(const std::string& path, const Node& node);
  Result<bool> is_proven(const LinkedFile& file, const Node& node);
  Result<void> enter(Place& place);
  std::shared_ptr<const Fd> existing(Place& place);
  bool keep_existing(const Fd& directory, const Node& node);
  Result<void> foresee(Place& place, const Node& node, const std::string& path,
                       const std::shared_ptr<LinkedFile>& linked);
  bool delete_extra(const Fd& directory, const std::string& path, const std::set<std::string>& names);
  bool delete_entry(const Fd& directory, const std::string& name, const std::string& path);
  bool delete_below(const Fd& directory, const std::string& name, const std::string& path);
  bool never_touch(const Fd& directory, const std::string& name) const {
    return is_one_of(directory, name, request_.never_touch);
  }
  Result<void> make_room(const Fd& parent, const std::string& name, const std::string& path);
  Result<void> run_window();
  bool wanted(const std::string& path) const;
  bool excluded(const std::string& path) const { return request_.excludes.matches(in_tree(path)); }
  std::string in_tree(const std::string& path) const { return request_.tree_path + "/" + path; }

  BlockStore& store_;
  const RestoreRequest& request_;
  const std::stop_token stop_;
  std::shared_ptr<const Fd> target_;

  std::vector<LeftDirectory> left_;
  // By path: those that were read-only and do not have their metadata yet. They outlive the window, which
  // removes unfinished files from them.
  std::map<std::string, UsableDirectory> made_usable_;
  std::vector<RestoreEntry> links_;
  // By device, inode and content, from a file's first name to its last. What stays to the end are the files
  // that have further names outside of what is restored, or with other content: one path and some 180 bytes
  // for each.
  std::map<std::tuple<std::uint64_t, std::uint64_t, Digest>, std::shared_ptr<LinkedFile>> linked_files_;

  RestoreReport report_;
  RestoreWindow window_;
};

bool Restore::wanted(const std::string& path) const {
  return !excluded(path) && (request_.includes.empty() || request_.includes.matches(in_tree(path)));
}

// Opens the directory, and makes it and those above it where they are missing.
Result<void> Restore::enter(Place& place) {
  if (place.entered) return {};
  KIN_TRY(enter(*place.parent));
  const std::string& name = place.node.name;
  const auto above = existing(*place.parent);
  if (above && keep_existing(*above, place.node)) {
    const auto info = stat_at(above->get(), name);
    if (info && !S_ISDIR(info->st_mode))
      return Error(ErrorCode::io,
                   fmt::format("{} is no directory, and --overwrite keeps it", printable(place.path)));
  }
  if (!request_.dry_run) {
    KIN_TRY_ASSIGN(UsableDirectory opened, open_or_make_directory(*above, name));
    place.fd = opened.fd();
    if (opened.was_changed()) made_usable_.emplace(place.path, std::move(opened));
  }
  place.entered = true;
  return {};
}

// The directory as it is on disk, if it is there. Nothing is made.
std::shared_ptr<const Fd> Restore::existing(Place& place) {
  if (place.fd || place.parent == nullptr) return place.fd;
  if (!place.existing) {
    const auto above = existing(*place.parent);
    Fd fd = above ? open_directory(*above, place.node.name) : Fd();
    place.existing = fd ? std::make_shared<const Fd>(std::move(fd)) : nullptr;
  }
  return *place.existing;
}

bool Restore::keep_existing(const Fd& directory, const Node& node) {
  if (request_.overwrite == Overwrite::always) return false;
  const auto info = stat_at(directory.get(), node.name);
  if (!info) return false;
  if (request_.overwrite == Overwrite::never) return true;
  const Timestamp mtime{info->st_mtim.tv_sec, static_cast<std::uint32_t>(info->st_mtim.tv_nsec)};
  if (request_.overwrite == Overwrite::if_newer) return node.mtime <= mtime;
  return S_ISREG(info->st_mode) && node.type == NodeType::file && mtime == node.mtime &&
         static_cast<std::uint64_t>(info->st_size) == node.size;
}

Result<void> Restore::restore_content(RestoreEntry entry) {
  if (entry.node.type == NodeType::file) return window_.add(std::move(entry));
  restore_special(entry);
  return {};
}

void Restore::restore_special(const RestoreEntry& entry) {
  const Fd& directory = *entry.directory;
  auto made = put_in_place(
      directory, entry.node.name, [&] { return make_room(directory, entry.node.name, entry.path); },
      [&](const std::string& name) { return make_special(directory, entry.node, name); });
  if (made && entry.linked) entry.linked->path = entry.path;
  if (made) made = apply_metadata(directory.get(), entry.node.name, entry.node);
  if (!made) return report_.failed(entry.path, made.error());
  report_.done(entry.path, entry.node, Action::restored);
}

// Counts the name. With its last one a file is forgotten; the entries that still need it hold it.
std::shared_ptr<LinkedFile> Restore::linked_file(const Node& node) {
  if (node.links < 2) return nullptr;
  const auto at = linked_files_.try_emplace({node.device, node.inode, content_digest(node)}).first;
  if (!at->second) {
    at->second = std::make_shared<LinkedFile>();
    at->second->names_left = node.links;
  }
  std::shared_ptr<LinkedFile> file = at->second;
  if (--file->names_left == 0) linked_files_.erase(at);
  return file;
}

Result<void> Restore::restore_node(Place& place, Node node, int depth) {
  if (stop_.stop_requested()) return interrupted();
  const std::string path = place.path.empty() ? node.name : place.path + "/" + node.name;
  const bool is_wanted = wanted(path);
  if (node.type == NodeType::directory) {
    // Something in it may be wanted even if it is not; but below an excluded directory nothing is.
    if (excluded(path)) return {};
    if (const auto above = existing(place); above && never_touch(*above, node.name)) {
      is_wanted ? report_.failed(path, untouchable()) : report_.left_alone(path);
      return {};
    }
    Place inside{&place, node, path};
    if (auto entered = is_wanted ? enter(inside) : Result<void>(); !entered) {
      report_.failed(path, entered.error());
      return {};
    }
    KIN_TRY(restore_directory(inside, node.subtree, depth + 1));
    if (inside.entered) report_.done(path, node, Action::restored);
    if (inside.fd) {
      left_.push_back({place.fd, std::move(node), path});
      if (left_.size() >= kMostLeftDirectories) KIN_TRY(run_window());
    }
    return {};
  }
  if (!is_wanted) {
    // Where a directory has its name, all in that is extra.
    const auto directory = request_.delete_extra && !excluded(path) ? existing(place) : nullptr;
    if (directory) delete_below(*directory, node.name, path);
    return {};
  }
  if (auto entered = enter(place); !entered) {
    report_.failed(path, entered.error());
    return {};
  }
  const std::shared_ptr<LinkedFile> linked = linked_file(node);
  // A dry run makes no directories; where there is none, there is nothing to keep either.
  if (const auto directory = existing(place); directory && keep_existing(*directory, node)) {
    if (linked && request_.overwrite == Overwrite::if_changed) {
      KIN_TRY(keep_name({place.fd, std::move(node), path, linked, true}));
      return links_.size() >= kMostLinks ? run_window() : Result<void>();
    }
    report_.done(path, node, Action::unchanged);
    return {};
  }
  if (request_.dry_run) return foresee(place, node, path, linked);
  RestoreEntry entry{place.fd, std::move(node), path, linked};
  if (linked && (linked->being_written || !linked->path.empty())) {
    links_.push_back(std::move(entry));
  } else {
    KIN_TRY(restore_content(std::move(entry)));
  }
  if (window_.full() || links_.size() >= kMostLinks) KIN_TRY(run_window());
  return {};
}

Result<void> Restore::restore_directory(Place& place, const ObjectId& tree, int depth) {
  if (depth > kMostTreeDepth) {
    report_.failed(place.path, Error(ErrorCode::corrupt, "more directories deep than kin ever stores"));
    return {};
  }
  TreeCursor cursor(store_, tree);
  std::set<std::string> names;
  for (;;) {
    auto node = cursor.next();
    if (!node) {
      // The rest of this directory cannot be known; then nothing may be deleted either.
      if (node.error().code() == ErrorCode::cancelled) return std::move(node).error();
      report_.failed(place.path, node.error());
      return {};
    }
    if (!*node) break;
    if (request_.only_name && depth == 0 && (*node)->name != *request_.only_name) continue;
    if (request_.delete_extra) names.insert((*node)->name);
    KIN_TRY(restore_node(place, **std::move(node), depth));
  }
  if (!request_.delete_extra || (request_.only_name && depth == 0)) return {};
  if (const auto directory = existing(place)) delete_extra(*directory, place.path, names);
  return {};
}

// Tells of an entry what a restore then does, and does nothing.
Result<void> Restore::foresee(Place& place, const Node& node, const std::string& path,
                              const std::shared_ptr<LinkedFile>& linked) {
  if (const auto directory = existing(place)) {
    if (const auto room = make_room(*directory, node.name, path); !room) {
      report_.failed(path, room.error());
      return {};
    }
  }
  bool has_content_already = false;
  if (linked && !linked->path.empty()) {
    KIN_TRY_ASSIGN(has_content_already, is_proven(*linked, node));
  }
  if (linked && !has_content_already) {
    linked->path = path;
    linked->was_there = false;
  }
  if (linked) linked->unproven = false;
  if (node.type == NodeType::file && !has_content_already) report_.count(&RestoreStats::bytes, node.size);
  report_.done(path, node, Action::restored);
  return {};
}

// Deletes all but these names, as far as the filters choose it; true if nothing is left.
bool Restore::delete_extra(const Fd& directory, const std::string& path, const std::set<std::string>& names) {
  const auto present = list_directory(directory.get(), path);
  if (!present) return report_.not_deleted(path.empty() ? "/" : path, present.error()), false;
  bool all = true;
  for (const std::string& name : *present) {
    if (stop_.stop_requested()) return false;
    const std::string entry_path = path.empty() ? name : path + "/" + name;
    const bool goes = !names.contains(name) && !is_temporary_name(name) && !excluded(entry_path);
    all &= goes && delete_entry(directory, name, entry_path);
  }
  return all;
}

// What is in it first: in a directory that is not chosen something may be.
bool Restore::delete_entry(const Fd& directory, const std::string& name, const std::string& path) {
  const bool empty = delete_below(directory, name, path);
  if (!empty || !wanted(path)) return false;
  const auto removed = request_.dry_run ? Result<void>() : remove_entry(directory, name, path);
  if (!removed) return report_.not_deleted(path, removed.error()), false;
  Node node;
  node.name = name;
  report_.done(path, node, Action::deleted);
  return true;
}

// All that is in a directory; true if nothing is left, or it is none.
bool Restore::delete_below(const Fd& directory, const std::string& name, const std::string& path) {
  if (never_touch(directory, name)) return report_.left_alone(path), false;
  if (request_.dry_run) {
    const Fd inside = open_directory(directory, name);
    return !inside || delete_extra(inside, path, {});
  }
  const UsableDirectory inside = open_usable_directory(directory, name);
  return !inside.fd() || delete_extra(*inside.fd(), path, {});
}

// Removes a directory that has the name of something else: if it is empty, or with --delete. A dry run only
// finds out whether that can be.
Result<void> Restore::make_room(const Fd& parent, const std::string& name, const std::string& path) {
  if (never_touch(parent, name)) return untouchable();
  if (request_.delete_extra) {
    const bool empty = delete_below(parent, name, path);
    if (stop_.stop_requested()) return interrupted();
    if (!empty)
      return Error(ErrorCode::io, "a directory is in its place, and not all that is in it can be deleted");
  } else if (const Fd inside = open_directory(parent, name)) {
    KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(inside.get(), path));
    if (!names.empty())
      return Error(ErrorCode::io, "a directory that is not empty is in its place; --delete deletes it");
  }
  return request_.dry_run ? Result<void>() : remove_entry(parent, name, path);
}

// The directory that a path below the target lies in, and its name there.
Result<std::pair<Fd, std::string>> Restore::find_below(const std::string& path) {
  std::vector<std::string> components = path_components(path);
  std::string name = std::move(components.back());
  components.pop_back();
  KIN_TRY_ASSIGN(Fd directory, open_below(*target_, components));
  return std::pair(std::move(directory), std::move(name));
}

// Whether the file has the node's content. An error only if asked to stop: one that cannot be read has not.
Result<bool> Restore::holds(const std::string& path, const Node& node) {
  const auto at = find_below(path);
  if (!at) return false;
  const Fd fd(::openat(at->first.get(), at->second.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const auto same = fd ? has_content(store_, request_.formats, fd, path, node, stop_) : Result<bool>(false);
  if (stop_.stop_requested()) return interrupted();
  return same && *same;
}

Result<bool> Restore::is_proven(const LinkedFile& file, const Node& node) {
  if (!file.unproven) return true;
  return holds(file.path, node);
}

// A name that is kept. If it is the first, its other names, where they are missing, become links to it. Where
// another was restored, it becomes a link to that if it turns out to have the content; if not, it is someone
// else's file.
Result<void> Restore::keep_name(RestoreEntry entry) {
  LinkedFile& file = *entry.linked;
  if (file.being_written) {
    links_.push_back(std::move(entry));
    return {};
  }
  if (file.path.empty()) {
    file.path = entry.path;
    file.was_there = file.unproven = true;
  }
  bool joined = false;
  if (!file.was_there) {
    KIN_TRY_ASSIGN(joined, holds(entry.path, entry.node));
  }
  if (joined && !request_.dry_run) return make_link(std::move(entry));
  report_.done(entry.path, entry.node, joined ? Action::restored : Action::unchanged);
  return {};
}

// The names whose first has its content by now become links to it. Where that failed, or a file that was kept
// does not have it, the next name gets the content, and those after it wait for that.
Result<void> Restore::make_links() {
  for (RestoreEntry& entry : std::exchange(links_, {})) {
    if (stop_.stop_requested()) return interrupted();
    LinkedFile& file = *entry.linked;
    if (file.being_written) {
      links_.push_back(std::move(entry));
      continue;
    }
    if (entry.kept) {
      KIN_TRY(keep_name(std::move(entry)));
      continue;
    }
    KIN_TRY_ASSIGN(const bool proven, is_proven(file, entry.node));
    if (!proven) {
      file.path.clear();
      file.was_there = false;
    }
    file.unproven = false;
    KIN_TRY(file.path.empty() ? restore_content(std::move(entry)) : make_link(std::move(entry)));
  }
  return {};
}

// A name that cannot be linked gets content of its own: it may lie on another file system, or on one that has
// no links, or the file may have as many as it can.
Result<void> Restore::make_link(RestoreEntry link) {
  bool linked = false;
  const auto make = [&]() -> Result<void> {
    KIN_TRY_ASSIGN(const auto first, find_below(link.linked->path));
    return put_in_place(
        *link.directory, link.node.name,
        [&] { return make_room(*link.directory, link.node.name, link.path); },
        [&](const std::string& new_name) -> Result<void> {
          if (::linkat(first.first.get(), first.second.c_str(), link.directory->get(), new_name.c_str(), 0) !=
              0)
            return errno_error("cannot link", link.path);
          linked = true;
          return {};
        });
  };
  const auto made = make();
  if (!linked && link.kept) return report_.done(link.path, link.node, Action::unchanged), Result<void>();
  if (!linked) return restore_content(std::move(link));
  if (made) report_.done(link.path, link.node, Action::restored);
  if (!made) report_.failed(link.path, made.error());
  return {};
}

Result<void> Restore::run_window() {
  KIN_TRY(window_.write());
  while (!links_.empty()) {
    KIN_TRY(make_links());
    KIN_TRY(window_.write());
  }
  // Last, since each entry made above changes its directory's time.
  for (const LeftDirectory& directory : left_) {
    if (auto applied = apply_metadata(directory.parent->get(), directory.node.name, directory.node); !applied)
      report_.failed(directory.path, applied.error());
    if (const auto usable = made_usable_.find(directory.path); usable != made_usable_.end()) {
      usable->second.keep_mode();
      made_usable_.erase(usable);
    }
  }
  left_.clear();
  return {};
}

Result<RestoreStats> Restore::run() {
  Place root;
  root.entered = true;
  KIN_TRY_ASSIGN(target_, open_target(request_.target, request_.never_touch, !request_.dry_run));
  root.fd = target_;
  KIN_TRY(restore_directory(root, request_.tree, 0));
  KIN_TRY(run_window());
  return report_.stats();
}

}  // namespace

Result<RestoreStats> restore(BlockStore& store, const RestoreRequest& request, RestoreObserver& observer,
                             std::stop_token stop) {
  return Restore(store, request, observer, std::move(stop)).run();
}

}  // namespace kin

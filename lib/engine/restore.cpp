#include "lib/engine/restore.h"

#include "lib/base/worker_pool.h"
#include "lib/engine/node_io.h"
#include "lib/engine/restored_file.h"
#include "lib/engine/target_directory.h"
#include "lib/object/content.h"
#include "lib/object/tree.h"

#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {
namespace {

constexpr std::size_t kWindowPieces = 4096;
constexpr std::size_t kWindowDirectories = 256;
constexpr std::uint64_t kWindowBytes = 64 << 20;
constexpr std::size_t kInFlightBytes = 16 << 20;

using Action = RestoreObserver::Action;

class Restore {
 public:
  Restore(BlockStore& store, const RestoreRequest& request, RestoreObserver& observer, std::stop_token stop)
      : store_(store),
        request_(request),
        observer_(observer),
        stop_(std::move(stop)),
        pool_(request.jobs, kInFlightBytes) {}

  Result<RestoreStats> run();

 private:
  // A directory on the way down. It is made only when something in it is wanted.
  struct Place {
    Place* parent = nullptr;
    Node node;
    std::string path;       // below the target
    std::string tree_path;  // in the snapshot
    std::shared_ptr<const Fd> fd;
  };

  // A block's object goes to this file at this offset.
  struct Piece {
    std::shared_ptr<RestoredFile> file;
    std::uint64_t offset;
    ObjectId id;
    std::uint64_t size;
  };

  struct LeftDirectory {
    std::shared_ptr<const Fd> parent;
    Node node;
    std::string path;
  };

  struct Link {
    std::shared_ptr<const Fd> directory;
    Node node;
    std::string path;
  };

  Result<void> restore_directory(Place& place, const ObjectId& tree, int depth);
  Result<void> restore_node(Place& place, Node node, bool wanted, int depth);
  void restore_file(Place& place, Node node, const std::string& path);
  void restore_special(Place& place, const Node& node, const std::string& path);
  Result<std::shared_ptr<const Fd>> open_place(Place& place);
  bool keep_existing(const Fd& directory, const Node& node);
  void delete_extra(Place& place, const std::set<std::string>& names);
  Result<void> remove_wanted(const Fd& parent, const std::string& name, const std::string& tree_path);
  Result<void> run_window();
  void write_block(const BlockRef& block, const std::vector<Piece>& pieces);
  void finish_file(RestoredFile& file);
  void verify_file(RestoredFile& file);
  void make_link(const Link& link);
  bool wanted(const std::string& tree_path) const;
  void fail(const std::string& path, const Error& error);
  void fail_file(RestoredFile& file, const Error& error);
  void count(std::uint64_t RestoreStats::*counter, std::uint64_t by = 1);

  BlockStore& store_;
  const RestoreRequest& request_;
  RestoreObserver& observer_;
  const std::stop_token stop_;
  std::shared_ptr<const Fd> target_;

  std::vector<std::shared_ptr<RestoredFile>> files_;
  std::map<BlockRef, std::vector<Piece>> blocks_;
  std::size_t pieces_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::vector<LeftDirectory> left_;
  std::vector<Link> links_;
  // Which file has the content of an inode with several names.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> first_names_;

  Mutex mutex_;
  RestoreStats stats_ KIN_GUARDED_BY(mutex_);
  WorkerPool pool_;  // last: its tasks use all of the above
};

void Restore::count(std::uint64_t RestoreStats::*counter, std::uint64_t by) {
  MutexLock lock(mutex_);
  stats_.*counter += by;
}

void Restore::fail(const std::string& path, const Error& error) {
  {
    MutexLock lock(mutex_);
    ++stats_.failed;
    stats_.corrupt |= error.code() == ErrorCode::corrupt;
  }
  observer_.on_failed(path, error);
}

void Restore::fail_file(RestoredFile& file, const Error& error) {
  if (!file.failed.exchange(true)) fail(file.path(), error);
}

bool Restore::wanted(const std::string& tree_path) const {
  if (request_.excludes.matches(tree_path)) return false;
  return request_.includes.empty() || request_.includes.matches(tree_path);
}

Result<std::shared_ptr<const Fd>> Restore::open_place(Place& place) {
  if (place.fd) return place.fd;
  KIN_TRY_ASSIGN(const auto above, open_place(*place.parent));
  KIN_TRY_ASSIGN(place.fd,
                 open_or_make_directory(*above, place.node.name, request_.overwrite != Overwrite::never));
  return place.fd;
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

void Restore::restore_file(Place& place, Node node, const std::string& path) {
  const std::vector<Extent> content = node.content;
  auto file = std::make_shared<RestoredFile>(place.fd, std::move(node), path, request_.sparse);
  files_.push_back(file);
  const auto planned =
      for_each_extent(store_, content, [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (extent.kind == Extent::Kind::hole) return {};
        KIN_TRY_ASSIGN(const BlockRef block, store_.locate(extent.id));
        blocks_[block].push_back({file, offset, extent.id, extent.size});
        ++file->pieces_left;
        ++pieces_;
        window_bytes_ += extent.size;
        if (pieces_ >= kWindowPieces || window_bytes_ >= kWindowBytes) {
          KIN_TRY(run_window());
          files_.push_back(file);
        }
        return {};
      });
  if (!planned) fail_file(*file, planned.error());
  file->planned = true;
}

void Restore::restore_special(Place& place, const Node& node, const std::string& path) {
  auto made = put_in_place(*place.fd, node.name, request_.delete_extra,
                           [&](const std::string& name) { return make_special(*place.fd, node, name); });
  if (made) made = apply_metadata(place.fd->get(), node.name, node);
  if (!made) return fail(path, made.error());
  count(&RestoreStats::others);
  observer_.on_entry(path, node, Action::restored);
}

Result<void> Restore::restore_node(Place& place, Node node, bool is_wanted, int depth) {
  if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  const std::string path = place.path.empty() ? node.name : place.path + "/" + node.name;
  const std::string tree_path = place.tree_path + "/" + node.name;
  if (node.type == NodeType::directory) {
    // Something in it may be wanted even if it is not; but below an excluded directory nothing is.
    if (request_.excludes.matches(tree_path)) return {};
    Place inside{&place, node, path, tree_path, nullptr};
    if (is_wanted && !request_.dry_run) {
      if (auto opened = open_place(inside); !opened) {
        fail(path, opened.error());
        return {};
      }
    }
    KIN_TRY(restore_directory(inside, node.subtree, depth + 1));
    if (is_wanted || inside.fd) {
      count(&RestoreStats::directories);
      observer_.on_entry(path, node, Action::restored);
    }
    if (inside.fd && !request_.dry_run) {
      left_.push_back({place.fd, std::move(node), path});
      if (left_.size() >= kWindowDirectories) KIN_TRY(run_window());
    }
    return {};
  }
  if (!is_wanted) return {};
  if (!request_.dry_run) {
    if (auto opened = open_place(place); !opened) {
      fail(path, opened.error());
      return {};
    }
  }
  // A dry run makes no directories; where there is none, there is nothing to keep either.
  if (place.fd && keep_existing(*place.fd, node)) {
    // It has the content of the snapshot, so its other names, where they are missing, become links to it.
    if (node.links > 1 && request_.overwrite == Overwrite::if_changed)
      first_names_.try_emplace({node.device, node.inode}, path);
    count(&RestoreStats::unchanged);
    observer_.on_entry(path, node, Action::unchanged);
    return {};
  }
  if (request_.dry_run) {
    count(node.type == NodeType::file ? &RestoreStats::files : &RestoreStats::others);
    if (node.type == NodeType::file) count(&RestoreStats::bytes, node.size);
    observer_.on_entry(path, node, Action::restored);
    return {};
  }
  if (node.links > 1) {
    const auto [first, is_first] = first_names_.try_emplace({node.device, node.inode}, path);
    if (!is_first) {
      links_.push_back({place.fd, std::move(node), path});
      return {};
    }
  }
  if (node.type == NodeType::file) {
    restore_file(place, std::move(node), path);
    if (files_.size() >= kWindowPieces) KIN_TRY(run_window());
  } else {
    restore_special(place, node, path);
  }
  return {};
}

Result<void> Restore::restore_directory(Place& place, const ObjectId& tree, int depth) {
  if (depth > kMostTreeDepth) {
    fail(place.path, Error(ErrorCode::corrupt, "more directories deep than kin ever stores"));
    return {};
  }
  if (request_.dry_run && place.parent != nullptr && place.parent->fd) {
    Fd existing(::openat(place.parent->fd->get(), place.node.name.c_str(),
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (existing) place.fd = std::make_shared<const Fd>(std::move(existing));
  }
  TreeCursor cursor(store_, tree);
  std::set<std::string> names;
  for (;;) {
    auto node = cursor.next();
    if (!node) {
      // The rest of this directory cannot be known; then nothing may be deleted either.
      if (node.error().code() == ErrorCode::cancelled) return std::move(node).error();
      fail(place.path.empty() ? "/" : place.path, node.error());
      return {};
    }
    if (!*node) break;
    if (request_.only_name && depth == 0 && (*node)->name != *request_.only_name) continue;
    if (request_.delete_extra) names.insert((*node)->name);
    const bool is_wanted = wanted(place.tree_path + "/" + (*node)->name);
    KIN_TRY(restore_node(place, **std::move(node), is_wanted, depth));
  }
  if (request_.delete_extra && !(request_.only_name && depth == 0)) delete_extra(place, names);
  return {};
}

// A directory goes with all that is in it, but for what the filters protect.
Result<void> Restore::remove_wanted(const Fd& parent, const std::string& name, const std::string& tree_path) {
  if (request_.includes.empty() && request_.excludes.empty()) return remove_entry(parent, name, true);
  const Fd inside(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inside) return remove_entry(parent, name, false);
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_entries(inside));
  bool empty = true;
  for (const std::string& entry : names) {
    const std::string path = tree_path + "/" + entry;
    if (wanted(path)) KIN_TRY(remove_wanted(inside, entry, path));
    empty &= ::faccessat(inside.get(), entry.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  }
  return empty ? remove_entry(parent, name, false) : Result<void>();
}

void Restore::delete_extra(Place& place, const std::set<std::string>& names) {
  if (!place.fd) return;
  const auto present = list_entries(*place.fd);
  if (!present) return fail(place.path, present.error());
  for (const std::string& name : *present) {
    const std::string path = place.path.empty() ? name : place.path + "/" + name;
    if (names.contains(name) || is_temporary_name(name) || !wanted(place.tree_path + "/" + name)) continue;
    const auto removed =
        request_.dry_run ? Result<void>() : remove_wanted(*place.fd, name, place.tree_path + "/" + name);
    if (!removed) {
      fail(path, removed.error());
      continue;
    }
    count(&RestoreStats::deleted);
    Node node;
    node.name = name;
    observer_.on_entry(path, node, Action::deleted);
  }
}

void Restore::finish_file(RestoredFile& file) {
  if (file.finished || file.failed) return;
  if (auto finished = file.finish(); !finished) return fail_file(file, finished.error());
  count(&RestoreStats::files);
  count(&RestoreStats::bytes, file.node().size);
  observer_.on_entry(file.path(), file.node(), Action::restored);
}

void Restore::write_block(const BlockRef& block, const std::vector<Piece>& pieces) {
  const auto content = store_.load_block(block);
  for (const Piece& piece : pieces) {
    RestoredFile& file = *piece.file;
    if (!content) {
      fail_file(file, content.error());
    } else if (!file.failed) {
      const std::optional<ByteView> bytes = (*content)->find(piece.id);
      const bool right = bytes && bytes->size() == piece.size;
      auto written = right ? file.write(*bytes, piece.offset)
                           : Result<void>(Error(
                                 ErrorCode::corrupt,
                                 "object " + piece.id.short_hex() +
                                     " is not where the index says, or not of the size that the tree says"));
      if (!written) fail_file(file, written.error());
      if (written) observer_.on_bytes(bytes->size());
    }
    if (file.pieces_left.fetch_sub(1) == 1 && file.planned) finish_file(file);
  }
}

void Restore::verify_file(RestoredFile& file) {
  if (file.failed) return;
  const auto same = for_each_extent(
      store_, file.node().content, [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (extent.kind == Extent::Kind::hole) return {};
        KIN_TRY_ASSIGN(const Bytes bytes, file.read_back(offset, static_cast<std::size_t>(extent.size)));
        if (store_.id_of(bytes) != extent.id)
          return Error(ErrorCode::io, "the file does not read back as it was written");
        return {};
      });
  if (!same) return fail_file(file, same.error());
  count(&RestoreStats::verified);
}

void Restore::make_link(const Link& link) {
  std::vector<std::string> components = path_components(first_names_[{link.node.device, link.node.inode}]);
  const std::string name = std::move(components.back());
  components.pop_back();
  const auto make = [&]() -> Result<void> {
    KIN_TRY_ASSIGN(const Fd directory, open_below(*target_, components));
    return put_in_place(
        *link.directory, link.node.name, request_.delete_extra,
        [&](const std::string& new_name) -> Result<void> {
          if (::linkat(directory.get(), name.c_str(), link.directory->get(), new_name.c_str(), 0) != 0)
            return errno_error("cannot link", link.path);
          return {};
        });
  };
  if (auto made = make(); !made) return fail(link.path, made.error());
  count(link.node.type == NodeType::file ? &RestoreStats::files : &RestoreStats::others);
  observer_.on_entry(link.path, link.node, Action::restored);
}

Result<void> Restore::run_window() {
  for (const auto& [block, pieces] : blocks_)
    pool_.submit(
        [this, &block = block, &pieces = pieces]() -> Result<void> {
          if (!stop_.stop_requested()) write_block(block, pieces);
          return {};
        },
        static_cast<std::size_t>(block.content_size));
  KIN_TRY(pool_.wait());
  blocks_.clear();
  if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  // Those without content, and those whose last piece was written before it was known to be the last.
  for (const auto& file : files_)
    if (file->planned && file->pieces_left == 0) finish_file(*file);
  for (const auto& file : files_)
    if (request_.verify && file->finished)
      pool_.submit([this, file]() -> Result<void> { return verify_file(*file), Result<void>(); },
                   Segmenter::kMostBytes);
  KIN_TRY(pool_.wait());
  files_.clear();
  for (const Link& link : links_) make_link(link);
  links_.clear();
  // Last, since each entry made above changes its directory's time.
  for (const LeftDirectory& directory : left_) {
    if (auto applied = apply_metadata(directory.parent->get(), directory.node.name, directory.node); !applied)
      fail(directory.path, applied.error());
  }
  left_.clear();
  pieces_ = 0;
  window_bytes_ = 0;
  return {};
}

Result<RestoreStats> Restore::run() {
  Place root;
  root.tree_path = request_.tree_path;
  if (!request_.dry_run) {
    KIN_TRY_ASSIGN(target_, open_target(request_.target));
    root.fd = target_;
  } else if (Fd existing(::open(request_.target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); existing) {
    root.fd = std::make_shared<const Fd>(std::move(existing));
  }
  KIN_TRY(restore_directory(root, request_.tree, 0));
  KIN_TRY(run_window());
  MutexLock lock(mutex_);
  return stats_;
}

}  // namespace

Result<RestoreStats> restore(BlockStore& store, const RestoreRequest& request, RestoreObserver& observer,
                             std::stop_token stop) {
  return Restore(store, request, observer, std::move(stop)).run();
}

}  // namespace kin

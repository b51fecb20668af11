// Any directory tree: files, directories and symlinks by their paths. Of a file its content, permission bits
// and mtime are kept, of a directory its permission bits, of a symlink its target. Owners, extended
// attributes and hard links are not kept; FIFOs, sockets and devices are not seen.
//
// Nothing outside the root is ever touched: a path is opened a component at a time, and none may be a
// symlink.
#include "lib/base/file.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"
#include "lib/sync/tree_batch.h"
#include "lib/sync/tree_entry.h"

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {
namespace tree {
namespace {

class TreeStore : public SyncStore {
 public:
  explicit TreeStore(std::string root) : root_(std::move(root)) {}

  const char* kind() const override { return "tree"; }
  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override;
  Result<void> scan(const std::string& folder, const OnEntry& on_entry, const OnSkipped& on_skipped) override;
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override;
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override;
  std::string path_of(const std::string& folder, const Entry& entry) const override {
    return root_.full(join_path(folder, entry.local));
  }

 private:
  Result<void> list_below(int directory, const std::string& folder, std::vector<std::string>& out,
                          const OnSkipped& on_skipped) const;
  Result<std::vector<std::string>> names_in(int directory, const std::string& path) const;
  void remove_old_temporaries();

  Root root_;
  bool is_tidy_ = false;
};

Result<std::vector<std::string>> TreeStore::folders(const OnSkipped& on_skipped) {
  std::vector<std::string> out;
  const Result<Fd> root = root_.open("");
  if (!root && root.error().code() == ErrorCode::not_found) return out;
  if (!root) return root.error();
  out.emplace_back();
  KIN_TRY(list_below(root->get(), "", out, on_skipped));
  std::sort(out.begin(), out.end());
  return out;
}

// An error is of this directory alone.
Result<void> TreeStore::list_below(int directory, const std::string& folder, std::vector<std::string>& out,
                                   const OnSkipped& on_skipped) const {
  std::vector<std::string> names;
  KIN_TRY(for_each_name(directory, root_.full(folder), [&](std::string_view name, unsigned char type) {
    const bool may_be = type == DT_DIR || type == DT_UNKNOWN;  // opening tells
    if (may_be && !is_temporary(name)) names.emplace_back(name);
    return true;
  }));
  for (const std::string& name : names) {
    const std::string below = join_path(folder, name);
    if (!fits(below)) continue;  // scan() tells of it
    const Result<Fd> next = open_below(directory, name, root_.full(below), ErrorCode::not_found);
    if (!next && next.error().code() == ErrorCode::not_found) continue;
    const std::size_t before = out.size();
    if (next) out.push_back(below);
    const Result<void> listed =
        next ? list_below(next->get(), below, out, on_skipped) : Result<void>(next.error());
    if (listed) continue;
    out.resize(before);
    on_skipped(below, listed.error());
  }
  return {};
}

// A listing may miss what is renamed meanwhile. If the directory has changed, another look is added to the
// first; who is gone by then is not there when it is looked at.
Result<std::vector<std::string>> TreeStore::names_in(int directory, const std::string& path) const {
  constexpr int kMostLooks = 5;
  std::vector<std::string> names;
  for (int looks = 0; looks < kMostLooks; ++looks) {
    struct stat before {
    }, after{};
    if (::fstat(directory, &before) != 0) return errno_error("cannot look at", path);
    KIN_TRY_ASSIGN(std::vector<std::string> more, list_directory(directory, path));
    if (::fstat(directory, &after) != 0) return errno_error("cannot look at", path);
    names.insert(names.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec)
      break;
  }
  return names;
}

Result<void> TreeStore::scan(const std::string& folder, const OnEntry& on_entry,
                             const OnSkipped& on_skipped) {
  KIN_TRY_ASSIGN(const Fd directory, root_.open(folder));
  KIN_TRY_ASSIGN(const std::vector<std::string> names, names_in(directory.get(), root_.full(folder)));
  for (const std::string& name : names) {
    if (is_temporary(name)) continue;
    const std::string below = join_path(folder, name);
    Result<Entry> entry = look(directory.get(), folder, name, root_.full(below));
    if (entry && entry->item.type == ItemType::directory && !fits(below))
      entry = Error(ErrorCode::unsupported, printable(root_.full(below)) + " is too deep in the tree");
    else if (!entry &&
             (entry.error().code() == ErrorCode::not_found || entry.error().code() == ErrorCode::unsupported))
      continue;
    if (entry)
      KIN_TRY(on_entry(*std::move(entry)));
    else
      on_skipped(name, entry.error());
  }
  return {};
}

Result<std::unique_ptr<ByteSource>> TreeStore::read(const std::string& folder, const Entry& entry) {
  const std::string path = path_of(folder, entry);
  KIN_TRY_ASSIGN(const Fd directory, root_.open(folder));
  // Looked at first: to open a device can have effects.
  KIN_TRY_ASSIGN(const Entry now, look(directory.get(), folder, entry.local, path));
  if (now.item.type != ItemType::file || now.fingerprint != entry.fingerprint) return not_as_it_was(path);
  Fd file(::openat(directory.get(), entry.local.c_str(), kOpenFile));
  if (!file && errno == ELOOP) return not_as_it_was(path);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return errno_error("cannot open", path);
  if (!S_ISREG(info.st_mode) || fingerprint_of(info) != entry.fingerprint) return not_as_it_was(path);
  return file_source(std::move(file), path, entry.fingerprint);
}

std::vector<Result<Entry>> TreeStore::apply(std::vector<StoreChange> changes) {
  if (!std::exchange(is_tidy_, true)) remove_old_temporaries();
  return apply_changes(root_, changes);
}

// Left by a crash.
void TreeStore::remove_old_temporaries() {
  const Result<std::vector<std::string>> all = folders([](const std::string&, const Error&) {});
  if (!all) return;
  for (const std::string& folder : *all) {
    const Result<Fd> directory = root_.open(folder);
    if (!directory) continue;
    const Result<std::vector<std::string>> names = list_directory(directory->get(), folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      struct stat info {};
      if (is_temporary(name) && ::fstatat(directory->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
          is_left_over(name, info))
        ::unlinkat(directory->get(), name.c_str(), 0);
    }
  }
}

}  // namespace
}  // namespace tree

int detect_tree(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_tree(const std::string& root);

int detect_tree(const std::string& root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0) return errno == ENOENT ? 1 : 0;
  return S_ISDIR(info.st_mode) ? 1 : 0;
}

Result<std::unique_ptr<SyncStore>> open_tree(const std::string& root) {
  if (detect_tree(root) == 0)
    return Error(ErrorCode::invalid_argument, printable(root) + " is not a directory");
  return std::unique_ptr<SyncStore>(new tree::TreeStore(root));
}

}  // namespace kin::sync

// Folders of an mbox store: its root is one mbox, which is then the folder "", or a directory of them. There
// a folder is a file, named by its path, or a directory on the way to one.
//
// Nothing outside the root is ever touched: a path is opened a component at a time, and none may be a
// symlink. One thread at a time.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/mbox_lock.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace kin::sync::mbox {

// The name of the entry, if the root is one file that is kept whole.
inline constexpr const char* kRootFileName = "mbox";

// What mail programs have beside mbox files, and what is ours.
bool is_ignored(std::string_view name);

enum class Class {
  other,
  box,
  opaque,  // a file that is kept whole
  directory
};
// By the first kMostEnvelope bytes of a file, and its size.
Class class_of_content(std::string_view head, std::uint64_t size, const Options& options);
// not_found if there is nothing. What cannot be read counts as a box: then a scan says so, and it does not
// look as if it were gone.
Result<Class> class_of(const Place& place, const Options& options, struct stat& info);
// The same when a change of the file that was cut is finished.
Result<Class> settled_class_of(const Place& place, const Options& options, struct stat& info);

// A place with the directory that it is in.
struct Spot {
  Fd directory;
  Place place;
};

class Folders {
 public:
  Folders(std::string root, const Options& options) : root_(std::move(root)), options_(options) {}

  const Options& options() const { return options_; }
  std::string path(const std::string& folder) const { return folder.empty() ? root_ : root_ + "/" + folder; }

  Result<bool> root_is_file() const;
  // What the root is to be, if it is not there.
  void make_root_a_file(bool is_file) { missing_root_is_file_ = is_file; }

  // Every folder, in order. A directory below the root that cannot be looked at goes to on_skipped instead.
  Result<std::vector<std::string>> all(const SyncStore::OnSkipped& on_skipped) const;
  // By the path below the root, of a folder or an opaque file. With `make`, the directories on the way are
  // made; without it, not_found if they are not there. unsupported, if nothing can be there.
  Result<Spot> spot_of(const std::string& path, bool make) const;
  Result<Spot> spot_of_file(const std::string& folder, const std::string& name, bool make) const;
  // That of a folder which is one; not_found if it is not.
  Result<Fd> open_directory(const std::string& folder) const;

  // An empty one, unless there is a file. On the disk when this returns.
  Result<void> make_box(const Place& place) const;
  // A change of an item of type directory. busy, if a folder that is to be removed is not empty.
  Result<Entry> apply(const StoreChange& change) const;

 private:
  Result<Fd> open_root(bool make) const;
  Result<Fd> enter(const Place& place, bool make) const;
  Result<void> walk(const Fd& directory, const std::string& path, std::size_t depth,
                    std::set<std::string>& out, const SyncStore::OnSkipped& on_skipped) const;

  const std::string root_;
  const Options options_;
  bool missing_root_is_file_ = true;
};

}  // namespace kin::sync::mbox

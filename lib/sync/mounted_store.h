// MountedStore: a store in which other file systems may be mounted. A directory on which one was, and that is
// empty now that none is, is a disk that is not mounted, and no wish to delete what was on it: it is told of
// as a directory that cannot be looked at, and nothing is put there, where it would be hidden later. Whoever
// does want to delete all of it deletes the directory.
//
// Which mounts there were is noted in the replica, until something else is shown to be there: nothing, or a
// directory with something in it that the system does not list as mounted. What cannot be looked at (a server
// that does not answer, a directory without permissions, a system without /proc) shows nothing.
//
// One thread at a time.
#pragma once

#include "lib/sync/replica.h"
#include "lib/sync/sync_store.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kin::sync {

class MountedStore : public SyncStore {
 public:
  // `root` is canonical; the replica must outlive this. `mounts_file` is as in proc(5): /proc/PID/mountinfo.
  static Result<std::unique_ptr<MountedStore>> open(std::unique_ptr<SyncStore> store, std::string root,
                                                    Replica& replica,
                                                    std::string mounts_file = "/proc/self/mountinfo");

  // Notes which there are, after a scan.
  Result<void> remember();

  const char* kind() const override { return store_->kind(); }
  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override;
  Result<std::optional<std::uint64_t>> folder_fingerprint(const std::string& folder) override {
    return store_->folder_fingerprint(folder);
  }
  Result<void> scan(const std::string& folder, const OnEntry& on_entry, const OnSkipped& on_skipped) override;
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override {
    return store_->read(folder, entry);
  }
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override;
  std::string path_of(const std::string& folder, const Entry& entry) const override {
    return store_->path_of(folder, entry);
  }

 private:
  // The directory that is mounted, as an entry of the one that it is in: what it is below it is another one.
  struct Look {
    Fingerprint fingerprint;
    std::uint32_t mode = 0;
  };
  struct Now {
    std::uint64_t device = 0, inode = 0;  // device 0: it is not there
    std::optional<Error> away;            // why nothing of it counts as gone
    bool is_something_else = false;
  };
  struct Mount {
    std::optional<Look> last_look;  // by a scan; none of mail, where directories are no entries
    Now now;
  };

  MountedStore(std::unique_ptr<SyncStore> store, std::string root, Replica& replica, std::string mounts_file)
      : store_(std::move(store)),
        root_(std::move(root)),
        replica_(replica),
        mounts_file_(std::move(mounts_file)) {}

  Result<void> load();
  void look();
  static Now look_at(const std::string& path, bool is_listed, const Error* why_unknown);
  const Error* why_away(const std::string& path) const;  // null: what it is on is there
  Result<void> check_same_mount(const std::string& folder) const;

  const std::unique_ptr<SyncStore> store_;
  const std::string root_;
  Replica& replica_;
  const std::string mounts_file_;
  std::map<std::string, Mount> mounts_;  // by path below the root
};

// The directories below `root` on which something is mounted, by what a mountinfo file says. For tests.
std::vector<std::string> mounts_below(const std::string& root, std::string_view mountinfo);

}  // namespace kin::sync

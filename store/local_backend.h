// LocalBackend: a repository in a directory.
//
//     config   keys/<name>   packs/<first two digits>/<name>   index/<name>   snapshots/<name>   tmp/ reserve
//     forgotten/<name>   marks/<name>   parity/<name>
//
// put() writes to tmp/; sync() flushes those files, renames them into place and flushes the directories. So a
// file under its final name is always whole, and a crash leaves at most rubbish in tmp/, which a later writer
// sweeps once its owner is gone.
//
// `reserve` is 64 KiB of nothing. When the disk is full, it is given up so that small index segments and
// snapshots can still be written: what a backup has stored so far is kept, and deleting (which has to write a
// little first) stays possible. It is made again when there is room.
#pragma once

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "store/backend.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kin::store {

class LocalBackend : public Backend {
 public:
  // Touches nothing until the first put().
  explicit LocalBackend(std::string directory);
  ~LocalBackend() override;  // abandons what was not synced

  std::string location() const override { return directory_; }
  Result<void> put(const FileName& name, ByteView bytes) override;
  Result<std::unique_ptr<Draft>> begin() override;
  Result<void> sync() override;
  Result<void> put_durably(const FileName& name, ByteView bytes) override;
  Result<Bytes> get(const FileName& name) override;
  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override;
  Result<std::vector<FileInfo>> list(FileKind kind) override;
  Result<void> remove(const FileName& name) override;

 private:
  friend class LocalDraft;

  struct Pending {
    std::string temporary_path;
    Fd fd;
    std::uint64_t size = 0;
    std::uint64_t order = 0;  // as they were put
  };

  std::string path_of(const FileName& name) const;
  Result<void> prepare_to_write() KIN_REQUIRES(mutex_);
  Result<void> make_own_temporary() KIN_REQUIRES(mutex_);
  Result<Pending> make_temporary() KIN_REQUIRES(mutex_);
  Result<Pending> write_temporary(ByteView bytes) KIN_REQUIRES(mutex_);
  void keep(const FileName& name, Pending pending) KIN_REQUIRES(mutex_);
  Result<void> move_into_place(const FileName& name, const Pending& pending) KIN_REQUIRES(mutex_);
  Result<void> flush_folders() KIN_REQUIRES(mutex_);
  bool give_up_reserve() KIN_REQUIRES(mutex_);  // false if there is none
  Result<Fd> open_file(const FileName& name);
  void sweep_temporary_files();
  void make_reserve();

  const std::string directory_;
  Mutex mutex_;
  bool prepared_ KIN_GUARDED_BY(mutex_) = false;
  bool gave_up_reserve_ KIN_GUARDED_BY(mutex_) = false;  // and must not take the room again
  // The kernel reports a failed flush once. After it nothing can be known to be on the disk, so nothing
  // more is written.
  std::optional<Error> broken_ KIN_GUARDED_BY(mutex_);
  std::string own_temporary_
      KIN_GUARDED_BY(mutex_);  // tmp/<something>: this process's folder, locked while it lives
  Fd own_lock_ KIN_GUARDED_BY(mutex_);
  std::uint64_t next_temporary_ KIN_GUARDED_BY(mutex_) = 0;
  std::map<FileName, Pending> pending_ KIN_GUARDED_BY(mutex_);
  std::set<std::string> unflushed_folders_ KIN_GUARDED_BY(mutex_);  // that files were moved into
  std::set<std::string> used_folders_ KIN_GUARDED_BY(mutex_);       // whose names are or will be flushed
};

}  // namespace kin::store

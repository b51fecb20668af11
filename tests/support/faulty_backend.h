// FaultyDisk and FaultyBackend: a Backend in memory that forgets what was not synced, and fails when it is
// told to.
//
// The disk is what survives; a FaultyBackend is one process that uses it. What a process put is visible to it
// alone until its sync(), and is lost when it crashes before, or some of it is. So a test writes through one
// backend, calls crash() and restart(), and looks at what is left through another. Both are thread-safe. A
// backend must not outlive its disk.
#pragma once

#include "lib/base/mutex.h"
#include "store/backend.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kin::testing {

using store::FileInfo;
using store::FileKind;
using store::FileName;

enum class Operation { put, append, sync, get, list, remove };  // get stands for get_range too

class FaultyDisk {
 public:
  std::unique_ptr<store::Backend> open();  // a new process

  // The n-th operation of this kind from now on fails, once; 1 is the next. It changes nothing.
  void fail(Operation operation, std::uint64_t nth = 1, ErrorCode code = ErrorCode::io);

  // Everything crashes: what was not synced is gone, and every operation fails until restart(). The processes
  // from before it stay dead.
  void crash();
  // As soon as `steps` more changes have been made, and the operation that made the last one fails too:
  // nobody learns that it succeeded. A put, an append to a draft and a remove are one step each; a sync is
  // one step for each file that it makes durable, so that a crash may come in its midst.
  void crash_after(std::uint64_t steps);
  // What a crash leaves of what was put and not synced. A disk may have written any of it, in any order.
  enum class Unsynced { lost, kept, every_other };
  void leave(Unsynced unsynced);
  void restart();
  bool crashed() const;

  // A put or an append that would make all files together, drafts included, larger than this fails with
  // no_space.
  void set_quota(std::uint64_t bytes);
  void lift_quota() { set_quota(std::numeric_limits<std::uint64_t>::max()); }
  std::uint64_t used_bytes() const;

  // From now on, readers get other bytes than were written, and list() tells the other length. heal() ends
  // all of that.
  void damage(const FileName& name, Bytes bytes);
  void flip(const FileName& name, std::size_t offset, std::uint8_t mask = 0xff);
  void cut(const FileName& name, std::size_t length);
  // From now on, reading any of these bytes fails, as of a bad sector; until the file is written again, or
  // heal().
  void spoil(const FileName& name, std::uint64_t offset, std::uint64_t size);
  void heal();

  // Behind everyone's back: what is durable, and changes to it that no backend made.
  std::map<FileName, Bytes> files() const;
  std::vector<FileName> names(FileKind kind) const;
  bool has(const FileName& name) const;
  Bytes file(const FileName& name) const;  // must be there
  void write(const FileName& name, Bytes bytes);
  void erase(const FileName& name);

  std::uint64_t count(Operation operation) const;  // that were asked for, successful or not
  std::uint64_t steps() const;                     // changes made so far

 private:
  friend class FaultyBackend;
  friend class FaultyDraft;
  using Files = std::map<FileName, Bytes>;
  struct Fault {
    std::uint64_t countdown;
    ErrorCode code;
  };

  Result<void> begin(Operation operation, std::uint64_t generation) KIN_REQUIRES(mutex_);
  bool step_crashes() KIN_REQUIRES(mutex_);
  void crash_locked() KIN_REQUIRES(mutex_);
  std::uint64_t used_locked() const KIN_REQUIRES(mutex_);
  Result<void> require_readable(const FileName& name, std::uint64_t offset, std::uint64_t size) const
      KIN_REQUIRES(mutex_);
  bool has_room(std::uint64_t bytes) const KIN_REQUIRES(mutex_);
  // What a reader of process `owner` sees; null if there is no such file.
  const Bytes* find(std::uint64_t owner, const FileName& name) const KIN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Files durable_ KIN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Files> pending_ KIN_GUARDED_BY(mutex_);  // by process
  std::uint64_t draft_bytes_ KIN_GUARDED_BY(mutex_) = 0;           // of all drafts that are not put
  Files damaged_ KIN_GUARDED_BY(mutex_);                           // shadows durable_
  struct Range {
    std::uint64_t offset, size;
  };
  std::map<FileName, Range> spoiled_ KIN_GUARDED_BY(mutex_);
  std::map<Operation, Fault> faults_ KIN_GUARDED_BY(mutex_);
  std::map<Operation, std::uint64_t> counts_ KIN_GUARDED_BY(mutex_);
  std::uint64_t steps_ KIN_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> steps_to_crash_ KIN_GUARDED_BY(mutex_);
  bool crashed_ KIN_GUARDED_BY(mutex_) = false;
  Unsynced unsynced_ KIN_GUARDED_BY(mutex_) = Unsynced::lost;
  std::uint64_t generation_ KIN_GUARDED_BY(mutex_) = 0;  // counts restarts
  std::uint64_t next_process_ KIN_GUARDED_BY(mutex_) = 0;
  std::uint64_t quota_bytes_ KIN_GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
};

class FaultyBackend : public store::Backend {
 public:
  explicit FaultyBackend(FaultyDisk& disk);
  ~FaultyBackend() override;  // abandons what was not synced

  std::string location() const override { return "faulty disk"; }
  Result<void> put(const FileName& name, ByteView bytes) override;
  Result<std::unique_ptr<store::Draft>> begin() override;
  Result<void> sync() override;
  Result<Bytes> get(const FileName& name) override;
  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override;
  Result<std::vector<FileInfo>> list(FileKind kind) override;
  Result<void> remove(const FileName& name) override;

 private:
  friend class FaultyDraft;

  Result<void> put_locked(const FileName& name, ByteView bytes) KIN_REQUIRES(disk_.mutex_);

  FaultyDisk& disk_;
  std::uint64_t process_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace kin::testing

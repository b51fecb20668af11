// Copy: snapshots of one repository, and all that they need, into another. The keys differ, and with them the
// ids of all objects; docs/decisions/0024 says what follows from that.
//
// Snapshots are copied one by one, the oldest first, and each is committed when all of it is there. A copy
// that is interrupted leaves whole snapshots, and content that the next one finds stored.
#pragma once

#include "store/block_use.h"
#include "store/copy_lesson.h"
#include "store/snapshots.h"
#include "store/tree_copy.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

namespace kin::store {

struct CopyProgress {
  std::uint64_t snapshot = 0, snapshots = 0;  // the one at work, from 1, of so many
  CopiedContent copied;
  std::uint64_t most_bytes = 0;  // to be read of the source, at most
};

struct CopyObserver {
  std::function<void(const StoredSnapshot& snapshot, const SnapshotId& copy)> on_copied;
  std::function<void(const StoredSnapshot& snapshot, const SnapshotId& copy)>
      on_there;  // since an earlier copy
  std::function<void(const StoredSnapshot& snapshot, const Error& why)> on_left_out;
  std::function<void(const Error& error)> on_damage;  // of a snapshot in the target
  std::function<void(const CopyProgress& progress)> on_progress;
};

struct CopyReport {
  std::uint64_t copied = 0, there = 0, left_out = 0;  // snapshots; in a dry run, that would be
  CopiedContent content;                              // in a dry run only read_bytes, at most
};

class Copy {
 public:
  Copy(Repository& source, Repository& target, const CopyObserver& observer)
      : source_(source), target_(target), observer_(observer) {}

  // Of the source, in the order of their times. invalid_argument if the two are one repository; refused if
  // the target is read-only. Damage of the source costs the snapshots that have it, and no others.
  Result<CopyReport> run(const std::vector<StoredSnapshot>& snapshots, const std::stop_token& stop);
  // What run() would do; reads no content.
  Result<CopyReport> rehearse(const std::vector<StoredSnapshot>& snapshots, const std::stop_token& stop);

 private:
  Result<void> begin(const std::vector<StoredSnapshot>& snapshots);
  Result<void> copy_all(const std::stop_token& stop);
  Result<void> copy_one(TreeCopy& trees, const StoredSnapshot& stored);
  Result<void> learn_for(CopyLesson& lesson, const Snapshot& snapshot);
  void tell_progress(std::uint64_t at);

  Repository& source_;
  Repository& target_;
  const CopyObserver& observer_;
  CopyReport report_;
  std::vector<StoredSnapshot> left_;  // to be copied
  struct Pair {
    StoredSnapshot snapshot, copy;
  };
  std::vector<Pair> there_;            // copied earlier, in the order of their times
  std::set<SnapshotId> learned_from_;  // of these
  std::map<SnapshotId, SnapshotId> copies_;
  CopiedIds ids_;
  std::optional<BlockUse> use_;
  std::optional<BlockCopy> blocks_;
  std::uint64_t at_ = 0;
};

}  // namespace kin::store

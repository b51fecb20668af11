// Repair: saves what can be saved of a repository that has damage. What can be read is never lost by it, and
// what is set aside stays until a prune removes it. The index is to be sound first
// (Repository::rebuild_index()).
#pragma once

#include "lib/object/tree.h"
#include "store/group_writer.h"
#include "store/repository.h"
#include "store/short_id.h"

#include <functional>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>

namespace kin::store {

struct RepairObserver {
  std::function<void(const std::string& text)> on_found;  // what is wrong, or lost
  std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> on_progress;
};

struct PackRepair {
  std::uint64_t packs = 0, bytes = 0;      // that were read
  std::uint64_t damaged = 0, missing = 0;  // packs
  std::uint64_t healed = 0;                // from parity, and neither of these
  std::uint64_t saved_blocks = 0, lost_blocks = 0;
  std::uint64_t doubled_blocks = 0;  // neither: all that is in them is sound in other packs
};
// Reads all packs. Damaged ones are healed, if there is parity for it. Of others, the blocks that are sound,
// and nowhere else, are stored again in new packs. No segment lists the damaged ones any more, nor those that
// are missing, and a prune will remove them. So a backup that meets again what is lost stores it again.
Result<PackRepair> repair_packs(Repository& repository, bool dry_run, const RepairObserver& observer,
                                const std::stop_token& stop);

struct SnapshotRepair {
  std::uint64_t snapshots = 0;  // that were read
  std::uint64_t repaired = 0;   // replaced by one without what cannot be read
  std::uint64_t unreadable = 0;
  std::uint64_t lost = 0;  // files, and directories in part or whole; once for each snapshot
};
// Reads all that the snapshots name. One that names what cannot be read is replaced by one that does not,
// with the tag "repaired", and is forgotten; one that cannot be read itself is forgotten.
Result<SnapshotRepair> repair_snapshots(Repository& repository, bool dry_run, const RepairObserver& observer,
                                        const std::stop_token& stop);

// Makes trees without what cannot be read, of which it tells. What is sound in one snapshot is not read again
// for the next.
class TreeRepair {
 public:
  TreeRepair(Repository& repository, bool dry_run, const RepairObserver& observer, std::stop_token stop)
      : repository_(repository),
        dry_run_(dry_run),
        observer_(observer),
        stop_(std::move(stop)),
        groups_(repository) {}

  // The tree itself, if all of it can be read. `where` is for messages.
  Result<ObjectId> mend(const ObjectId& tree, const std::string& where);
  Result<void> flush();

  struct Lost {
    std::uint64_t things = 0, files = 0, bytes = 0;
  };
  const Lost& lost() const { return lost_; }

 private:
  Result<ObjectId> mend(const ObjectId& tree, const std::string& where, int depth);
  void lose(const std::string& what, const Error& why);
  Result<ObjectId> store(ObjectKind kind, const Bytes& bytes);
  // Why the file cannot be read whole.
  Result<std::optional<Error>> fault_of(const Node& file);
  Result<std::optional<Error>> fault_of(const Extent& extent);

  Repository& repository_;
  const bool dry_run_;
  const RepairObserver& observer_;
  const std::stop_token stop_;
  GroupWriter groups_;
  std::unordered_set<ShortId, ShortIdHash> sound_trees_, sound_content_;
  std::unordered_map<ObjectId, Error, ObjectIdHash> faults_;
  Lost lost_;
};

}  // namespace kin::store

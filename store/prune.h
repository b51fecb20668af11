// Prune: removes what no snapshot needs. In two steps, generations apart (store/marks.h): what is needless is
// marked, and removed by a later prune if it still is. Packs of which little is needed are written anew, and
// then are needless.
//
// Beside backups of others, and wherever it is interrupted, nothing is lost that a snapshot needs: it says
// what it will remove, looks for snapshots that have come meanwhile, takes the packs from the index, and only
// then removes them. Anything that cannot be read is a reason to remove nothing.
#pragma once

#include "store/block_use.h"
#include "store/group_writer.h"
#include "store/marks.h"
#include "store/parity.h"
#include "store/rebase.h"
#include "store/repository.h"

#include <functional>
#include <optional>
#include <stop_token>

namespace kin::store {

struct PruneOptions {
  std::uint64_t grace = 1;  // generations between the mark and the removal
  // How many bytes in packs that stay may be needless: a part of what is needed, or a number; none: any.
  std::optional<double> most_unused_share = 0.05;
  std::optional<std::uint64_t> most_unused_bytes;
  bool rebase = false;  // frees bases that nothing else needs, where that saves space (store/rebase.h)
  bool dry_run = false;
};

struct PruneReport {
  std::uint64_t generation = 0;  // of this prune
  struct Part {
    std::uint64_t packs = 0, bytes = 0;
  };
  Part before, after;             // all packs
  Part marked;                    // to be removed by a later one; those of earlier ones included
  Part removed;                   // by this one
  Part rewritten;                 // of which the rest is in `marked` or `removed`
  std::uint64_t moved_bytes = 0;  // of these, written anew
  RebaseReport rebase;
  std::uint64_t unused_bytes = 0;                           // in packs that stay
  std::uint64_t forgotten_removed = 0, forgotten_kept = 0;  // snapshots
  std::uint64_t snapshots = 0;
  ParityUpdate parity;                 // of what stays, and what others lose
  std::optional<Error> parity_failed;  // which is no reason not to make room
};

class Prune {
 public:
  Prune(Repository& repository, const PruneOptions& options,
        std::function<void(std::string_view doing, std::uint64_t done, std::uint64_t all)> on_progress);

  // busy if another prune is at work: then nothing was removed. corrupt if something cannot be read.
  Result<PruneReport> run(const std::stop_token& stop);

 private:
  Result<void> do_it(const std::stop_token& stop);
  Error explain(Error error) const;
  Result<void> look(const std::stop_token& stop);
  Result<void> find_needless(const std::stop_token& stop);
  Result<void> rebase(const std::stop_token& stop);
  std::set<ObjectId> choose_sparse() const;
  Result<void> rewrite(const std::set<ObjectId>& packs, const std::stop_token& stop);
  Result<void> take_in_written(const std::stop_token& stop);
  Result<bool> heal(const ObjectId& pack, const std::stop_token& stop);  // is it there now?
  Result<void> rewrite_pack(const ObjectId& id, const std::vector<BlockRef>& blocks,
                            const std::stop_token& stop);
  Result<void> regroup(const BlockRef& at, const OpenedBlock& block, const BlockContent& content);
  void plan();
  Result<void> say_it();
  Result<void> give_up();
  Result<void> spare_what_is_new(const std::stop_token& stop);
  Result<void> renew_parity(const std::stop_token& stop);
  Result<void> sweep(const std::stop_token& stop);
  Result<std::set<std::string>> segment_names();
  PruneReport::Part part_of(const std::set<ObjectId>& packs) const;

  Repository& repository_;
  const PruneOptions options_;
  const std::function<void(std::string_view, std::uint64_t, std::uint64_t)> on_progress_;
  StoredMarks before_;
  std::map<ObjectId, std::uint64_t> packs_;  // that are there, with their sizes
  std::set<SnapshotId> snapshots_;           // that were seen
  std::set<SnapshotId> forgotten_;
  std::optional<BlockUse> use_;
  std::set<ObjectId> freed_packs_;  // with bases that the rebase freed
  std::set<ObjectId> rewritten_;
  std::set<ObjectId> needless_;   // listed by no segment, or needed by none; there or not
  std::set<ObjectId> unindexed_;  // of these
  GroupWriter groups_;            // of what is needed of groups
  Marks marks_;                   // of this prune
  std::string mark_name_;
  bool began_to_remove_ = false;
  PruneReport report_;
};

}  // namespace kin::store

// SnapshotCosts: what each snapshot of a repository has brought, and what would go with it.
//
// Snapshots are added in the order of their times. What an earlier one has is shared; of a tree that two
// have, nothing is looked at a third time. Some 100 bytes for each object.
#pragma once

#include "cmd/context.h"
#include "lib/object/node.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kin::cmd {

class SnapshotCosts {
 public:
  // Bytes of content, and what they take in the repository, about: objects of a group share what it takes.
  struct Sizes {
    std::uint64_t objects = 0, content = 0, stored = 0;
    void add(std::uint64_t content_bytes, std::uint64_t stored_bytes) {
      ++objects;
      content += content_bytes;
      stored += stored_bytes;
    }
  };
  struct Row {
    Sizes added;                       // what no earlier snapshot had
    Sizes deltas;                      // of that
    Sizes metadata;                    // of that: trees, lists and recipes
    std::uint64_t new_file_bytes = 0;  // of its files, where no earlier snapshot or file had them
    Sizes frees;                       // what would not be needed without this snapshot
  };

  explicit SnapshotCosts(store::Repository& repository) : repository_(repository) {}

  // corrupt if an object is missing. What was met until then counts, and the snapshot has its row; later ones
  // may go on.
  Result<void> add(const Snapshot& snapshot, const std::stop_token& stop);
  // After all are added.
  Result<void> finish();

  const std::vector<Row>& rows() const { return rows_; }   // one for each, in order
  const Sizes& bases_only() const { return bases_only_; }  // that no snapshot has

 private:
  // Which snapshot needs an object: none, one, or several.
  using Owner = std::uint32_t;
  static constexpr Owner kNone = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  static Owner join(Owner a, Owner b) { return a == kNone || a == b ? b : b == kNone ? a : kSeveral; }

  struct Met {
    Owner owner = kNone;
    Owner as_base = kNone;  // of those that lean on it
    std::uint32_t stored = 0;
    std::uint64_t content = 0;
  };

  // Whether what it leads to must be looked at.
  Result<bool> meet(const ObjectId& id, bool is_metadata);
  Result<void> meet_content(const Node& file);
  Result<void> walk(const Snapshot& snapshot, const std::stop_token& stop);
  // Of the bases down from a delta.
  Result<void> lean(const ObjectId& delta, Owner owner);

  store::Repository& repository_;
  std::vector<Row> rows_;
  std::unordered_map<ObjectId, Met, ObjectIdHash> met_;
  std::unordered_map<ObjectId, ObjectId, ObjectIdHash> bases_;  // of deltas
  Sizes bases_only_;
  bool any_failed_ = false;                             // of the snapshots so far
  std::unordered_set<ObjectId, ObjectIdHash> entered_;  // once more, by this one
};

}  // namespace kin::cmd

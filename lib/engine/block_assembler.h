// BlockAssembler: objects in, blocks out. Decides for each object whether it becomes a delta, joins a group,
// or has a block of its own. One thread at a time; what it decides depends on the order of the objects alone.
//
// Small objects join a group in the order in which they come, because neighbours resemble each other:
// compressed together they take half of what they take alone. A delta must beat that, by what the groups
// before have taken.
//
// A base is in an earlier block than its delta, at every moment: what a crash leaves must be decodable. So a
// delta against an object whose group is not yet full waits for that group.
//
// A chain is what a reader has to decode before the object itself. A candidate deep in one must be better to
// be chosen, and beyond a depth or a number of bytes it is none: see kMostDepth and kMostChainBytes.
#pragma once

#include "lib/engine/block_store.h"
#include "lib/engine/group_ratio.h"
#include "lib/engine/trial.h"

#include <array>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace kin {

// A block whose shape is decided. The encoder checks it, or compresses the group.
struct PlannedBlock {
  std::vector<BlockObject> objects;
  std::shared_ptr<const Bytes> content;
  std::optional<Encoding> encoding;  // none: a group, not encoded yet
  std::optional<ObjectId> base;
  std::shared_ptr<const Bytes> base_content;
  std::optional<std::uint64_t> group_number;  // to be told to GroupRatio
  bool has_kin = false;  // a group of which at least half resembles something: there, a thorough search pays
  bool is_long = false;  // as OfferedObject, of the last object
};

class BlockAssembler {
 public:
  static constexpr std::size_t kGroupBytes = 2 << 20;
  // Of metadata. Who lists a directory or looks for a file reads one tree here and one there, and decodes the
  // whole group for each: ids hardly compress, so that a larger group would save little.
  static constexpr std::size_t kMetadataGroupBytes = 256 << 10;
  // Content of deltas that wait for a group, before the group is closed for their sake. So up to this and a
  // group wait for more to come.
  static constexpr std::size_t kMostWaitingBytes = 4 << 20;
  static constexpr unsigned kMostDepth = 16;
  // A reader decodes at most this before an object, or 16 times the object if that is more.
  static constexpr std::uint64_t kMostChainBytes = 32 << 20;

  using Sink = std::function<bool(PlannedBlock block)>;  // false: stop

  BlockAssembler(BlockReader& store, GroupRatio& ratio, Sink sink)
      : store_(store), ratio_(ratio), sink_(std::move(sink)) {}

  Result<void> add(TriedObject tried);
  // Hands the unfinished groups on.
  Result<void> flush();

 private:
  struct Group {
    std::vector<BlockObject> objects;
    Bytes content;
    std::size_t kin_bytes = 0;  // of objects that resemble something
    bool is_long = false;       // as OfferedObject, of the last one
  };

  Result<void> emit(PlannedBlock block);
  Result<void> emit_delta(PlannedBlock block);
  Result<void> emit_group(Group& group);
  Result<void> join_group(TriedObject tried);
  // The delta to keep, if any; `alone` is what the object takes without.
  DeltaTrial* choose_delta(TriedObject& tried, double alone, Chain& chain);
  std::optional<Chain> chain_of(const ObjectId& id);
  void remember(const ObjectId& id, const Chain& chain);

  BlockReader& store_;
  GroupRatio& ratio_;
  const Sink sink_;
  std::array<Group, 2> groups_;  // content, metadata
  // Deltas that wait for the group of content, in order, and what no block may lean on before it: the group's
  // objects and theirs.
  std::vector<PlannedBlock> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::unordered_set<ObjectId, ObjectIdHash> unstored_;
  std::uint64_t content_groups_ = 0;
  double group_cost_ = 0.4;  // per byte of content
  // Of the latest objects, which the store may not know yet.
  std::unordered_map<ObjectId, Chain, ObjectIdHash> chains_;
  std::deque<ObjectId> remembered_;
};

}  // namespace kin

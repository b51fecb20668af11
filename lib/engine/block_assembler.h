// BlockAssembler: objects in, blocks out. Objects that are stored already are dropped; large ones get a block
// of their own; small ones join a group, in the order in which they come, because neighbours resemble each
// other: compressed together they take half of what they take alone. One thread at a time.
#pragma once

#include "lib/engine/block_store.h"

#include <array>
#include <functional>

namespace kin {

class BlockAssembler {
 public:
  static constexpr std::size_t kGroupBytes = 1 << 20;
  static constexpr std::size_t kSoloBytes = 256 << 10;

  using Sink = std::function<bool(PlainBlock block)>;  // false: stop

  BlockAssembler(BlockStore& store, Sink sink) : store_(store), sink_(std::move(sink)) {}

  Result<void> add(ObjectKind kind, const ObjectId& id, Bytes bytes);
  // Hands the unfinished groups on.
  Result<void> flush();

  std::uint64_t added_objects() const { return added_objects_; }
  std::uint64_t added_bytes() const { return added_bytes_; }

 private:
  Result<void> emit(PlainBlock block);

  BlockStore& store_;
  const Sink sink_;
  std::array<PlainBlock, 2> groups_;  // content, metadata
  std::uint64_t added_objects_ = 0, added_bytes_ = 0;
};

}  // namespace kin

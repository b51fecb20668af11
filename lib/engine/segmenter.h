// Segmenter: bytes in, objects out: cut by content, each with its id and sketch. One thread at a time.
#pragma once

#include "lib/engine/block_store.h"

#include <functional>
#include <optional>
#include <span>

namespace kin {

struct NewObject {
  ObjectId id;
  Bytes bytes;
  Sketch sketch;
  ObjectKind kind = ObjectKind::data;
  std::optional<ObjectId> previous;  // what the file had in its place before
  bool is_new = false;               // neither stored nor on its way
};

class Segmenter {
 public:
  using Read = std::function<Result<std::size_t>(std::span<std::uint8_t> into)>;  // less than asked: the end
  using Emit = std::function<bool(NewObject object)>;                             // false: stop

  explicit Segmenter(const BlockStore& store) : store_(store) {}

  // Up to `limit` bytes or the end; gives how many there were. cancelled if `emit` gave false.
  Result<std::uint64_t> run(const Read& read, std::uint64_t limit, const Emit& emit);

 private:
  const BlockStore& store_;
  Bytes buffer_;
};

}  // namespace kin

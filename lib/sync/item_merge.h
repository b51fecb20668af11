// What becomes of an item that was changed on two replicas: nothing is lost that one of them wanted to keep.
#pragma once

#include "lib/sync/item.h"

#include <optional>

namespace kin::sync {

// A state of an item; nothing: it was deleted.
using ItemState = std::optional<Item>;

struct Merged {
  ItemState state;
  // Both changed the content of a file: this version is to be kept as well, under another name.
  std::optional<Item> other_version;
};

// `base` is the last state that both had, if one is known. Flags and words go one by one: who changed one,
// wins, and two cannot have changed it differently. Without a base a flag is set if one has it; but "trashed"
// and "draft" only if both have, since what they lead to is worse. What was deleted by one and changed by the
// other: a message is deleted (its content is in the trash), a file with other content is kept; and all is
// kept where no base is known. Two contents: the newer is taken.
Merged merge(const std::optional<ItemState>& base, const ItemState& ours, const ItemState& theirs);

}  // namespace kin::sync

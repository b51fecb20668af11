// PeerView: what the other end of an exchange has, as far as this end knows.
#pragma once

#include "lib/sync/replica.h"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace kin::sync {

struct ItemIdHash {
  std::size_t operator()(const ItemId& id) const {
    std::size_t out;
    std::memcpy(&out, id.data(), sizeof out);  // it is a hash already
    return out;
  }
};

struct PeerView {
  VersionSet seen;
  // Nothing is known by history; but the sets of items were compared, and these differ or are not there.
  bool was_compared = false;
  // But what either has seen of the other's changes is known all the same: the two have never met, and have
  // met others.
  bool history_counts = false;
  std::unordered_set<ItemId, ItemIdHash> different;
  // Of these it has another state.
  std::unordered_set<ItemId, ItemIdHash> elsewise;
  // Sent in this exchange: it is there before anything that is sent later.
  std::unordered_set<ItemId, ItemIdHash> sent;

  // Came from there in this exchange, in this state: it needs not go back.
  std::unordered_map<ItemId, Stamp, ItemIdHash> came;

  bool has_sent(const KnownItem& known) const {
    const auto found = came.find(known.id);
    return found != came.end() && found->second == known.stamp;
  }
  // Whether the peer has seen this state or a later one.
  bool has_seen(const KnownItem& known) const {
    return was_compared ? !different.contains(known.id) : seen.contains(known.stamp);
  }
  // The state that the peer has, as far as it is one that this end has had; null: none that is known.
  const Item* state_of(const KnownItem& known) const {
    if (sent.contains(known.id) || has_seen(known)) return known.deleted ? nullptr : &known.item;
    if (was_compared) return nullptr;
    for (std::size_t i = known.past.size(); i-- > 0;)
      if (seen.contains(known.past[i].stamp)) return known.past[i].state ? &*known.past[i].state : nullptr;
    return nullptr;
  }
  bool has_content(const KnownItem& known, const ObjectId& object) const {
    const Item* const state = state_of(known);
    return state != nullptr && state->object == object;
  }
};

}  // namespace kin::sync

// What becomes of an item that both ends have changed.

#include "lib/base/random.h"
#include "lib/sync/incoming.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::sync {
namespace {

// "name.kin-conflict-3f9a-2026-11-18-81c4": by whom and when, so that it is seen where it comes from; and by
// chance, so that the next one is another.
std::string conflict_name(const std::string& name, ReplicaId replica) {
  const std::string day = local_time(now()).substr(0, 10);
  const std::string suffix =
      fmt::format(".kin-conflict-{:04x}-{}-{:04x}", replica >> 48, day, random_number() >> 48);
  return name.substr(0, kMostNameBytes - std::min(kMostNameBytes, suffix.size())) + suffix;
}

}  // namespace

// Where both have changed it and the other end settles that, its outcome will follow.
Result<void> Incoming::miss(const Piece& piece) {
  const ItemId id = item_id(piece.item);
  KIN_TRY_ASSIGN(const auto own, replica_.find(id));
  if (conflicts_ == Conflicts::leave && own && differs(*own) && piece.replaces != own->stamp) {
    left_[id].push_back(piece.stamp);
    failed_.insert(piece.stamp);
  } else {
    need(piece.stamp);
  }
  return {};
}

bool Incoming::differs(const KnownItem& own) const {
  return peer_.was_compared ? peer_.different.contains(own.id) && !own.deleted
                            : !peer_.seen.contains(own.stamp);
}

Result<void> Incoming::settle_left(const VersionSet& seen) {
  for (const auto& [id, stamps] : left_) {
    KIN_TRY_ASSIGN(const auto own, replica_.find(id));
    if (!own || !seen.contains(own->stamp)) continue;
    for (const Stamp& stamp : stamps) failed_.erase(stamp);
  }
  return {};
}

Merged Incoming::merged_state(const Wish& wish, const KnownItem& own) const {
  std::optional<ItemState> base;
  for (const PastState& past : own.past)
    if (!peer_.was_compared && peer_.seen.contains(past.stamp)) base = past.state;
  return merge(base, own.state(), wish.deleted ? ItemState() : ItemState(wish.item));
}

Result<void> Incoming::merge_with(Wish wish, const KnownItem& own) {
  // Before anything is done for it, its content must be here.
  if (!wish.deleted && wish.item.type == ItemType::file && wish.item.object != own.item.object &&
      !get_content(wish))
    return {};
  const ItemState theirs = wish.deleted ? ItemState() : ItemState(wish.item);
  const Merged merged = merged_state(wish, own);
  const auto is = [](const ItemState& a, const ItemState& b) {
    return a.has_value() == b.has_value() && (!a || same_state(*a, *b));
  };
  if (merged.other_version) {
    const bool is_ours = is(own.state(), merged.other_version);
    if (const auto kept = keep_other_version(*merged.other_version, wish, own, is_ours); !kept) {
      skip(wish, kept.error());
      return {};
    }
  }
  if (is(merged.state, theirs)) return make(std::move(wish), own);  // theirs, as it is
  const Stamp replaced = wish.stamp;
  wish.stamp = replica_.next_stamp();
  wish.replaces = {};
  wish.deleted = !merged.state;
  wish.source.reset();
  if (merged.state) wish.item = *merged.state;
  wish.answers = replaced;
  if (is(merged.state, own.state())) {  // ours; only the other end has to learn of it
    return note_state(wish, own, own.local);
  }
  wish.has_content = false;
  if (wish.deleted) {
    queue_deletion(std::move(wish));
    return {};
  }
  return make(std::move(wish), own);
}

// A file that both have changed: the version that gives way stays under another name, on both.
Result<void> Incoming::keep_other_version(const Item& other, const Wish& wish, const KnownItem& own,
                                          bool is_ours) {
  Wish copy;
  copy.item = other;
  copy.item.name = conflict_name(other.name, is_ours ? replica_.id() : wish.stamp.replica);
  copy.id = item_id(copy.item);
  copy.stamp = replica_.next_stamp();
  copy.has_content = bears_content(other);
  if (is_ours && copy.has_content) {
    KIN_TRY_ASSIGN(const auto source, open_item(replica_, store_, own));
    KIN_TRY(trash_.put(other.object, *source));
    copy.content_path = trash_.path_of(other.object);
  } else if (copy.has_content) {
    copy.has_content = wish.has_content;
    copy.content = wish.content;
    copy.content_path = wish.content_path;
  }
  if (observer_.on_conflict)
    observer_.on_conflict(own.item, "the other version is kept as " + printable(copy.item.name));
  copy.answers = {peer_id_, 0};  // nothing of the other end's, but it is to be told
  return make(std::move(copy), std::nullopt);
}

}  // namespace kin::sync

// What becomes of an item that both ends have changed.

#include "lib/sync/incoming.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::sync {
namespace {

constexpr unsigned kMostCopies = 255;

// "name.kin-conflict-3f9a-2026-11-18-81c4": by whom, of when and, in short, what it is. So people see where
// it comes from; and who is interrupted and merges again finds what was kept the first time.
std::string conflict_name(const Item& version, ReplicaId replica, unsigned attempt) {
  const bool has_time = version.type != ItemType::symlink;
  const std::string day = local_time(has_time ? version.time : now()).substr(0, 10);
  Bytes what(as_bytes(version.target).begin(), as_bytes(version.target).end());
  append(what, version.object.bytes);
  what.push_back(static_cast<std::uint8_t>(attempt));
  const ObjectId hash = object_id(what);
  const std::string suffix =
      fmt::format(".kin-conflict-{:04x}-{}-{:02x}{:02x}", replica >> 48, day, hash.bytes[0], hash.bytes[1]);
  return version.name.substr(0, kMostNameBytes - std::min(kMostNameBytes, suffix.size())) + suffix;
}

bool is_state(const ItemState& a, const ItemState& b) {
  return a.has_value() == b.has_value() && (!a || same_state(*a, *b));
}

}  // namespace

// Where both have changed it and the other end settles that, its outcome will follow.
Result<void> Incoming::miss(const Piece& piece) {
  const ItemId id = item_id(piece.item);
  KIN_TRY_ASSIGN(const auto own, replica_.find(id));
  if (conflicts_ == Conflicts::leave && own && differs(*own) && piece.replaces != own->stamp &&
      will_be_merged(*own)) {
    left_[id].push_back(piece.stamp);
    failed_.insert(piece.stamp);
  } else {
    need(piece.stamp);
  }
  return {};
}

bool Incoming::differs(const KnownItem& own) const {
  if (!peer_.was_compared) return !peer_.seen.contains(own.stamp);
  const bool is_followed = peer_.history_counts && peer_.seen.contains(own.stamp);
  return peer_.different.contains(own.id) && !own.deleted && !is_followed;
}

// Of two that were compared: what is here came after what the other end has, and knows.
bool Incoming::follows(const KnownItem& own, const Wish& wish) const {
  return peer_.was_compared && peer_.history_counts && conflicts_ != Conflicts::leave &&
         replica_.seen().contains(wish.stamp) && !peer_.seen.contains(own.stamp);
}

// By the other end. Not a deletion that it is not told of, since it never had the item: so it cannot know
// that there is a conflict, and what it has stays.
bool Incoming::will_be_merged(const KnownItem& own) const {
  return !own.deleted || peer_.sent.contains(own.id) || peer_.state_of(own) != nullptr;
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
  const Merged merged = merged_state(wish, own);
  if (!merged.other_version) return settle(std::move(wish), own);
  const bool is_ours = is_state(own.state(), merged.other_version);
  const auto copy = keep_other_version(*merged.other_version, wish, own, is_ours);
  if (!copy) {
    skip(wish, copy.error());
    return {};
  }
  pending_items_.insert(wish.id);
  to_settle_.push_back({std::move(wish), *copy});
  return {};
}

// Those whose other version is in the store now, and on the disk.
Result<void> Incoming::settle_kept() {
  for (Settlement& settlement : std::exchange(to_settle_, {})) {
    Wish& wish = settlement.wish;
    KIN_TRY_ASSIGN(const auto copy, replica_.find(settlement.copy));
    KIN_TRY_ASSIGN(const auto own, replica_.find(wish.id));
    if (!own || !copy || copy->deleted)  // that was told
      failed_.insert(wish.stamp);
    else
      KIN_TRY(settle(std::move(wish), *own));
  }
  return {};
}

Result<void> Incoming::settle(Wish wish, const KnownItem& own) {
  const Merged merged = merged_state(wish, own);
  if (is_state(merged.state, wish.deleted ? ItemState() : ItemState(wish.item))) {  // theirs, as it is
    if (!wish.deleted) return make(std::move(wish), own);
    queue_deletion(std::move(wish));
    return {};
  }
  const Stamp replaced = wish.stamp;
  wish.stamp = replica_.next_stamp();
  wish.replaces = {};
  wish.deleted = !merged.state;
  wish.source.reset();
  if (merged.state) wish.item = *merged.state;
  wish.answers = replaced;
  if (is_state(merged.state, own.state())) {  // ours; only the other end has to learn of it
    return note_state(wish, own, own.local);
  }
  wish.has_content = false;
  if (wish.deleted) {
    queue_deletion(std::move(wish));
    return {};
  }
  return make(std::move(wish), own);
}

// A file that both have changed: the version that gives way stays under another name, on both. That name.
Result<ItemId> Incoming::keep_other_version(const Item& other, const Wish& wish, const KnownItem& own,
                                            bool is_ours) {
  Wish copy;
  copy.item = other;
  std::optional<KnownItem> there;
  for (unsigned attempt = 0;; ++attempt) {
    copy.item.name = conflict_name(other, is_ours ? own.stamp.replica : wish.stamp.replica, attempt);
    copy.id = item_id(copy.item);
    KIN_TRY_ASSIGN(there, replica_.find(copy.id));
    if (!there || there->deleted) break;
    const Item& item = there->item;
    if (item.type == other.type && item.object == other.object && item.target == other.target) break;
    if (attempt == kMostCopies)
      return Error(ErrorCode::busy, "there are too many other versions of " + printable(other.name));
  }
  if (observer_.on_conflict)
    observer_.on_conflict(own.item, "the other version is kept as " + printable(copy.item.name));
  if (there && !there->deleted) return copy.id;
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
  copy.answers = {peer_id_, 0};  // nothing of the other end's, but it is to be told
  const ItemId id = copy.id;
  if (pending_items_.contains(id)) return id;
  KIN_TRY(make(std::move(copy), there));
  return id;
}

}  // namespace kin::sync

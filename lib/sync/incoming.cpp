#include "lib/sync/incoming.h"

#include "lib/base/random.h"
#include "lib/sync/opened_content.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace kin::sync {
namespace {

constexpr std::size_t kFlushBytes = 1 << 20, kFlushChanges = 1024;

bool needs_content(const Item& item) { return item.type == ItemType::message || item.type == ItemType::file; }

// "name.kin-conflict-3f9a-2026-11-18": by whom and when, so that it is seen where it comes from.
std::string conflict_name(const std::string& name, ReplicaId replica) {
  const std::string day = local_time(now()).substr(0, 10);
  const std::string suffix =
      fmt::format(".kin-conflict-{:04x}-{}-{:04x}", replica >> 48, day, random_number() >> 48);
  return name.substr(0, kMostNameBytes - std::min(kMostNameBytes, suffix.size())) + suffix;
}

}  // namespace

Incoming::Incoming(Replica& replica, SyncStore& store, ContentFiles& trash, ContentFiles& parts,
                   const Formats* formats, PeerView& peer, ReplicaId peer_id, Conflicts conflicts,
                   Observer observer)
    : replica_(replica),
      store_(store),
      trash_(trash),
      parts_(parts),
      formats_(formats),
      peer_(peer),
      peer_id_(peer_id),
      conflicts_(conflicts),
      observer_(std::move(observer)),
      codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1)) {}

Result<void> Incoming::records(ByteView payload) {
  KIN_TRY_ASSIGN(std::vector<Record> records, decode_records(payload));
  for (Record& record : records) KIN_TRY(take_record(std::move(record)));
  return {};
}

// Of several with this front, the one that both ends have.
Result<std::optional<KnownItem>> Incoming::resolve(ByteView reference) {
  constexpr std::size_t kMost = 64;
  KIN_TRY_ASSIGN(std::vector<KnownItem> found, replica_.find_by_prefix(reference, kMost));
  if (found.size() > 1)
    std::erase_if(found, [&](const KnownItem& known) { return peer_.state_of(known) == nullptr; });
  if (found.size() != 1) return std::optional<KnownItem>();
  return std::optional<KnownItem>(std::move(found.front()));
}

Result<void> Incoming::take_record(Record record) {
  using Kind = Record::Kind;
  if (observer_.on_announced && record.kind != Kind::announce)
    return Error(ErrorCode::corrupt, "the other end tells of changes where it was asked for none");
  Wish wish;
  wish.kind = record.kind;
  wish.stamp = record.stamp;
  wish.replaces = record.replaces;
  wish.removed = record.removed;
  if (record.kind == Kind::full || record.kind == Kind::announce) {
    wish.item = std::move(record.item);
    wish.id = item_id(wish.item);
    if (record.kind == Kind::announce && observer_.on_announced)
      return observer_.on_announced(wish.item, wish.stamp);
    return decide(std::move(wish));
  }
  KIN_TRY_ASSIGN(auto known, resolve(record.reference));
  if (!known) {
    need(record.stamp);
    return {};
  }
  if (record.kind == Kind::remove) {
    wish.item = known->item;
    wish.id = known->id;
    wish.deleted = true;
    return decide(std::move(wish));
  }
  if (known->item.type != ItemType::message) return Error(ErrorCode::corrupt, "flags of what is no message");
  wish.item = known->item;
  wish.item.flags = record.item.flags;
  wish.item.words = std::move(record.item.words);
  if (record.kind == Kind::move || record.kind == Kind::place) {
    wish.item.folder = std::move(record.item.folder);
    wish.item.copy = record.item.copy;
  }
  if (record.kind == Kind::move) wish.source = *known;
  wish.id = item_id(wish.item);
  return decide(std::move(wish));
}

Result<void> Incoming::remove_own(const ItemId& id) {
  KIN_TRY_ASSIGN(const auto own, replica_.find(id));
  if (!own || own->deleted) return {};
  Wish wish;
  wish.kind = Record::Kind::remove;
  wish.stamp = replica_.next_stamp();
  wish.id = id;
  wish.item = own->item;
  wish.deleted = true;
  queue_deletion(std::move(wish));
  return {};
}

void Incoming::queue_deletion(Wish wish) {
  ++deletions_by_folder_[wish.item.folder];
  may_delete_ = false;
  deletions_.push_back(std::move(wish));
}

// Once, until it comes again: what is on its way meanwhile is of no use either.
void Incoming::need(const Stamp& stamp) {
  failed_.insert(stamp);
  if (asked_for_.insert(stamp).second) needed_.push_back(stamp);
}

Result<void> Incoming::parcel(ByteView payload) {
  ++parcels_;
  KIN_TRY_ASSIGN(const ParcelHead head, decode_parcel_head(payload));
  Bytes prefix;
  bool is_known = head.window_bytes <= window_.size() && (window_is_whole_ || head.window_bytes == 0);
  if (is_known) {
    const ByteView window = window_.last(head.window_bytes);
    prefix.assign(window.begin(), window.end());
  }
  for (const Bytes& base : head.bases) {
    if (!is_known) break;
    is_known = false;
    KIN_TRY_ASSIGN(const auto known, resolve(base));
    if (!known || known->deleted || prefix.size() + known->item.size > kMostBaseBytes + kWindowBytes) break;
    KIN_TRY_ASSIGN(const Entry entry, entry_of(*known));
    const auto source = store_.read(known->item.folder, entry);
    if (!source) break;
    const auto content = read_all(**source, known->item.size);
    if (!content || object_id(*content) != known->item.object) break;
    const auto opened = formats_ == nullptr ? std::nullopt : open_content(*formats_, *content);
    append(prefix, opened ? *opened : *content);
    is_known = prefix.size() <= kMostBaseBytes + kWindowBytes;
  }
  // Which items were in it cannot be told without its prefix: the sender knows.
  auto pieces = is_known ? decode_parcel(head, prefix, *codec_, formats_)
                         : Result<std::vector<Piece>>(Error(ErrorCode::wrong_base, "a base is gone"));
  if (!pieces && pieces.error().code() != ErrorCode::wrong_base) return std::move(pieces).error();
  if (!pieces) {
    window_is_whole_ = false;
    needed_.push_back({0, parcels_});
    return {};
  }
  if (head.window_bytes == 0) {  // the sender begins a new one
    window_.clear();
    window_is_whole_ = true;
  }
  window_.add(*pieces);
  for (Piece& piece : *pieces) KIN_TRY(take_piece(std::move(piece)));
  return {};
}

Result<void> Incoming::take_piece(Piece piece) {
  Wish wish;
  wish.stamp = piece.stamp;
  wish.replaces = piece.replaces;
  wish.item = piece.item;
  wish.id = item_id(wish.item);
  wish.has_content = true;
  if (piece.is_whole()) {
    waiting_bytes_ += piece.content.size();
    wish.content = std::move(piece.content);
    return decide(std::move(wish));
  }
  const ObjectId object = piece.item.object;
  waiting_bytes_ += piece.content.size();
  if (piece.offset == 0) asked_for_.erase(piece.stamp);
  if (piece.offset > parts_.part_bytes(object)) {  // its beginning was not understood
    need(piece.stamp);
    return {};
  }
  KIN_TRY(parts_.add_part(object, piece.offset, piece.content));
  if (piece.offset + piece.content.size() < piece.item.size) return {};
  auto path = parts_.finish_part(object);
  if (!path) {
    if (path.error().code() != ErrorCode::wrong_base) return std::move(path).error();
    need(piece.stamp);
    return {};
  }
  wish.content_path = *std::move(path);
  return decide(std::move(wish));
}

// What would come of it, in a rehearsal.
Result<void> Incoming::tell(const Wish& wish, const std::optional<KnownItem>& own, bool conflicts) {
  const bool is_there = own && !own->deleted;
  if (conflicts && observer_.on_conflict) observer_.on_conflict(wish.item, "both have changed it");
  Record record{wish.kind, wish.stamp, {}, {}, {}, wish.item};
  if (!wish.deleted && wish.kind != Record::Kind::move)
    record.kind = is_there ? Record::Kind::update : Record::Kind::full;
  if (observer_.on_change) observer_.on_change(record);
  return {};
}

// The other half of a move.
Incoming::Wish Incoming::removal_of(const Wish& wish) {
  Wish removal;
  removal.kind = Record::Kind::remove;
  removal.stamp = wish.removed;
  removal.item = wish.source->item;
  removal.id = wish.source->id;
  removal.deleted = true;
  return removal;
}

Result<void> Incoming::decide(Wish wish) {
  const auto is_told_rightly = [&](const Stamp& stamp) {
    return stamp.replica == peer_id_ || peer_.seen.contains(stamp) || replica_.seen().contains(stamp);
  };
  if (!is_told_rightly(wish.stamp) || (wish.removed.replica != 0 && !is_told_rightly(wish.removed)))
    return Error(ErrorCode::corrupt, "the other end tells of a change that it has not seen");
  if (peer_.was_compared) told_of_.insert(wish.id);
  if (pending_items_.contains(wish.id)) KIN_TRY(flush());
  KIN_TRY_ASSIGN(const auto own, replica_.find(wish.id));
  const bool is_there = own && !own->deleted;
  failed_.erase(wish.stamp);
  asked_for_.erase(wish.stamp);
  if (wish.deleted ? !is_there : is_there && same_state(own->item, wish.item)) {
    // Both have come to the same. Of a move, the other half is still to be made.
    if (conflicts_ == Conflicts::rehearse) return {};
    note_seen(wish);
    if (!wish.source) return {};
    Wish removal = removal_of(wish);
    return decide(std::move(removal));
  }
  const bool differs = own && (peer_.was_compared ? peer_.different.contains(own->id) && is_there
                                                  : !peer_.seen.contains(own->stamp));
  const bool is_answer = own && wish.replaces == own->stamp;
  if (conflicts_ == Conflicts::rehearse) return tell(wish, own, differs);
  if (differs && !is_answer && conflicts_ != Conflicts::take) {
    if (conflicts_ == Conflicts::leave) {  // what comes of it will follow; if not, it is to be told again
      left_[wish.id].push_back(wish.stamp);
      failed_.insert(wish.stamp);
      return {};
    }
    return merge_with(std::move(wish), *own);
  }
  // What was seen once was followed by what is here.
  if (!differs && !is_answer && !peer_.was_compared && replica_.seen().contains(wish.stamp)) return {};
  if (wish.deleted) {
    queue_deletion(std::move(wish));
    return {};
  }
  return make(std::move(wish), own);
}

void Incoming::note_seen(const Wish& wish) {
  replica_.add_seen(wish.stamp);
  const auto left = left_.find(wish.id);
  if (left == left_.end()) return;
  for (const Stamp& stamp : left->second) failed_.erase(stamp);
  left_.erase(left);
}

Result<void> Incoming::settle_left(const VersionSet& seen) {
  for (const auto& [id, stamps] : left_) {
    KIN_TRY_ASSIGN(const auto own, replica_.find(id));
    if (!own || !seen.contains(own->stamp)) continue;
    for (const Stamp& stamp : stamps) failed_.erase(stamp);
  }
  return {};
}

Result<void> Incoming::merge_with(Wish wish, const KnownItem& own) {
  std::optional<ItemState> base;
  for (const PastState& past : own.past)
    if (!peer_.was_compared && peer_.seen.contains(past.stamp)) base = past.state;
  const ItemState theirs = wish.deleted ? ItemState() : ItemState(wish.item);
  Merged merged = merge(base, own.state(), theirs);
  const auto is = [](const ItemState& a, const ItemState& b) {
    return a.has_value() == b.has_value() && (!a || same_state(*a, *b));
  };
  if (merged.other_version) {
    const bool is_ours = is(own.state(), merged.other_version);
    KIN_TRY(keep_other_version(*merged.other_version, wish, own, is_ours));
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
    note_state(wish, own, own.local);
    return {};
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
  copy.has_content = needs_content(other);
  if (is_ours && copy.has_content) {
    KIN_TRY_ASSIGN(const Entry entry, entry_of(own));
    KIN_TRY_ASSIGN(const auto source, store_.read(own.item.folder, entry));
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

Result<Entry> Incoming::entry_of(const KnownItem& known) {
  KIN_TRY_ASSIGN(const auto seen, replica_.entry(known.item.folder, known.local));
  Entry entry;
  entry.local = known.local;
  entry.item = known.item;
  if (seen) entry.fingerprint = seen->fingerprint;
  return entry;
}

// In the store, under any name; or in the trash.
Result<bool> Incoming::find_content(Wish& wish) {
  if (wish.has_content) return true;
  for (int attempt = 0; attempt < 2; ++attempt) {
    KIN_TRY_ASSIGN(const auto items, replica_.with_object(wish.item.object, 8));
    for (const KnownItem& item : items) {
      KIN_TRY_ASSIGN(const Entry entry, entry_of(item));
      auto source = store_.read(item.item.folder, entry);
      if (!source) continue;
      if (item.item.size > kFlushBytes) {
        KIN_TRY(parts_.put(wish.item.object, **source));
        wish.content_path = parts_.path_of(wish.item.object);
      } else {
        auto content = read_all(**source, item.item.size);
        if (!content || object_id(*content) != wish.item.object) continue;
        wish.content = *std::move(content);
      }
      wish.item.size = item.item.size;
      wish.has_content = true;
      return true;
    }
    if (pending_.empty()) break;
    KIN_TRY(flush());  // it may have come just now
  }
  if (!trash_.has(wish.item.object)) return false;
  wish.content_path = trash_.path_of(wish.item.object);
  std::error_code failed;
  wish.item.size = std::filesystem::file_size(wish.content_path, failed);
  if (failed) return false;
  wish.has_content = true;
  return true;
}

// Before it is deleted or replaced; where it is not the last one, there is no need to.
Result<void> Incoming::keep_in_trash(const KnownItem& known) {
  if (!needs_content(known.item)) return {};
  KIN_TRY_ASSIGN(const Entry entry, entry_of(known));
  KIN_TRY_ASSIGN(const auto source, store_.read(known.item.folder, entry));
  KIN_TRY(trash_.put(known.item.object, *source));
  WireWriter out;
  out.signed_varint(now().seconds);
  encode_item(known.item, out);
  Bytes key{'t'};
  append(key, known.item.object.bytes);
  append(key, known.id);
  replica_.set_note(key, out.take());
  return {};
}

Result<void> Incoming::make(Wish wish, const std::optional<KnownItem>& own) {
  const bool is_there = own && !own->deleted;
  Pending pending;
  StoreChange& change = pending.change;
  using Kind = StoreChange::Kind;
  if (wish.deleted) {
    if (!is_there) {
      note_state(wish, own, "");
      return {};
    }
    change.kind = Kind::remove;
  } else if (is_there) {
    change.kind = Kind::update;
    change.has_content = needs_content(wish.item) &&
                         (own->item.type != wish.item.type ||
                          (wish.item.type == ItemType::file && own->item.object != wish.item.object));
  } else if (wish.source && !wish.source->deleted) {
    // The item that goes must still be as the other end knows it.
    KIN_TRY_ASSIGN(const auto source, replica_.find(wish.source->id));
    const bool can_move = source && !source->deleted && peer_.state_of(*source) != nullptr &&
                          (peer_.was_compared || peer_.seen.contains(source->stamp)) &&
                          !pending_items_.contains(source->id);
    change.kind = can_move ? Kind::move : Kind::add;
    if (can_move) wish.source = source;
    if (!can_move) {  // it has changed here, and goes by the rules for that
      Wish removal = removal_of(wish);
      wish.source.reset();
      KIN_TRY(decide(std::move(removal)));
    }
  }
  if (change.kind == Kind::add) change.has_content = needs_content(wish.item);
  if (change.has_content) {
    const auto found = find_content(wish);
    if (!found) {
      skip(wish, found.error());
      return {};
    }
    if (!*found) {
      need(wish.stamp);
      return {};
    }
  }
  const bool loses_content =
      change.kind == Kind::remove || (change.kind == Kind::update && change.has_content);
  if (loses_content) {
    if (const auto kept = keep_in_trash(*own); !kept) {
      skip(wish, kept.error());
      return {};
    }
  }
  change.item = wish.item;
  if (change.kind == Kind::move) {
    change.folder = wish.source->item.folder;
    KIN_TRY_ASSIGN(change.entry, entry_of(*wish.source));
    pending_items_.insert(wish.source->id);
  } else if (is_there) {
    change.folder = own->item.folder;
    KIN_TRY_ASSIGN(change.entry, entry_of(*own));
  }
  change.content = std::move(wish.content);
  change.content_path = wish.content_path;
  pending.before = own;
  pending_items_.insert(wish.id);
  pending.wish = std::move(wish);
  pending_.push_back(std::move(pending));
  if (waiting_bytes_ >= kFlushBytes || pending_.size() >= kFlushChanges) return flush();
  return {};
}

void Incoming::skip(const Wish& wish, const Error& error) {
  failed_.insert(wish.stamp);
  Entry entry;
  entry.item = wish.item;
  entry.local = wish.item.name;
  if (observer_.on_skipped) observer_.on_skipped(store_.path_of(wish.item.folder, entry), error);
}

void Incoming::note_state(const Wish& wish, const std::optional<KnownItem>& own, const std::string& local) {
  KnownItem known = own ? *own : KnownItem{};
  known.id = wish.id;
  known.stamp = wish.stamp;
  known.item = wish.item;
  known.deleted = wish.deleted;
  known.local = wish.deleted ? "" : local;
  note_seen(wish);
  if (wish.stamp.replica != replica_.id()) peer_.came[wish.id] = wish.stamp;
  if (wish.answers.replica != 0) {
    const bool is_copy = wish.answers.sequence == 0;
    merged_.emplace_back(wish.id, is_copy ? Stamp{} : wish.answers);
    if (!is_copy) replica_.add_seen(wish.answers);
  }
  // The table can fail here only by reading: the next commit tells of that.
  static_cast<void>(replica_.set(std::move(known)).has_value());
}

Result<void> Incoming::note_made(const Pending& pending, const Entry& entry) {
  const Wish& wish = pending.wish;
  using Kind = StoreChange::Kind;
  Record record{wish.kind, wish.stamp, {}, {}, {}, wish.item};
  if (pending.change.kind == Kind::move) {
    const KnownItem& source = *wish.source;
    replica_.forget_entry(source.item.folder, source.local);
    Wish removal;
    removal.stamp = wish.removed;
    removal.id = source.id;
    removal.item = source.item;
    removal.deleted = true;
    note_state(removal, source, "");
  } else if (pending.before && !pending.before->deleted) {
    replica_.forget_entry(pending.before->item.folder, pending.before->local);
  }
  if (wish.deleted) {
    note_state(wish, pending.before, "");
    record.kind = Record::Kind::remove;
  } else {
    // What the store could not keep (a keyword too many) is this replica's own state: it is not taken for the
    // peer's.
    Wish made = wish;
    note_state(made, pending.before, entry.local);
    if (!entry.local.empty())
      replica_.set_entry(wish.item.folder, entry.local, {entry.fingerprint, look_of(entry), wish.id});
    if (pending.change.kind == Kind::add) record.kind = Record::Kind::full;
    if (pending.change.kind == Kind::update) record.kind = Record::Kind::update;
    if (pending.change.kind == Kind::add && !pending.change.content.empty() && observer_.on_content)
      KIN_TRY(observer_.on_content(wish.item.object, pending.change.content));
  }
  if (observer_.on_change) observer_.on_change(record);
  return {};
}

Result<void> Incoming::flush() {
  if (may_delete_ && conflicts_ != Conflicts::rehearse)
    for (Wish& wish : std::exchange(deletions_, {})) {
      KIN_TRY_ASSIGN(const auto own, replica_.find(wish.id));
      KIN_TRY(make(std::move(wish), own));
    }
  std::vector<Pending> pending = std::exchange(pending_, {});
  pending_items_.clear();
  waiting_bytes_ = 0;
  if (conflicts_ == Conflicts::rehearse) return {};
  KIN_TRY(trash_.sync());
  KIN_TRY(parts_.sync());
  if (pending.empty()) return replica_.commit(true);
  std::vector<StoreChange> changes;
  for (Pending& one : pending) changes.push_back(one.change);
  const std::vector<Result<Entry>> made = store_.apply(std::move(changes));
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (!made[i]) {
      skip(pending[i].wish, made[i].error());
      continue;
    }
    KIN_TRY(note_made(pending[i], *made[i]));
    const std::string& path = pending[i].change.content_path;
    if (!path.empty() && path == parts_.path_of(pending[i].wish.item.object))
      parts_.remove(pending[i].wish.item.object);
  }
  return replica_.commit(true);
}

}  // namespace kin::sync

#include "lib/sync/incoming.h"

#include "lib/sync/former_contents.h"
#include "lib/sync/store_files.h"
#include "lib/sync/unheld_words.h"

namespace kin::sync {
namespace {

constexpr std::size_t kMostFailed = 1'000'000;
constexpr std::size_t kFlushBytes = 1 << 20, kFlushChanges = 1024;
constexpr std::size_t kMostEquals = 4096;  // of one message in all folders

}  // namespace

Incoming::Incoming(Replica& replica, SyncStore& store, ContentFiles& trash, ContentFiles& parts,
                   const Formats* formats, PeerView& peer, ReplicaId peer_id, Conflicts conflicts,
                   Observer observer)
    : replica_(replica),
      store_(store),
      trash_(trash),
      parts_(parts),
      peer_(peer),
      peer_id_(peer_id),
      conflicts_(conflicts),
      observer_(std::move(observer)),
      reader_(replica, store, trash, formats, peer) {
  const StoreKind* const kind = find_store_kind(store_.kind());
  is_mail_ = kind != nullptr && kind->is_mail;
}

Result<void> Incoming::records(ByteView payload) {
  KIN_TRY_ASSIGN(std::vector<Record> records, decode_records(payload));
  for (Record& record : records) KIN_TRY(take_record(std::move(record)));
  if (failed_.size() > kMostFailed)
    return Error(ErrorCode::corrupt, "too much of what the other end tells cannot be made");
  return {};
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
  KIN_TRY_ASSIGN(auto known, resolve(replica_, peer_, record.reference));
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
  if (!queued_.insert(wish.id).second) return;  // it was told of before
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
  auto contents = reader_.read(payload);
  if (!contents && contents.error().code() != ErrorCode::wrong_base) return std::move(contents).error();
  if (!contents) {  // which items were in it only the sender knows
    needed_.push_back({0, parcels_});
    return {};
  }
  for (const Piece& piece : contents->lost) KIN_TRY(miss(piece));
  for (Piece& piece : contents->pieces) KIN_TRY(take_piece(std::move(piece)));
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
Result<void> Incoming::tell(Wish wish, const std::optional<KnownItem>& own, bool conflicts) {
  const bool is_there = own && !own->deleted;
  if (conflicts) {
    const Merged merged = merged_state(wish, *own);
    if (merged.other_version && observer_.on_conflict && told_conflicts_.insert(wish.id).second)
      observer_.on_conflict(wish.item, "both have changed it");
    wish.deleted = !merged.state;
    if (merged.state) wish.item = *merged.state;
    if (wish.deleted ? !is_there : is_there && same_state(own->item, wish.item)) return {};
  }
  Record record{wish.kind, wish.stamp, {}, {}, {}, wish.item};
  if (wish.deleted)
    record.kind = Record::Kind::remove;
  else if (wish.kind != Record::Kind::move)
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
  if (const auto former = held_back_.find(wish.id); former != held_back_.end()) {  // this one is in its place
    failed_.erase(former->second.stamp);
    held_back_.erase(former);
  }
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
  if (own && wish.replaces != own->stamp && follows(*own, wish)) {
    if (conflicts_ == Conflicts::rehearse) return {};
    note_seen(wish);
    merged_.emplace_back(own->id, wish.stamp);  // only the other end has to learn of it
    return {};
  }
  if (needs_room(wish, own)) {
    KIN_TRY_ASSIGN(const bool is_clear, clear_the_way(wish, own));
    if (!is_clear) return {};
  }
  return decide_with_room(std::move(wish), own);
}

Result<void> Incoming::decide_with_room(Wish wish, const std::optional<KnownItem>& own) {
  const bool conflicts = own && differs(*own);
  const bool is_answer = own && wish.replaces == own->stamp;
  if (conflicts_ == Conflicts::rehearse) return tell(std::move(wish), own, conflicts);
  // Where something is already, or was, a move is two changes, of which each goes by its own rules.
  if (wish.source && (conflicts || (own && !own->deleted))) {
    Wish removal = removal_of(wish);
    wish.source.reset();
    KIN_TRY(decide(std::move(removal)));
  }
  if (conflicts && !is_answer && conflicts_ != Conflicts::take) {
    if (conflicts_ == Conflicts::merge) return merge_with(std::move(wish), *own);
    if (will_be_merged(*own)) {
      leave(wish);
      return {};
    }
  }
  // What was seen once was followed by what is here.
  if (!conflicts && !is_answer && !peer_.was_compared && replica_.seen().contains(wish.stamp)) return {};
  if (wish.deleted) {
    queue_deletion(std::move(wish));
    return {};
  }
  return make(std::move(wish), own);
}

// What comes of it will follow; if not, it is to be told again.
void Incoming::leave(const Wish& wish) {
  left_[wish.id].push_back(wish.stamp);
  failed_.insert(wish.stamp);
}

void Incoming::note_seen(const Wish& wish) {
  replica_.add_seen(wish.stamp);
  const auto left = left_.find(wish.id);
  if (left == left_.end()) return;
  for (const Stamp& stamp : left->second) failed_.erase(stamp);
  left_.erase(left);
}

// In the store, under any name; or in the trash.
Result<bool> Incoming::find_content(Wish& wish) {
  if (wish.has_content) return true;
  for (int attempt = 0; attempt < 2; ++attempt) {
    KIN_TRY_ASSIGN(const auto items, replica_.with_object(wish.item.object, 8));
    for (const KnownItem& item : items) {
      auto source = open_item(replica_, store_, item);
      if (!source) continue;
      if (item.item.size > kFlushBytes) {
        if (!parts_.put(wish.item.object, **source)) continue;
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
  const auto size = trash_.check(wish.item.object);
  if (!size) return false;
  wish.content_path = trash_.path_of(wish.item.object);
  wish.item.size = *size;
  wish.has_content = true;
  return true;
}

// False: it is not here, and was asked for or left out.
bool Incoming::get_content(Wish& wish) {
  const auto found = find_content(wish);
  if (!found)
    skip(wish, found.error());
  else if (!*found)
    need(wish.stamp);
  return found && *found;
}

// Before it is deleted or replaced; where it is not the last one, there is no need to.
Result<void> Incoming::keep_in_trash(const KnownItem& known) {
  if (!bears_content(known.item)) return {};
  KIN_TRY_ASSIGN(const auto source, open_item(replica_, store_, known));
  KIN_TRY(trash_.put(known.item.object, *source));
  WireWriter out;
  out.signed_varint(now().seconds);
  encode_item(known.item, out);
  Bytes key{'t'};
  append(key, known.item.object.bytes);
  append(key, known.id);
  replica_.set_note(key, out.take());
  has_uncommitted_trash_ = true;
  return {};
}

// A hint for later changes: without it they only cost more.
std::optional<BlockSignature> Incoming::signature_of(const Wish& wish) {
  SignatureBuilder builder(wish.item.size);
  builder.add(wish.content);
  if (wish.content_path.empty()) return builder.finish(wish.item.object);
  const auto source = open_file_source(wish.content_path);
  if (!source) return std::nullopt;
  Bytes buffer(256 << 10);
  for (;;) {
    const auto got = (*source)->read(buffer);
    if (!got) return std::nullopt;
    builder.add(ByteView(buffer).first(*got));
    if (*got < buffer.size()) return builder.finish(wish.item.object);
  }
}

Result<void> Incoming::make(Wish wish, const std::optional<KnownItem>& own) {
  const bool is_there = own && !own->deleted;
  Pending pending;
  StoreChange& change = pending.change;
  using Kind = StoreChange::Kind;
  if (wish.deleted) {
    if (!is_there) {
      return note_state(wish, own, "");
    }
    change.kind = Kind::remove;
    going_.insert(wish.id);
  } else if (is_there) {
    change.kind = Kind::update;
    change.has_content = bears_content(wish.item) &&
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
  if (change.kind == Kind::add) change.has_content = bears_content(wish.item);
  if (change.has_content && !get_content(wish)) return {};
  if (change.kind == Kind::add && wish.item.type == ItemType::message) {
    KIN_TRY_ASSIGN(const auto equals, replica_.with_object(wish.item.object, kMostEquals));
    for (const KnownItem& equal : equals)
      if (equal.item.folder == wish.item.folder && equal.id != wish.id) change.others.push_back(equal.local);
  }
  const bool loses_content = change.kind == Kind::remove ||
                             (change.kind == Kind::update && bears_content(own->item) &&
                              (own->item.type != wish.item.type || own->item.object != wish.item.object));
  if (loses_content) {
    if (const auto kept = keep_in_trash(*own); !kept) {
      skip(wish, kept.error());
      return {};
    }
  }
  // The size is in no hash.
  if (is_there && bears_content(wish.item) && own->item.object == wish.item.object)
    wish.item.size = own->item.size;
  change.item = wish.item;
  if (change.kind == Kind::move) {
    change.folder = wish.source->item.folder;
    KIN_TRY_ASSIGN(change.entry, entry_of(replica_, *wish.source));
    pending_items_.insert(wish.source->id);
  } else if (is_there) {
    change.folder = own->item.folder;
    KIN_TRY_ASSIGN(change.entry, entry_of(replica_, *own));
  }
  if (change.has_content && wish.item.type == ItemType::file) pending.signature = signature_of(wish);
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
  const bool is_copy = wish.answers.replica != 0 && wish.answers.sequence == 0;  // nobody has told of it
  if (!is_copy) failed_.insert(wish.answers.replica != 0 ? wish.answers : wish.stamp);
  if (wish.source) failed_.insert(wish.removed);
  Entry entry;
  entry.item = wish.item;
  entry.local = wish.item.name;
  if (observer_.on_skipped) observer_.on_skipped(store_.path_of(wish.item.folder, entry), error);
}

Result<void> Incoming::note_state(const Wish& wish, const std::optional<KnownItem>& own,
                                  const std::string& local) {
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
  return replica_.set(std::move(known));
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
    KIN_TRY(note_state(removal, source, ""));
  } else if (pending.before && !pending.before->deleted) {
    replica_.forget_entry(pending.before->item.folder, pending.before->local);
  }
  if (wish.deleted) {
    KIN_TRY(note_state(wish, pending.before, ""));
    forget_contents(replica_, wish.id);
    if (is_mail_) KIN_TRY(note_unheld_words(replica_, wish.id, {}, {}));
    record.kind = Record::Kind::remove;
  } else {
    KIN_TRY(note_state(wish, pending.before, entry.local));
    const bool is_message = wish.item.type == ItemType::message;
    if (is_message) KIN_TRY(note_unheld_words(replica_, wish.id, wish.item.words, entry.item.words));
    // Where it has flags that nobody told of, the next scan is to find them.
    const bool is_as_wished =
        !is_message || (entry.item.flags == wish.item.flags &&
                        std::includes(wish.item.words.begin(), wish.item.words.end(),
                                      entry.item.words.begin(), entry.item.words.end()));
    // A scan looks for what is gone in the folders that it knows.
    const bool is_folder = wish.item.type == ItemType::directory;
    const std::string folder = is_folder ? join_path(wish.item.folder, wish.item.name) : wish.item.folder;
    if (folders_made_.insert(folder).second) replica_.set_folder(folder, std::nullopt);
    // Of mail, a folder is no entry of another one.
    if (!entry.local.empty() && !(is_folder && is_mail_))
      replica_.set_entry(wish.item.folder, entry.local,
                         {entry.fingerprint, look_of(entry) ^ (is_as_wished ? 0 : 1), wish.id});
    if (pending.signature) KIN_TRY(note_content(replica_, wish.id, *pending.signature));
    if (pending.change.kind == Kind::add) record.kind = Record::Kind::full;
    if (pending.change.kind == Kind::update) record.kind = Record::Kind::update;
    if (pending.change.kind == Kind::add && !pending.change.content.empty() && observer_.on_content)
      KIN_TRY(observer_.on_content(wish.item.object, pending.change.content));
  }
  if (observer_.on_change) observer_.on_change(record);
  return {};
}

Result<void> Incoming::make_deletions() {
  if (!may_delete_) return {};
  queued_.clear();
  for (Wish& wish : std::exchange(deletions_, {})) {
    KIN_TRY_ASSIGN(const auto own, replica_.find(wish.id));
    if (!is_mail_ && wish.item.type == ItemType::directory) {
      const std::string path = join_path(wish.item.folder, wish.item.name);
      directories_.insert_or_assign(path, std::move(wish));
    } else {
      KIN_TRY(make(std::move(wish), own));
    }
  }
  return {};
}

Result<void> Incoming::flush() {
  if (conflicts_ == Conflicts::rehearse) {
    pending_.clear();
    pending_items_.clear();
    waiting_bytes_ = 0;
    return {};
  }
  KIN_TRY(make_deletions());
  KIN_TRY(apply_pending());
  if (to_settle_.empty()) return {};
  KIN_TRY(settle_kept());
  return apply_pending();
}

// Files of contents that something else is still to be made of.
std::set<std::string> Incoming::contents_in_use() const {
  std::set<std::string> out;
  for (const Settlement& settlement : to_settle_) out.insert(settlement.wish.content_path);
  for (const auto& [path, wish] : directories_) out.insert(wish.content_path);
  for (const auto& [id, wish] : held_back_) out.insert(wish.content_path);
  return out;
}

Result<void> Incoming::apply_pending() {
  std::vector<Pending> pending = std::exchange(pending_, {});
  pending_items_.clear();
  for (const Settlement& settlement : to_settle_) pending_items_.insert(settlement.wish.id);
  going_.clear();
  waiting_bytes_ = 0;
  KIN_TRY(trash_.sync());
  KIN_TRY(parts_.sync());
  if (!replica_.seen().fits())
    return Error(ErrorCode::corrupt, "what came is in more stretches than can be kept");
  if (pending.empty()) return replica_.commit(true);
  // It must be known what is in the trash before it is nowhere else.
  if (std::exchange(has_uncommitted_trash_, false)) KIN_TRY(replica_.commit(true));
  std::vector<StoreChange> changes;
  std::map<std::string, std::size_t> last_use;  // of files that need not stay
  const std::set<std::string> in_use = contents_in_use();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    changes.push_back(pending[i].change);
    const std::string& path = pending[i].change.content_path;
    if (!path.empty() && path == parts_.path_of(pending[i].wish.item.object) && !in_use.contains(path))
      last_use[path] = i;
  }
  for (const auto& [path, use] : last_use) changes[use].may_take = true;
  const std::vector<Result<Entry>> made = store_.apply(std::move(changes));
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (!made[i]) {
      skip(pending[i].wish, made[i].error());
      continue;
    }
    KIN_TRY(note_made(pending[i], *made[i]));
    if (last_use.contains(pending[i].change.content_path)) parts_.remove(pending[i].wish.item.object);
  }
  return replica_.commit(true);
}

}  // namespace kin::sync

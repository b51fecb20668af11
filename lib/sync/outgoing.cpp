#include "lib/sync/outgoing.h"

#include "lib/sync/frame.h"
#include "lib/sync/item_access.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::size_t kRecordFrameBytes = 28 << 10;
constexpr int kMostTries = 2;

std::uint64_t front_of(const ObjectId& object) {
  std::uint64_t out;
  std::memcpy(&out, object.bytes.data(), sizeof out);
  return out;
}

}  // namespace

Outgoing::Outgoing(Replica& replica, SyncStore& store, BaseFinder& bases, const Formats* formats,
                   PeerView& peer, bool rehearsal, Observer observer)
    : replica_(replica),
      store_(store),
      peer_(peer),
      rehearsal_(rehearsal),
      observer_(std::move(observer)),
      contents_(replica, store, bases, formats, peer,
                [this](const KnownItem& known, const Error& error) { skip(known, error); }) {}

Result<void> Outgoing::add_unseen() {
  KIN_TRY(replica_.for_each_unseen(peer_.seen, [&](const KnownItem& known) { return sort_out(known, {}); }));
  return place_arrivals();
}

Result<void> Outgoing::add(const std::vector<ItemId>& items) {
  for (const ItemId& item : items) {
    KIN_TRY_ASSIGN(const auto known, replica_.find(item));
    if (known) KIN_TRY(sort_out(*known, {}));
  }
  return place_arrivals();
}

Result<void> Outgoing::add_merged(const ItemId& item, const Stamp& replaces) {
  // What was sent of it before was left there, with its content.
  if (peer_.sent.erase(item) > 0) told_before_.insert(item);
  KIN_TRY_ASSIGN(const auto known, replica_.find(item));
  if (!known) return {};
  if (known->deleted) {
    deletions_.emplace(known->id, known->item.folder);
    early_.push_back({known->id, Record::Kind::remove, {}, replaces});
    return {};
  }
  if (replaces.replica != 0 && known->item.type == ItemType::message) {  // the peer has it, with other flags
    early_.push_back({known->id, Record::Kind::update, {}, replaces});
    return {};
  }
  KIN_TRY(sort_out(*known, replaces));
  return place_arrivals();
}

void Outgoing::acked(std::uint64_t parcels) {
  acked_ = std::max(acked_, parcels);
  while (!on_their_way_.empty() && on_their_way_.begin()->first <= parcels) {
    unacked_bytes_ -= on_their_way_.begin()->second.bytes;
    on_their_way_.erase(on_their_way_.begin());
  }
}

Result<void> Outgoing::send_again(const Stamp& stamp) {
  contents_.clear_window();  // what was in it was not all understood
  if (stamp.replica == 0) {  // a whole parcel, by its number
    const auto parcel = on_their_way_.find(stamp.sequence);
    if (parcel == on_their_way_.end()) return {};
    const std::vector<Stamp> stamps = std::exchange(parcel->second.stamps, {});
    for (const Stamp& one : stamps) KIN_TRY(send_again(one));
    return {};
  }
  KIN_TRY_ASSIGN(const std::optional<KnownItem> found, replica_.find_by_stamp(stamp));
  if (!found) return {};  // it has changed since, which will be told
  // What waits to be sent again may be asked for several times: parcels behind it lean on it.
  if (!sent_again_.insert(stamp).second) return {};
  if (++tries_[stamp] > kMostTries) {
    skip(*found, Error(ErrorCode::io, "the other end could not make it of what was sent"));
    return {};
  }
  peer_.sent.erase(found->id);
  contents_.forget_held(found->item.object);
  const auto replaced = replaces_.find(stamp);
  const Stamp replaces = replaced == replaces_.end() ? Stamp{} : replaced->second;
  if (!bears_content(found->item) || found->deleted) {
    if (found->deleted) deletions_.emplace(found->id, found->item.folder);
    early_.push_back({found->id, found->deleted ? Record::Kind::remove : Record::Kind::full, {}, replaces});
    return {};
  }
  contents_.add_again({found->id, replaces, found->item.size, found->item.time.seconds, true});
  return {};
}

// By what the peer has of it: a change of what is there, or something that is to come.
Result<void> Outgoing::sort_out(const KnownItem& known, const Stamp& replaces) {
  const Item* const theirs = peer_.state_of(known);
  if (known.deleted) {
    if (theirs == nullptr) return {};  // it was never there
    deletions_.emplace(known.id, known.item.folder);
    if (known.item.type == ItemType::message) departing_.emplace(theirs->object, known.id);
    const Task task{known.id, Record::Kind::remove, {}, replaces};
    if (known.item.type == ItemType::directory)
      last_.push_front(task);  // a scan meets those that are in others later
    else
      early_.push_back(task);
    return {};
  }
  if (known.item.type == ItemType::message && (theirs != nullptr || peer_.elsewise.contains(known.id))) {
    early_.push_back({known.id, Record::Kind::update, {}, replaces});
    return {};
  }
  if (!bears_content(known.item)) {
    early_.push_back({known.id, Record::Kind::full, {}, replaces});
    return {};
  }
  arrivals_.push_back({known.id, replaces});
  return {};
}

// A content that the peer has somewhere needs not travel.
Result<std::optional<ItemId>> Outgoing::find_content_at_peer(const KnownItem& known) {
  constexpr std::size_t kMost = 8;
  if (peer_.has_content(known, known.item.object)) return std::optional<ItemId>(known.id);
  KIN_TRY_ASSIGN(const auto others, replica_.with_object(known.item.object, kMost));
  for (const KnownItem& other : others)
    if (other.id != known.id && peer_.has_content(other, known.item.object))
      return std::optional<ItemId>(other.id);
  return std::optional<ItemId>();
}

Result<void> Outgoing::place_arrivals() {
  for (const Arrival& arrival : arrivals_) {
    KIN_TRY_ASSIGN(const auto found, replica_.find(arrival.item));
    if (!found || found->deleted) continue;
    const KnownItem& known = *found;
    const bool is_message = known.item.type == ItemType::message;
    if (const auto departing = departing_.find(known.item.object);
        is_message && departing != departing_.end()) {
      // It goes there and comes here: a move, in place of the deletion.
      const ItemId source = departing->second;
      departing_.erase(departing);
      deletions_.erase(source);
      early_.push_back({known.id, Record::Kind::move, source, arrival.replaces});
      continue;
    }
    KIN_TRY_ASSIGN(const auto source, find_content_at_peer(known));
    const Record::Kind kind = is_message ? Record::Kind::place : Record::Kind::full;
    if (source) {
      early_.push_back({known.id, kind, *source, arrival.replaces});
    } else if (!planned_.insert(front_of(known.item.object)).second) {
      late_.push_back({known.id, kind, known.id, arrival.replaces});
    } else {
      contents_.add({known.id, arrival.replaces, known.item.size, known.item.time.seconds, false});
    }
  }
  arrivals_.clear();
  return {};
}

std::map<std::string, std::uint64_t> Outgoing::deletions_by_folder() const {
  std::map<std::string, std::uint64_t> out;
  for (const auto& [item, folder] : deletions_) ++out[folder];
  return out;
}

bool Outgoing::empty() const { return early_.empty() && contents_.empty() && late_.empty() && last_.empty(); }

Result<std::optional<Record>> Outgoing::make_record(const Task& task) {
  KIN_TRY_ASSIGN(const auto known, replica_.find(task.item));
  if (!known || peer_.has_sent(*known)) return std::optional<Record>();
  if (task.kind == Record::Kind::remove && (!deletions_.contains(task.item) || !known->deleted))
    return std::optional<Record>();  // it became a part of a move, or stays
  Record record;
  record.kind = task.kind;
  record.stamp = known->stamp;
  record.replaces = task.replaces;
  if (task.replaces.replica != 0) replaces_[known->stamp] = task.replaces;
  record.item = known->item;
  ItemId source = task.source;
  if (task.kind == Record::Kind::remove || task.kind == Record::Kind::update) source = known->id;
  if (task.kind == Record::Kind::place && source == known->id) {  // one with the same content was sent since
    KIN_TRY_ASSIGN(const auto other, find_content_at_peer(*known));
    if (!other) {
      skip(*known, Error(ErrorCode::io, "its content could not be read"));
      return std::optional<Record>();
    }
    source = *other;
  }
  if (task.kind == Record::Kind::move) {
    KIN_TRY_ASSIGN(const auto gone, replica_.find(source));
    if (!gone) return std::optional<Record>();
    record.removed = gone->stamp;
  }
  if (task.kind != Record::Kind::full) {
    KIN_TRY_ASSIGN(record.reference, reference_to(replica_, source));
  }
  return std::optional<Record>(std::move(record));
}

// For people: a new state of what is there is no new item.
void Outgoing::tell(Record record) {
  if (!observer_.on_record || tries_.contains(record.stamp) || told_before_.contains(item_id(record.item)))
    return;
  const auto known = replica_.find(item_id(record.item));
  const bool is_there =
      record.replaces.replica != 0 || (known && *known && peer_.state_of(**known) != nullptr);
  if (record.kind == Record::Kind::full && is_there) record.kind = Record::Kind::update;
  observer_.on_record(record);
}

Result<Bytes> Outgoing::records_frame() {
  std::deque<Task>& tasks = !early_.empty() ? early_ : !late_.empty() ? late_ : last_;
  std::vector<Record> records;
  for (std::size_t bytes = 0; !tasks.empty() && bytes < kRecordFrameBytes;) {
    const Task task = tasks.front();
    tasks.pop_front();
    KIN_TRY_ASSIGN(auto record, make_record(task));
    if (!record) continue;
    bytes += record_bytes(*record);
    tell(*record);
    peer_.sent.insert(task.item);
    ++totals_.records;
    may_ask_again(record->stamp);
    records.push_back(*std::move(record));
  }
  if (records.empty()) return Bytes();
  return encode_frame(FrameType::records, encode_records(records));
}

Result<std::optional<Bytes>> Outgoing::next_frame() {
  while (!empty()) {
    if (next_is_parcel()) {
      KIN_TRY_ASSIGN(auto frame, parcel_frame());
      if (frame) return frame;
    } else {
      KIN_TRY_ASSIGN(Bytes frame, records_frame());
      if (!frame.empty()) return std::optional<Bytes>(std::move(frame));
    }
  }
  return std::optional<Bytes>();
}

void Outgoing::skip(const KnownItem& known, const Error& error) {
  unsent_.push_back(known.stamp);
  Entry entry;
  entry.local = known.local;
  entry.item = known.item;
  if (observer_.on_skipped) observer_.on_skipped(store_.path_of(known.item.folder, entry), error);
}

void Outgoing::may_ask_again(const Stamp& stamp) {
  if (const auto tries = tries_.find(stamp); tries == tries_.end() || tries->second <= kMostTries)
    sent_again_.erase(stamp);
}

void Outgoing::note_sent(const ContentSender::Made& made) {
  for (const Piece& piece : made.pieces) {
    totals_.content_bytes += piece.length;
    if (observer_.on_content) observer_.on_content(piece.length);
    if (piece.replaces.replica != 0) replaces_[piece.stamp] = piece.replaces;
    if (!piece.is_last()) continue;
    may_ask_again(piece.stamp);
    ++totals_.contents;
    Record record;
    record.kind = Record::Kind::full;
    record.stamp = piece.stamp;
    record.replaces = piece.replaces;
    record.item = piece.item;
    tell(std::move(record));
    peer_.sent.insert(item_id(piece.item));
  }
  totals_.parcel_bytes += made.payload.size();
  ++parcels_;
  OnItsWay& on_its_way = on_their_way_[parcels_];
  for (const Piece& piece : made.pieces) on_its_way.stamps.push_back(piece.stamp);
  on_its_way.bytes = made.payload.size();
  unacked_bytes_ += made.payload.size();
}

Result<std::optional<Bytes>> Outgoing::parcel_frame() {
  KIN_TRY_ASSIGN(const auto made, contents_.next());
  if (!made) return std::optional<Bytes>();
  note_sent(*made);
  if (!rehearsal_) return std::optional<Bytes>(encode_frame(FrameType::parcel, made->payload));
  // What would come, without it.
  std::vector<Record> announced;
  for (const Piece& piece : made->pieces) {
    if (!piece.is_last()) continue;
    Record record;
    record.kind = Record::Kind::announce;
    record.stamp = piece.stamp;
    record.replaces = piece.replaces;
    record.item = piece.item;
    announced.push_back(std::move(record));
  }
  if (announced.empty()) return std::optional<Bytes>();
  return std::optional<Bytes>(encode_frame(FrameType::records, encode_records(announced)));
}

}  // namespace kin::sync

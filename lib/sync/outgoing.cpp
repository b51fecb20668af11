#include "lib/sync/outgoing.h"

#include "lib/sync/frame.h"
#include "lib/sync/opened_content.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::size_t kRecordFrameBytes = 48 << 10;
constexpr std::size_t kParcelGoalBytes =
    28 << 10;  // as it travels: what is lost when a link is cut is at most this
constexpr std::size_t kLeastTargetBytes = 24 << 10, kMostTargetBytes = 1 << 20;
constexpr std::uint64_t kLargeBytes = 32 << 10;
constexpr std::size_t kPiecesPerParcel = 256;
constexpr std::size_t kMostOpenedBytes = 1 << 20;  // of one content: a parcel has its bounds
constexpr std::size_t kBasesPerPiece = 3, kBasesPerParcel = 48;
constexpr std::uint64_t kMostBaseContentBytes =
    256 << 10;  // of one: the front of it would do, but both must agree
constexpr std::size_t kBasesBytes = 2 << 20;
constexpr std::uint64_t kSlowBytes = 200'000, kFastBytes = 2'000'000;  // a second

std::uint64_t front_of(const ObjectId& object) {
  std::uint64_t out;
  std::memcpy(&out, object.bytes.data(), sizeof out);
  return out;
}

bool bears_content(const Item& item) { return item.type == ItemType::message || item.type == ItemType::file; }

}  // namespace

Outgoing::Outgoing(Replica& replica, SyncStore& store, BaseFinder& bases, const Formats* formats,
                   PeerView& peer, bool rehearsal, Observer observer)
    : replica_(replica),
      store_(store),
      bases_(bases),
      formats_(formats),
      peer_(peer),
      rehearsal_(rehearsal),
      observer_(std::move(observer)),
      codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(19)) {}

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
  peer_.sent.erase(item);  // what was sent of it before was left there, with its content
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
  window_.clear();           // what was in it was not all understood
  if (stamp.replica == 0) {  // a whole parcel, by its number
    const auto parcel = on_their_way_.find(stamp.sequence);
    if (parcel == on_their_way_.end()) return {};
    const std::vector<Stamp> stamps = parcel->second.stamps;
    for (const Stamp& one : stamps) KIN_TRY(send_again(one));
    return {};
  }
  KIN_TRY_ASSIGN(const std::optional<KnownItem> found, replica_.find_by_stamp(stamp));
  if (!found) return {};  // it has changed since, which will be told
  if (++tries_[stamp] > 2) {
    skip(*found, Error(ErrorCode::io, "the other end could not make it of what was sent"));
    return {};
  }
  peer_.sent.erase(found->id);
  held_.erase(found->item.object);
  const auto replaced = replaces_.find(stamp);
  const Stamp replaces = replaced == replaces_.end() ? Stamp{} : replaced->second;
  if (!bears_content(found->item) || found->deleted) {
    if (found->deleted) deletions_.emplace(found->id, found->item.folder);
    early_.push_back({found->id, found->deleted ? Record::Kind::remove : Record::Kind::full, {}, replaces});
    return {};
  }
  if (large_source_ != nullptr && large_item_.stamp == stamp) large_source_.reset();
  auto& list = found->item.size > kLargeBytes ? large_ : small_;
  if (std::any_of(list.begin(), list.end(), [&](const ContentTask& task) { return task.item == found->id; }))
    return {};
  list.push_front({found->id, replaces, found->item.size, found->item.time.seconds, true});
  content_bytes_left_ += found->item.size;
  return {};
}

// By what the peer has of it: a change of what is there, or something that is to come.
Result<void> Outgoing::sort_out(const KnownItem& known, const Stamp& replaces) {
  const Item* const theirs = peer_.state_of(known);
  if (known.deleted) {
    if (theirs == nullptr) return {};  // it was never there
    deletions_.emplace(known.id, known.item.folder);
    if (known.item.type == ItemType::message) departing_.emplace(theirs->object, known.id);
    auto& list = known.item.type == ItemType::directory ? last_ : early_;
    list.push_back({known.id, Record::Kind::remove, {}, replaces});
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
      auto& list = known.item.size > kLargeBytes ? large_ : small_;
      list.push_back({known.id, arrival.replaces, known.item.size, known.item.time.seconds, false});
      content_bytes_left_ += known.item.size;
      sorted_ = false;
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

bool Outgoing::empty() const {
  return early_.empty() && small_.empty() && large_.empty() && large_source_ == nullptr && late_.empty() &&
         last_.empty();
}

Result<Bytes> Outgoing::reference_to(const ItemId& item) {
  std::size_t length = kLeastReferenceBytes;
  for (; length < item.size(); ++length) {
    KIN_TRY_ASSIGN(const auto found, replica_.find_by_prefix(ByteView(item).first(length), 2));
    if (found.size() < 2) break;
  }
  return Bytes(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(length));
}

Result<std::optional<Record>> Outgoing::make_record(const Task& task) {
  KIN_TRY_ASSIGN(const auto known, replica_.find(task.item));
  if (!known || peer_.has_sent(*known)) return std::optional<Record>();
  if (task.kind == Record::Kind::remove && !deletions_.contains(task.item))
    return std::optional<Record>();  // it became a part of a move
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
    KIN_TRY_ASSIGN(record.reference, reference_to(source));
  }
  return std::optional<Record>(std::move(record));
}

// For people: a new state of what is there is no new item.
Record Outgoing::told(Record record) {
  const auto known = replica_.find(item_id(record.item));
  if (record.kind == Record::Kind::full && known && *known && peer_.state_of(**known) != nullptr)
    record.kind = Record::Kind::update;
  return record;
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
    if (observer_.on_record && !tries_.contains(record->stamp)) observer_.on_record(told(*record));
    peer_.sent.insert(task.item);
    ++totals_.records;
    records.push_back(*std::move(record));
  }
  if (records.empty()) return Bytes();
  return encode_frame(FrameType::records, encode_records(records));
}

Result<std::optional<Bytes>> Outgoing::next_frame() {
  while (!empty()) {
    const bool contents_first =
        early_.empty() && (!small_.empty() || !large_.empty() || large_source_ != nullptr);
    if (contents_first) {
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

Result<std::unique_ptr<ByteSource>> Outgoing::read_content(const KnownItem& known) {
  KIN_TRY_ASSIGN(const auto seen, replica_.entry(known.item.folder, known.local));
  if (!seen) return Error(ErrorCode::not_found, "it is gone");
  Entry entry;
  entry.local = known.local;
  entry.fingerprint = seen->fingerprint;
  entry.item = known.item;
  return store_.read(known.item.folder, entry);
}

// False: it could not be read, and is left out.
Result<bool> Outgoing::add_small(const ContentTask& task, std::vector<Piece>& pieces) {
  KIN_TRY_ASSIGN(const auto known, replica_.find(task.item));
  content_bytes_left_ -= std::min(content_bytes_left_, task.size);
  if (!known || known->deleted || peer_.has_sent(*known)) return false;
  auto content = [&]() -> Result<Bytes> {
    KIN_TRY_ASSIGN(const auto source, read_content(*known));
    KIN_TRY_ASSIGN(Bytes bytes, read_all(*source, known->item.size));
    if (object_id(bytes) != known->item.object) return Error(ErrorCode::busy, "it has changed meanwhile");
    return bytes;
  }();
  if (!content) {
    skip(*known, content.error());
    return false;
  }
  Piece piece{known->stamp, task.replaces, known->item, 0, *std::move(content), {}};
  if (task.replaces.replica != 0) replaces_[known->stamp] = task.replaces;
  // What was not understood once is sent as it is.
  if (formats_ != nullptr && !task.alone)
    piece.opened = open_content(*formats_, piece.content).value_or(Bytes());
  if (piece.opened.size() > kMostOpenedBytes) piece.opened.clear();
  pieces.push_back(std::move(piece));
  return true;
}

Result<bool> Outgoing::add_large(std::vector<Piece>& pieces) {
  if (large_source_ == nullptr) {
    const ContentTask task = large_.front();
    large_.pop_front();
    KIN_TRY_ASSIGN(auto known, replica_.find(task.item));
    if (!known || known->deleted || peer_.has_sent(*known)) return false;
    auto source = read_content(*known);
    const auto held = held_.find(known->item.object);
    const std::uint64_t skip_bytes =
        held == held_.end() || held->second >= known->item.size ? 0 : held->second;
    Bytes buffer(256 << 10);
    for (std::uint64_t left = skip_bytes; source && left > 0;) {
      auto got = (*source)->read(std::span(buffer).first(std::min<std::uint64_t>(left, buffer.size())));
      if (!got || *got == 0) {
        source = got ? Error(ErrorCode::busy, "it has changed meanwhile") : std::move(got).error();
        break;
      }
      left -= *got;
    }
    if (!source) {
      skip(*known, source.error());
      content_bytes_left_ -= std::min(content_bytes_left_, task.size);
      return false;
    }
    content_bytes_left_ -= std::min(content_bytes_left_, skip_bytes);
    large_source_ = *std::move(source);
    large_item_ = *std::move(known);
    large_replaces_ = task.replaces;
    large_is_alone_ = task.alone;
    if (task.replaces.replica != 0) replaces_[large_item_.stamp] = task.replaces;
    large_offset_ = skip_bytes;
  }
  Piece piece;
  piece.stamp = large_item_.stamp;
  piece.replaces = large_replaces_;
  piece.item = large_item_.item;
  piece.offset = large_offset_;
  piece.content.resize(std::min<std::uint64_t>(parcel_target(), large_item_.item.size - large_offset_));
  const auto got = large_source_->read(piece.content);
  if (!got || *got < piece.content.size()) {
    skip(large_item_, got ? Error(ErrorCode::busy, "it has changed meanwhile") : got.error());
    large_source_.reset();
    return false;
  }
  large_offset_ += *got;
  content_bytes_left_ -= std::min(content_bytes_left_, static_cast<std::uint64_t>(*got));
  if (large_offset_ == large_item_.item.size) large_source_.reset();
  pieces.push_back(std::move(piece));
  return true;
}

// Their contents, the likeliest last; and how the other end finds them.
Result<Bytes> Outgoing::choose_bases(const std::vector<Piece>& pieces, std::vector<Bytes>& references) {
  std::vector<ItemId> chosen;
  for (const Piece& piece : pieces) {
    if (piece.offset > 0) continue;
    KIN_TRY_ASSIGN(const auto candidates, bases_.find(piece.content));
    std::size_t taken = 0;
    for (const ObjectId& candidate : candidates) {
      if (taken == kBasesPerPiece || chosen.size() == kBasesPerParcel) break;
      if (candidate == piece.item.object) continue;
      KIN_TRY_ASSIGN(const auto items, replica_.with_object(candidate, 4));
      for (const KnownItem& item : items) {
        if (item.item.size > kMostBaseContentBytes || peer_.sent.contains(item.id) ||
            !peer_.has_content(item, candidate))
          continue;
        if (std::find(chosen.begin(), chosen.end(), item.id) == chosen.end()) chosen.push_back(item.id);
        ++taken;
        break;
      }
    }
  }
  Bytes out;
  for (auto id = chosen.rbegin(); id != chosen.rend(); ++id) {
    KIN_TRY_ASSIGN(const auto known, replica_.find(*id));
    if (!known || known->deleted || out.size() + known->item.size > kBasesBytes) continue;
    auto source = read_content(*known);
    if (!source) continue;
    auto content = read_all(**source, known->item.size);
    if (!content || object_id(*content) != known->item.object) continue;
    KIN_TRY_ASSIGN(Bytes reference, reference_to(*id));
    references.push_back(std::move(reference));
    const auto opened = formats_ == nullptr ? std::nullopt : open_content(*formats_, *content);
    append(out, opened ? *opened : *content);
  }
  return out;
}

std::size_t Outgoing::parcel_target() const {
  return std::clamp(static_cast<std::size_t>(ratio_ * kParcelGoalBytes), kLeastTargetBytes, kMostTargetBytes);
}

int Outgoing::level() const {
  if (speed_ == 0) return 12;
  return speed_ < kSlowBytes ? 19 : speed_ < kFastBytes ? 12 : 3;
}

Result<std::optional<Bytes>> Outgoing::parcel_frame() {
  if (!sorted_) {
    std::stable_sort(small_.begin(), small_.end(),
                     [](const ContentTask& a, const ContentTask& b) { return a.time > b.time; });
    std::stable_sort(large_.begin(), large_.end(),
                     [](const ContentTask& a, const ContentTask& b) { return a.size < b.size; });
    sorted_ = true;
  }
  std::vector<Piece> pieces;
  bool alone = !small_.empty() && large_source_ == nullptr && small_.front().alone;
  if (large_source_ == nullptr) {
    const std::size_t target = parcel_target();
    for (std::size_t bytes = 0; !small_.empty() && bytes < target && pieces.size() < kPiecesPerParcel;) {
      if (!pieces.empty() && (alone || small_.front().alone)) break;
      const ContentTask task = small_.front();
      small_.pop_front();
      KIN_TRY_ASSIGN(const bool added, add_small(task, pieces));
      if (added) bytes += std::max<std::uint64_t>(task.size, pieces.back().opened.size());
    }
  }
  if (pieces.empty() && (large_source_ != nullptr || !large_.empty())) {
    KIN_TRY_ASSIGN(const bool added, add_large(pieces));
    alone = added && large_is_alone_;
  }
  if (pieces.empty()) return std::optional<Bytes>();
  std::vector<Bytes> references;
  Bytes prefix;
  std::size_t window_bytes = 0;
  if (!alone) {
    KIN_TRY_ASSIGN(const Bytes bases, choose_bases(pieces, references));
    window_bytes = window_.size();
    const ByteView window = window_.last(window_bytes);
    prefix.assign(window.begin(), window.end());
    append(prefix, bases);
  }
  codec_->set_level(level());
  KIN_TRY_ASSIGN(const Bytes payload, encode_parcel(pieces, references, window_bytes, prefix, *codec_));
  std::size_t plain = 0;
  for (const Piece& piece : pieces) {
    plain += piece.content.size();
    if (observer_.on_content) observer_.on_content(piece.content.size());
    const bool is_last = piece.offset + piece.content.size() == piece.item.size;
    if (!is_last) continue;
    ++totals_.contents;
    Record record;
    record.kind = Record::Kind::full;
    record.stamp = piece.stamp;
    record.item = piece.item;
    if (observer_.on_record && !tries_.contains(piece.stamp)) observer_.on_record(told(std::move(record)));
    peer_.sent.insert(item_id(piece.item));
  }
  if (window_bytes == 0) window_.clear();  // the other end does the same, so that a window can begin anew
  window_.add(pieces);
  ratio_ = 0.5 * ratio_ +
           0.5 * static_cast<double>(plain) / static_cast<double>(std::max<std::size_t>(payload.size(), 1));
  totals_.content_bytes += plain;
  totals_.parcel_bytes += payload.size();
  ++parcels_;
  OnItsWay& on_its_way = on_their_way_[parcels_];
  for (const Piece& piece : pieces) on_its_way.stamps.push_back(piece.stamp);
  on_its_way.bytes = payload.size();
  unacked_bytes_ += payload.size();
  if (!rehearsal_) return std::optional<Bytes>(encode_frame(FrameType::parcel, payload));
  // What would come, without it.
  std::vector<Record> announced;
  for (const Piece& piece : pieces) {
    if (piece.offset + piece.content.size() < piece.item.size) continue;
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

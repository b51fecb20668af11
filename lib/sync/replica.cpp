// The rows of the table, by the first byte of their keys:
//
//     M                          the head: id, identity, last sequence, what was seen, digest, number of
//     items P  replica(8)              a peer I  item id(16)             an item: stamp, state, place, past
//     states J  replica(8) sequence(8)  which item a stamp is that of, as long as it is O  object(32) item
//     id(16)  live items by content X  item id(16)             deleted items D  folder                  a
//     folder, and its fingerprint F  folder 0 local          an entry as the last scan saw it N  key notes
//
// Numbers in keys are big-endian, so that their order is that of the numbers.
#include "lib/sync/replica.h"

#include "lib/base/random.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::uint64_t kStateVersion = 1;

Bytes key_of(char table) { return {static_cast<std::uint8_t>(table)}; }

Bytes key_of(char table, ByteView rest) {
  Bytes out = key_of(table);
  append(out, rest);
  return out;
}

void append_number(Bytes& key, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<std::uint8_t>(number >> shift));
}

Bytes journal_key(const Stamp& stamp) {
  Bytes out = key_of('J');
  append_number(out, stamp.replica);
  append_number(out, stamp.sequence);
  return out;
}

Bytes object_key(const ObjectId& object, const ItemId& id) {
  Bytes out = key_of('O', object.bytes);
  append(out, id);
  return out;
}

Bytes entry_prefix(const std::string& folder) {
  Bytes out = key_of('F', as_bytes(folder));
  out.push_back(0);  // no name has one
  return out;
}

Bytes entry_key(const std::string& folder, const std::string& local) {
  Bytes out = entry_prefix(folder);
  append(out, as_bytes(local));
  return out;
}

bool starts_with(ByteView key, ByteView prefix) {
  return key.size() >= prefix.size() && equal(key.first(prefix.size()), prefix);
}

void encode_stamp(const Stamp& stamp, WireWriter& out) {
  out.u64(stamp.replica);
  out.varint(stamp.sequence);
}

Stamp decode_stamp(WireReader& in) {
  const ReplicaId replica = in.u64();
  return {replica, in.varint()};
}

Bytes encode_known(const KnownItem& known) {
  WireWriter out;
  encode_stamp(known.stamp, out);
  out.u8(known.deleted ? 1 : 0);
  out.text(known.local);
  encode_item(known.item, out);
  out.varint(known.past.size());
  for (const PastState& past : known.past) {
    encode_stamp(past.stamp, out);
    out.u8(past.state ? 1 : 0);
    if (past.state) encode_item(*past.state, out);
  }
  return out.take();
}

Result<KnownItem> decode_known(ByteView id, ByteView bytes) {
  KnownItem known;
  std::copy_n(id.begin(), std::min(id.size(), known.id.size()), known.id.begin());
  WireReader in(bytes);
  known.stamp = decode_stamp(in);
  known.deleted = in.u8() != 0;
  known.local = in.text();
  known.item = decode_item(in);
  const std::size_t count = in.count(10);
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    PastState past;
    past.stamp = decode_stamp(in);
    if (in.u8() != 0) past.state = decode_item(in);
    known.past.push_back(std::move(past));
  }
  KIN_TRY(in.finish("the state of an item"));
  return known;
}

Bytes encode_seen(const SeenEntry& seen) {
  WireWriter out;
  out.varint(seen.fingerprint.inode);
  out.varint(seen.fingerprint.size);
  out.signed_varint(seen.fingerprint.modified_ns);
  out.u64(seen.look);
  out.raw(seen.item);
  return out.take();
}

Result<SeenEntry> decode_seen(ByteView bytes) {
  WireReader in(bytes);
  SeenEntry seen;
  seen.fingerprint.inode = in.varint();
  seen.fingerprint.size = in.varint();
  seen.fingerprint.modified_ns = in.signed_varint();
  seen.look = in.u64();
  seen.item = in.array<16>();
  KIN_TRY(in.finish("the state of an entry"));
  return seen;
}

void add_to(SetDigest& digest, const StateHash& hash, bool minus) {
  for (std::size_t i = 0; i < 2; ++i) digest[i] += minus ? 0 - hash[i] : hash[i];
}

}  // namespace

std::uint64_t look_of(const Entry& entry) {
  WireWriter out;
  out.u8(static_cast<std::uint8_t>(entry.item.type));
  out.u8(entry.item.flags);
  out.varint(entry.item.mode);
  out.text(entry.item.target);
  for (const std::string& word : entry.item.words) out.text(word);
  std::uint64_t mixed =
      0xcbf29ce484222325;  // FNV-1a: quick, and nobody gains by a collision of his own flags
  for (const std::uint8_t byte : out.bytes()) mixed = (mixed ^ byte) * 0x100000001b3;
  return mixed;
}

Result<std::uint64_t> Replica::known_items(Table& table) {
  KIN_TRY_ASSIGN(const auto head, table.get(key_of('M')));
  if (!head) return 0;
  WireReader in(*head);
  static_cast<void>(in.varint());
  static_cast<void>(in.u64());
  static_cast<void>(in.text());
  static_cast<void>(in.varint());
  static_cast<void>(in.raw(16));
  return in.varint();
}

Result<std::unique_ptr<Replica>> Replica::open(Table& table, std::string_view identity) {
  std::unique_ptr<Replica> out(new Replica(table));
  KIN_TRY(out->load(identity));
  return out;
}

Result<void> Replica::load(std::string_view identity) {
  identity_ = identity;
  KIN_TRY_ASSIGN(const auto head, table_.get(key_of('M')));
  std::string known_identity;
  if (head) {
    WireReader in(*head);
    if (in.varint() != kStateVersion)
      return Error(ErrorCode::unsupported, "what is known of this store was written by another kin");
    id_ = in.u64();
    known_identity = in.text();
    last_sequence_ = in.varint();
    digest_ = {in.u64(), in.u64()};
    live_ = in.varint();
    seen_ = VersionSet::decode(in);
    KIN_TRY(in.finish("what is known of this store"));
  }
  is_new_ = !head;
  was_copied_ = head && known_identity != identity_;
  if (is_new_ || was_copied_) KIN_TRY(take_new_id());
  const Bytes prefix = key_of('P');
  const auto cursor = table_.seek(prefix);
  for (; cursor->valid() && starts_with(cursor->key(), prefix); cursor->next()) {
    WireReader in(cursor->value());
    Peer peer;
    peer.id = in.u64();
    peer.name = in.text();
    peer.last_seconds = in.signed_varint();
    peer.seen = VersionSet::decode(in);
    KIN_TRY(in.finish("what is known of a peer"));
    peers_[peer.id] = std::move(peer);
  }
  KIN_TRY(cursor->result());
  return {};
}

void Replica::add_seen(const Stamp& stamp) {
  seen_.add(stamp);
  head_changed_ = true;
}

void Replica::set_seen(VersionSet seen) {
  seen_ = std::move(seen);
  head_changed_ = true;
}

Stamp Replica::next_stamp() {
  head_changed_ = true;
  const Stamp stamp{id_, ++last_sequence_};
  seen_.add(stamp);
  return stamp;
}

Result<void> Replica::take_new_id() {
  do id_ = random_number();
  while (id_ == 0 || seen_.knows(id_));
  last_sequence_ = 0;
  head_changed_ = true;
  return commit(true);
}

Result<std::optional<Bytes>> Replica::get(const Bytes& key) {
  if (const auto found = pending_.find(key); found != pending_.end()) return found->second;
  return table_.get(key);
}

void Replica::put(Bytes key, std::optional<Bytes> value) {
  pending_bytes_ += key.size() + (value ? value->size() : 0) + 100;
  pending_.insert_or_assign(std::move(key), std::move(value));
}

Result<std::optional<KnownItem>> Replica::find(const ItemId& id) {
  KIN_TRY_ASSIGN(const auto bytes, get(key_of('I', id)));
  if (!bytes) return std::optional<KnownItem>();
  KIN_TRY_ASSIGN(KnownItem known, decode_known(id, *bytes));
  return std::optional<KnownItem>(std::move(known));
}

Result<std::optional<KnownItem>> Replica::find_by_stamp(const Stamp& stamp) {
  KIN_TRY_ASSIGN(const auto bytes, get(journal_key(stamp)));
  ItemId id{};
  if (!bytes || bytes->size() != id.size()) return std::optional<KnownItem>();
  std::copy_n(bytes->begin(), id.size(), id.begin());
  return find(id);
}

Result<std::vector<KnownItem>> Replica::find_by_prefix(ByteView prefix, std::size_t most) {
  const Bytes begin = key_of('I', prefix);
  std::vector<KnownItem> out;
  const auto cursor = table_.seek(begin);
  for (; out.size() < most && cursor->valid() && starts_with(cursor->key(), begin); cursor->next()) {
    if (pending_.contains(Bytes(cursor->key().begin(), cursor->key().end()))) continue;
    KIN_TRY_ASSIGN(KnownItem known, decode_known(cursor->key().subspan(1), cursor->value()));
    out.push_back(std::move(known));
  }
  KIN_TRY(cursor->result());
  for (auto row = pending_.lower_bound(begin);
       out.size() < most && row != pending_.end() && starts_with(row->first, begin); ++row) {
    if (!row->second) continue;
    KIN_TRY_ASSIGN(KnownItem known, decode_known(ByteView(row->first).subspan(1), *row->second));
    out.push_back(std::move(known));
  }
  return out;
}

Result<std::vector<KnownItem>> Replica::with_object(const ObjectId& object, std::size_t most) {
  const Bytes begin = key_of('O', object.bytes);
  std::vector<ItemId> ids;
  const auto take = [&](ByteView key) {
    ItemId id{};
    if (key.size() == begin.size() + id.size()) std::copy_n(key.begin() + 33, id.size(), id.begin());
    ids.push_back(id);
  };
  const auto cursor = table_.seek(begin);
  for (; ids.size() < most && cursor->valid() && starts_with(cursor->key(), begin); cursor->next())
    if (!pending_.contains(Bytes(cursor->key().begin(), cursor->key().end()))) take(cursor->key());
  KIN_TRY(cursor->result());
  for (auto row = pending_.lower_bound(begin);
       ids.size() < most && row != pending_.end() && starts_with(row->first, begin); ++row)
    if (row->second) take(row->first);
  std::vector<KnownItem> out;
  for (const ItemId& id : ids) {
    KIN_TRY_ASSIGN(auto known, find(id));
    if (known && !known->deleted) out.push_back(*std::move(known));
  }
  return out;
}

Result<void> Replica::for_each_live(const std::function<Result<void>(const KnownItem& known)>& visit) {
  KIN_TRY(commit(false));
  const Bytes prefix = key_of('I');
  const auto cursor = table_.seek(prefix);
  for (; cursor->valid() && starts_with(cursor->key(), prefix); cursor->next()) {
    KIN_TRY_ASSIGN(const KnownItem known, decode_known(cursor->key().subspan(1), cursor->value()));
    if (!known.deleted) KIN_TRY(visit(known));
  }
  return cursor->result();
}

Result<void> Replica::for_each_unseen(const VersionSet& seen,
                                      const std::function<Result<void>(KnownItem known)>& visit) {
  KIN_TRY(commit(false));
  std::vector<std::pair<Stamp, std::uint64_t>> runs;
  seen_.for_each_missing_in(seen, [&](ReplicaId replica, std::uint64_t first, std::uint64_t last) {
    runs.push_back({{replica, first}, last});
  });
  for (const auto& [first, last] : runs) {
    const Bytes begin = journal_key(first), end = journal_key({first.replica, last});
    const auto cursor = table_.seek(begin);
    for (; cursor->valid() && as_text(cursor->key()) <= as_text(end); cursor->next()) {
      ItemId id{};
      if (cursor->value().size() != id.size())
        return Error(ErrorCode::corrupt, "what is known of this store is damaged");
      std::copy_n(cursor->value().begin(), id.size(), id.begin());
      KIN_TRY_ASSIGN(auto known, find(id));
      if (known) KIN_TRY(visit(*std::move(known)));
    }
    KIN_TRY(cursor->result());
  }
  return {};
}

// Of each peer, the newest state that it has seen is what both had in common; the others are of no use.
void Replica::forget_past(KnownItem& known) const {
  std::vector<bool> needed(known.past.size(), false);
  for (const auto& [id, peer] : peers_) {
    if (peer.seen.contains(known.stamp)) continue;
    for (std::size_t i = known.past.size(); i-- > 0;)
      if (peer.seen.contains(known.past[i].stamp)) {
        needed[i] = true;
        break;
      }
  }
  std::vector<PastState> kept;
  for (std::size_t i = 0; i < known.past.size(); ++i)
    if (needed[i]) kept.push_back(std::move(known.past[i]));
  known.past = std::move(kept);
}

Result<void> Replica::set(KnownItem known) {
  KIN_TRY_ASSIGN(const auto before, find(known.id));
  if (before) {
    if (before->stamp != known.stamp) {
      put(journal_key(before->stamp), std::nullopt);
      known.past = before->past;
      known.past.push_back({before->stamp, before->state()});
    }
    if (!before->deleted) {
      add_to(digest_, state_hash(before->item), true);
      --live_;
      if (known.deleted || before->item.object != known.item.object)
        put(object_key(before->item.object, known.id), std::nullopt);
    }
  }
  forget_past(known);
  if (!known.deleted) {
    add_to(digest_, state_hash(known.item), false);
    ++live_;
    if (known.item.type == ItemType::message || known.item.type == ItemType::file)
      put(object_key(known.item.object, known.id), Bytes());
  }
  if (known.deleted != (before && before->deleted))
    put(key_of('X', known.id), known.deleted ? std::optional<Bytes>(Bytes()) : std::nullopt);
  put(journal_key(known.stamp), Bytes(known.id.begin(), known.id.end()));
  head_changed_ = true;
  put(key_of('I', known.id), encode_known(known));
  return {};
}

Result<void> Replica::forget_deleted(std::int64_t least_seconds) {
  KIN_TRY(commit(false));
  std::erase_if(peers_, [&](const auto& row) {
    const bool is_lost = row.second.last_seconds < least_seconds;
    if (is_lost) {
      Bytes key = key_of('P');
      append_number(key, row.first);
      put(std::move(key), std::nullopt);
    }
    return is_lost;
  });
  const Bytes prefix = key_of('X');
  const auto cursor = table_.seek(prefix);
  for (; cursor->valid() && starts_with(cursor->key(), prefix); cursor->next()) {
    ItemId id{};
    if (cursor->key().size() != id.size() + 1) continue;
    std::copy_n(cursor->key().begin() + 1, id.size(), id.begin());
    KIN_TRY_ASSIGN(const auto known, find(id));
    const bool is_needed = known && std::any_of(peers_.begin(), peers_.end(), [&](const auto& peer) {
                             return !peer.second.seen.contains(known->stamp);
                           });
    if (is_needed) continue;
    if (known && known->deleted) {
      put(journal_key(known->stamp), std::nullopt);
      put(key_of('I', id), std::nullopt);
    }
    put(key_of('X', id), std::nullopt);
  }
  KIN_TRY(cursor->result());
  return commit(false);
}

Result<std::optional<SeenEntry>> Replica::entry(const std::string& folder, const std::string& local) {
  KIN_TRY_ASSIGN(const auto bytes, get(entry_key(folder, local)));
  if (!bytes) return std::optional<SeenEntry>();
  KIN_TRY_ASSIGN(SeenEntry seen, decode_seen(*bytes));
  return std::optional<SeenEntry>(seen);
}

void Replica::set_entry(const std::string& folder, const std::string& local, const SeenEntry& seen) {
  put(entry_key(folder, local), encode_seen(seen));
}

void Replica::forget_entry(const std::string& folder, const std::string& local) {
  put(entry_key(folder, local), std::nullopt);
}

Result<void> Replica::EntryCursor::read() {
  valid_ = cursor_->valid() && starts_with(cursor_->key(), prefix_);
  if (!valid_) return cursor_->result();
  local_ = as_text(cursor_->key().subspan(prefix_.size()));
  KIN_TRY_ASSIGN(seen_, decode_seen(cursor_->value()));
  return {};
}

Result<void> Replica::EntryCursor::next() {
  cursor_->next();
  return read();
}

Result<Replica::EntryCursor> Replica::entries_of(const std::string& folder) {
  EntryCursor out;
  out.prefix_ = entry_prefix(folder);
  out.cursor_ = table_.seek(out.prefix_);
  KIN_TRY(out.read());
  return out;
}

Result<std::map<std::string, std::optional<std::uint64_t>>> Replica::folders() {
  KIN_TRY(commit(false));
  std::map<std::string, std::optional<std::uint64_t>> out;
  const Bytes prefix = key_of('D');
  const auto cursor = table_.seek(prefix);
  for (; cursor->valid() && starts_with(cursor->key(), prefix); cursor->next()) {
    WireReader in(cursor->value());
    auto& fingerprint = out[std::string(as_text(cursor->key().subspan(1)))];
    if (in.left() > 0) fingerprint = in.u64();
  }
  KIN_TRY(cursor->result());
  return out;
}

void Replica::set_folder(const std::string& folder, std::optional<std::uint64_t> fingerprint) {
  WireWriter out;
  if (fingerprint) out.u64(*fingerprint);
  put(key_of('D', as_bytes(folder)), out.take());
}

void Replica::forget_folder(const std::string& folder) { put(key_of('D', as_bytes(folder)), std::nullopt); }

void Replica::set_peer(Peer peer) {
  WireWriter out;
  out.u64(peer.id);
  out.text(peer.name);
  out.signed_varint(peer.last_seconds);
  peer.seen.encode(out);
  Bytes key = key_of('P');
  append_number(key, peer.id);
  put(std::move(key), out.take());
  peers_[peer.id] = std::move(peer);
}

Result<std::optional<Bytes>> Replica::note(ByteView key) { return get(key_of('N', key)); }

void Replica::set_note(ByteView key, std::optional<Bytes> value) { put(key_of('N', key), std::move(value)); }

Result<void> Replica::for_each_note(ByteView prefix,
                                    const std::function<Result<void>(ByteView key, ByteView value)>& visit) {
  KIN_TRY(commit(false));
  const Bytes begin = key_of('N', prefix);
  const auto cursor = table_.seek(begin);
  for (; cursor->valid() && starts_with(cursor->key(), begin); cursor->next())
    KIN_TRY(visit(cursor->key().subspan(1), cursor->value()));
  return cursor->result();
}

void Replica::save_head() {
  WireWriter out;
  out.varint(kStateVersion);
  out.u64(id_);
  out.text(identity_);
  out.varint(last_sequence_);
  out.u64(digest_[0]);
  out.u64(digest_[1]);
  out.varint(live_);
  seen_.encode(out);
  put(key_of('M'), out.take());
}

Result<void> Replica::commit(bool durable) {
  if (head_changed_) save_head();
  head_changed_ = false;
  TableBatch batch;
  for (auto& [key, value] : pending_) {
    if (value)
      batch.put(key, std::move(*value));
    else
      batch.remove(key);
  }
  pending_.clear();
  pending_bytes_ = 0;
  if (batch.empty() && !durable) return {};
  return table_.commit(batch, durable);
}

}  // namespace kin::sync

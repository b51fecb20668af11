#include "lib/sync/replica.h"

#include "lib/base/random.h"
#include "lib/sync/replica_rows.h"

#include <algorithm>
#include <ctime>

namespace kin::sync {

using rows::append_number;
using rows::key_of;
using rows::starts_with;

namespace {

constexpr std::uint64_t kStateVersion = 1;

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

Bytes encode_time(std::int64_t seconds) {
  WireWriter out;
  out.signed_varint(seconds);
  return out.take();
}

std::int64_t decode_time(ByteView bytes) {
  WireReader in(bytes);
  return in.signed_varint();
}

void add_to(SetDigest& digest, const StateHash& hash, bool minus) {
  for (std::size_t i = 0; i < 2; ++i) digest[i] += minus ? 0 - hash[i] : hash[i];
}

}  // namespace

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
  if (is_new_) KIN_TRY(take_new_id());
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

// The head, with the new identity, goes last: who is interrupted before does it all again.
Result<void> Replica::start_anew(ByteView kept_notes) {
  constexpr std::size_t kMostPendingBytes = 8 << 20;
  const Bytes head = key_of('M'), kept = key_of('N', kept_notes);
  const auto cursor = table_.seek({});
  for (; cursor->valid(); cursor->next()) {
    if (starts_with(cursor->key(), head) || starts_with(cursor->key(), kept)) continue;
    put(Bytes(cursor->key().begin(), cursor->key().end()), std::nullopt);
    if (pending_bytes_ > kMostPendingBytes) KIN_TRY(commit(false));
  }
  KIN_TRY(cursor->result());
  peers_.clear();
  seen_ = {};
  digest_ = {};
  live_ = 0;
  was_copied_ = false;
  return take_new_id();
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

// Of each peer, the newest state that it is known to have seen is what both had in common. It may have got a
// later one in an exchange that was cut, of which it tells in the next: a deletion is only sent to whom is
// known to have what is deleted.
void Replica::forget_past(KnownItem& known) const {
  constexpr std::size_t kMostLater = 8;  // without them, sets are compared
  const std::size_t count = known.past.size();
  std::vector<bool> is_common(count, false);
  std::size_t later = peers_.empty() ? 0 : count;  // the first that some peer may have got
  for (const auto& [id, peer] : peers_) {
    if (peer.seen.contains(known.stamp)) continue;
    std::size_t i = count;
    while (i > 0 && !peer.seen.contains(known.past[i - 1].stamp)) --i;
    if (i > 0) is_common[i - 1] = true;
    later = std::min(later, i);
  }
  later = std::max(later, count - std::min(count, kMostLater));
  std::vector<PastState> kept;
  for (std::size_t i = 0; i < count; ++i)
    if (is_common[i] || i >= later) kept.push_back(std::move(known.past[i]));
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
    if (bears_content(known.item)) put(object_key(known.item.object, known.id), Bytes());
  }
  if (known.deleted != (before && before->deleted))
    put(key_of('X', known.id),
        known.deleted ? std::optional<Bytes>(encode_time(std::time(nullptr))) : std::nullopt);
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
    // One that was never met may have it still, from a peer of ours.
    if (decode_time(cursor->value()) >= least_seconds) continue;
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

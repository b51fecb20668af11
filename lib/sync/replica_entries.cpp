// The part of a replica that is of this store alone: what scans saw in it, and notes. Nothing of it is told
// to others.
#include "lib/sync/replica.h"
#include "lib/sync/replica_rows.h"

namespace kin::sync {

using rows::key_of;
using rows::starts_with;

namespace {

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

}  // namespace kin::sync

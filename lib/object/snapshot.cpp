#include "lib/object/snapshot.h"

#include "lib/base/wire.h"

#include <cmath>

namespace kin {
namespace {

constexpr std::uint8_t kSnapshotVersion = 1;

// One list for both directions keeps them from drifting apart.
template <class Summary, class Visit>
void for_each_count(Summary& summary, Visit visit) {
  visit(summary.files_new);
  visit(summary.files_changed);
  visit(summary.files_unmodified);
  visit(summary.directories);
  visit(summary.others);
  visit(summary.files);
  visit(summary.bytes);
  visit(summary.bytes_read);
  visit(summary.objects_added);
  visit(summary.bytes_added);
  visit(summary.bytes_stored);
  visit(summary.skipped);
}

void encode_optional(const std::optional<SnapshotId>& id, WireWriter& out) {
  out.u8(id ? 1 : 0);
  if (id) out.raw(id->bytes);
}

std::optional<SnapshotId> decode_optional(WireReader& in) {
  const std::uint8_t present = in.u8();
  if (present > 1) in.fail();
  if (present != 1) return std::nullopt;
  return SnapshotId{in.array<32>()};
}

void encode_texts(const std::vector<std::string>& texts, WireWriter& out) {
  out.varint(texts.size());
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> decode_texts(WireReader& in) {
  std::vector<std::string> texts(in.count(1));
  for (std::string& text : texts) text = in.text();
  return texts;
}

}  // namespace

Bytes encode_snapshot(const Snapshot& snapshot) {
  WireWriter out;
  out.u8(kSnapshotVersion);
  out.signed_varint(snapshot.time.seconds);
  out.varint(snapshot.time.nanoseconds);
  out.text(snapshot.host);
  out.text(snapshot.user);
  out.varint(snapshot.uid);
  out.varint(snapshot.gid);
  encode_texts(snapshot.paths, out);
  encode_texts(snapshot.tags, out);
  encode_optional(snapshot.parent, out);
  encode_optional(snapshot.original, out);
  out.text(snapshot.program_version);
  out.raw(snapshot.tree.bytes);
  for_each_count(snapshot.summary, [&](std::uint64_t count) { out.varint(count); });
  out.varint(static_cast<std::uint64_t>(std::llround(snapshot.seconds * 1000)));
  return out.take();
}

Result<Snapshot> decode_snapshot(ByteView bytes) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kSnapshotVersion)
    return Error(ErrorCode::unsupported, "the snapshot was made by a newer kin");
  if (in.u8() != kSnapshotVersion) in.fail();
  Snapshot snapshot;
  snapshot.time.seconds = in.signed_varint();
  snapshot.time.nanoseconds = static_cast<std::uint32_t>(in.varint_up_to(999'999'999));
  snapshot.host = in.text();
  snapshot.user = in.text();
  snapshot.uid = static_cast<std::uint32_t>(in.varint_up_to(0xffff'ffff));
  snapshot.gid = static_cast<std::uint32_t>(in.varint_up_to(0xffff'ffff));
  snapshot.paths = decode_texts(in);
  snapshot.tags = decode_texts(in);
  snapshot.parent = decode_optional(in);
  snapshot.original = decode_optional(in);
  snapshot.program_version = in.text();
  snapshot.tree.bytes = in.array<32>();
  for_each_count(snapshot.summary, [&](std::uint64_t& count) { count = in.varint(); });
  snapshot.seconds = static_cast<double>(in.varint()) / 1000;
  KIN_TRY(in.finish("snapshot"));
  return snapshot;
}

}  // namespace kin

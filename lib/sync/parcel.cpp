#include "lib/sync/parcel.h"

#include "lib/sync/opened_content.h"
#include "lib/sync/record.h"

#include <algorithm>
#include <map>

namespace kin::sync {
namespace {

constexpr std::size_t kMostDecodedBytes = kMostParcelBytes + (4 << 20);
constexpr std::size_t kCheckBytes = 8;  // of a whole content's hash: the receiver computes the rest
constexpr std::uint8_t kIsWhole = 1, kReplaces = 2, kIsOpened = 4;

void encode_next_stamp(const Stamp& stamp, Stamp& before, WireWriter& out) {
  const bool same = stamp.replica == before.replica;
  out.u8(same ? 1 : 0);
  if (!same) out.u64(stamp.replica);
  out.signed_varint(static_cast<std::int64_t>(stamp.sequence - before.sequence));
  before = stamp;
}

Stamp decode_next_stamp(Stamp& before, WireReader& in) {
  if (in.u8() == 0) before.replica = in.u64();
  before.sequence += static_cast<std::uint64_t>(in.signed_varint());
  if (before.replica == 0 || before.sequence == 0 || before.sequence > std::uint64_t{1} << 62) in.fail();
  return before;
}

const Bytes& as_it_travels(const Piece& piece) { return piece.opened.empty() ? piece.content : piece.opened; }

}  // namespace

Result<Bytes> encode_parcel(const std::vector<Piece>& pieces, const std::vector<Bytes>& bases,
                            std::size_t window_bytes, ByteView prefix, Codec& codec) {
  WireWriter plain;
  plain.varint(pieces.size());
  Stamp before, before_replaced;
  for (const Piece& piece : pieces) {
    plain.u8(static_cast<std::uint8_t>((piece.is_whole() ? kIsWhole : 0) |
                                       (piece.replaces.replica != 0 ? kReplaces : 0) |
                                       (piece.opened.empty() ? 0 : kIsOpened)));
    encode_next_stamp(piece.stamp, before, plain);
    if (piece.replaces.replica != 0) encode_next_stamp(piece.replaces, before_replaced, plain);
    Item item = piece.item;
    item.object = {};  // stands for itself, and would be noise here
    WireWriter encoded;
    encode_item(item, encoded);
    // Behind type and names come 32 zeros: a run, which costs next to nothing.
    plain.raw(encoded.bytes());
    plain.raw(ByteView(piece.item.object.bytes)
                  .first(piece.is_whole() ? kCheckBytes : piece.item.object.bytes.size()));
    plain.varint(piece.offset);
    plain.varint(as_it_travels(piece).size());
  }
  for (const Piece& piece : pieces) plain.raw(as_it_travels(piece));
  KIN_TRY_ASSIGN(const Bytes packed, codec.encode(prefix, plain.bytes()));
  WireWriter out;
  out.varint(bases.size());
  for (const Bytes& base : bases) out.blob(base);
  out.varint(window_bytes);
  out.varint(plain.size());
  out.raw(packed);
  return out.take();
}

Result<ParcelHead> decode_parcel_head(ByteView bytes) {
  WireReader in(bytes);
  ParcelHead head;
  const std::size_t bases = in.count(2);
  if (bases > kMostBases) in.fail();
  for (std::size_t i = 0; i < bases && !in.failed(); ++i) {
    const ByteView base = in.blob();
    if (base.size() < kLeastReferenceBytes || base.size() > sizeof(ItemId)) in.fail();
    head.bases.emplace_back(base.begin(), base.end());
  }
  head.window_bytes = in.varint_up_to(kWindowBytes);
  head.plain_bytes = in.varint_up_to(kMostDecodedBytes);
  head.payload = in.raw(in.left());
  KIN_TRY(in.finish("a parcel"));
  return head;
}

Result<std::vector<Piece>> decode_parcel(const ParcelHead& head, ByteView prefix, Codec& codec,
                                         const Formats* formats) {
  auto decoded = codec.decode(prefix, head.payload, head.plain_bytes);
  // With another prefix than the sender's a frame may well be invalid.
  if (!decoded) return Error(ErrorCode::wrong_base, decoded.error().message());
  const Bytes plain = *std::move(decoded);
  WireReader in(plain);
  const std::size_t count = in.count(8);
  if (count > kMostPieces) return Error(ErrorCode::corrupt, "a parcel of too many pieces");
  std::vector<Piece> pieces(count);
  std::vector<std::size_t> lengths(pieces.size());
  std::vector<bool> is_opened(pieces.size());
  Stamp before, before_replaced;
  for (std::size_t i = 0; i < pieces.size() && !in.failed(); ++i) {
    Piece& piece = pieces[i];
    const std::uint8_t flags = in.u8();
    if (flags > (kIsWhole | kReplaces | kIsOpened) || (flags & (kIsWhole | kIsOpened)) == kIsOpened)
      in.fail();
    is_opened[i] = (flags & kIsOpened) != 0;
    piece.stamp = decode_next_stamp(before, in);
    if ((flags & kReplaces) != 0) piece.replaces = decode_next_stamp(before_replaced, in);
    piece.item = decode_item(in);
    if (piece.item.type != ItemType::message && piece.item.type != ItemType::file) in.fail();
    const ByteView object = in.raw((flags & kIsWhole) != 0 ? kCheckBytes : piece.item.object.bytes.size());
    std::copy(object.begin(), object.end(), piece.item.object.bytes.begin());
    piece.offset = in.varint();
    lengths[i] = in.varint_up_to(kMostParcelBytes);
    const std::uint64_t length = is_opened[i] ? piece.item.size : lengths[i];
    const bool fits = piece.offset <= piece.item.size && length <= piece.item.size - piece.offset;
    if (!fits) in.fail();
    if (((flags & kIsWhole) != 0) != (length == piece.item.size) ||
        (is_opened[i] && length > kMostParcelBytes))
      in.fail();
  }
  for (std::size_t i = 0; i < pieces.size() && !in.failed(); ++i) {
    const ByteView content = in.raw(lengths[i]);
    (is_opened[i] ? pieces[i].opened : pieces[i].content).assign(content.begin(), content.end());
  }
  // A frame that decodes to nonsense was made with another prefix, if it had one.
  if (const auto finished = in.finish("a parcel"); !finished)
    return Error(prefix.empty() ? ErrorCode::corrupt : ErrorCode::wrong_base, finished.error().message());
  for (Piece& piece : pieces) {
    if (!piece.opened.empty()) {
      if (formats == nullptr) return Error(ErrorCode::wrong_base, "an opened content");
      auto closed = close_content(*formats, piece.opened, piece.item.size);
      if (!closed) return Error(ErrorCode::wrong_base, closed.error().message());
      piece.content = *std::move(closed);
    }
    if (!piece.is_whole()) continue;
    const ObjectId object = object_id(piece.content);
    if (!std::equal(object.bytes.begin(), object.bytes.begin() + kCheckBytes,
                    piece.item.object.bytes.begin()))
      return Error(ErrorCode::wrong_base, "a message did not come out as it was sent");
    piece.item.object = object;
  }
  return pieces;
}

void SentWindow::add(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) append(bytes_, as_it_travels(piece));
  if (bytes_.size() > kWindowBytes)
    bytes_.erase(bytes_.begin(), bytes_.end() - static_cast<std::ptrdiff_t>(kWindowBytes));
}

}  // namespace kin::sync

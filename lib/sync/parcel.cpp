#include "lib/sync/parcel.h"

#include "lib/sync/opened_content.h"
#include "lib/sync/record.h"

#include <algorithm>
#include <map>

namespace kin::sync {
namespace {

constexpr std::size_t kMostDecodedBytes = kMostParcelBytes + (4 << 20);
constexpr std::size_t kCheckBytes = 8;  // of a whole content's hash: the receiver computes the rest
constexpr std::uint8_t kIsWhole = 1, kReplaces = 2, kIsOpened = 4, kIsDifference = 8;

void encode_next_stamp(const Stamp& stamp, Stamp& before, WireWriter& out) {
  const bool same = stamp.replica == before.replica;
  out.u8(same ? 1 : 0);
  if (!same) out.u64(stamp.replica);
  out.signed_varint(static_cast<std::int64_t>(stamp.sequence - before.sequence));
  before = stamp;
}

Stamp decode_next_stamp(Stamp& before, WireReader& in) {
  const std::uint8_t same = in.u8();
  if (same > 1) in.fail();
  if (same == 0) before.replica = in.u64();
  before.sequence += static_cast<std::uint64_t>(in.signed_varint());
  if (before.replica == 0 || before.sequence == 0 || before.sequence > std::uint64_t{1} << 62) in.fail();
  return before;
}

std::uint8_t flags_of(const Piece& piece) {
  const auto flag = [](bool is, std::uint8_t value) { return is ? value : std::uint8_t{0}; };
  return flag(piece.is_whole(), kIsWhole) | flag(piece.replaces.replica != 0, kReplaces) |
         flag(piece.form == Piece::Form::opened, kIsOpened) |
         flag(piece.form == Piece::Form::difference, kIsDifference);
}

bool is_valid(std::uint8_t flags) {
  if (flags > (kIsWhole | kReplaces | kIsOpened | kIsDifference)) return false;
  const bool is_opened = (flags & kIsOpened) != 0, is_difference = (flags & kIsDifference) != 0;
  return !(is_opened && is_difference) && (!is_opened || (flags & kIsWhole) != 0);
}

}  // namespace

Result<Bytes> encode_parcel(const std::vector<Piece>& pieces, const std::vector<Bytes>& bases,
                            std::size_t window_bytes, ByteView prefix, Codec& codec) {
  WireWriter plain;
  plain.varint(pieces.size());
  Stamp before, before_replaced;
  for (const Piece& piece : pieces) {
    plain.u8(flags_of(piece));
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
    plain.varint(piece.travels.size());
    if (piece.form == Piece::Form::difference) {
      plain.varint(piece.length);
      plain.raw(ByteView(piece.former.bytes).first(kCheckBytes));
    }
  }
  for (const Piece& piece : pieces) plain.raw(piece.travels);
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
  std::uint64_t contents = 0;  // what travels may be little, and a copy much
  Stamp before, before_replaced;
  for (std::size_t i = 0; i < pieces.size() && !in.failed(); ++i) {
    Piece& piece = pieces[i];
    const std::uint8_t flags = in.u8();
    if (!is_valid(flags)) in.fail();
    if ((flags & kIsOpened) != 0) piece.form = Piece::Form::opened;
    if ((flags & kIsDifference) != 0) piece.form = Piece::Form::difference;
    piece.stamp = decode_next_stamp(before, in);
    if ((flags & kReplaces) != 0) piece.replaces = decode_next_stamp(before_replaced, in);
    piece.item = decode_item(in);
    if (!bears_content(piece.item)) in.fail();
    const ByteView object = in.raw((flags & kIsWhole) != 0 ? kCheckBytes : piece.item.object.bytes.size());
    std::copy(object.begin(), object.end(), piece.item.object.bytes.begin());
    piece.offset = in.varint();
    lengths[i] = in.varint_up_to(kMostParcelBytes);
    std::uint64_t length = lengths[i];
    if (piece.form == Piece::Form::opened) length = piece.item.size;
    if (piece.form == Piece::Form::difference) {
      if (piece.item.type != ItemType::file) in.fail();
      length = in.varint();
      const ByteView former = in.raw(kCheckBytes);
      std::copy(former.begin(), former.end(), piece.former.bytes.begin());
    }
    const bool fits = piece.offset <= piece.item.size && length <= piece.item.size - piece.offset;
    contents += length;
    if (!fits || length > kMostParcelBytes || contents > kMostDecodedBytes) in.fail();
    piece.length = static_cast<std::size_t>(length);
    if (((flags & kIsWhole) != 0) != piece.is_whole()) in.fail();
  }
  for (std::size_t i = 0; i < pieces.size() && !in.failed(); ++i) {
    const ByteView travels = in.raw(lengths[i]);
    pieces[i].travels.assign(travels.begin(), travels.end());
  }
  // A frame that decodes to nonsense was made with another prefix, if it had one.
  if (const auto finished = in.finish("a parcel"); !finished)
    return Error(prefix.empty() ? ErrorCode::corrupt : ErrorCode::wrong_base, finished.error().message());
  for (Piece& piece : pieces) {
    if (piece.form == Piece::Form::difference) continue;
    Bytes content;
    if (piece.form == Piece::Form::opened) {
      if (formats == nullptr) return Error(ErrorCode::wrong_base, "an opened content");
      auto closed = close_content(*formats, piece.travels, piece.item.size);
      if (!closed) return Error(ErrorCode::wrong_base, closed.error().message());
      content = *std::move(closed);
    } else {
      content = piece.travels;
    }
    if (!take_content(piece, std::move(content)))
      return Error(ErrorCode::wrong_base, "a message did not come out as it was sent");
  }
  return pieces;
}

bool take_content(Piece& piece, Bytes content) {
  if (content.size() != piece.length) return false;
  piece.content = std::move(content);
  if (!piece.is_whole()) return true;
  const ObjectId object = object_id(piece.content);
  if (!std::equal(object.bytes.begin(), object.bytes.begin() + kCheckBytes, piece.item.object.bytes.begin()))
    return false;
  piece.item.object = object;
  return true;
}

bool is_former(const Piece& piece, const ObjectId& object) {
  return std::equal(object.bytes.begin(), object.bytes.begin() + kCheckBytes, piece.former.bytes.begin());
}

void SentWindow::add(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) append(bytes_, piece.travels);
  if (bytes_.size() > kWindowBytes)
    bytes_.erase(bytes_.begin(), bytes_.end() - static_cast<std::ptrdiff_t>(kWindowBytes));
}

}  // namespace kin::sync

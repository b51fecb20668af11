#include "lib/delta/block.h"

#include "lib/base/wire.h"

#include <fmt/core.h>

namespace kin {
namespace {

constexpr std::uint8_t kBlockVersion = 1;
enum BlockFlag : std::uint8_t { has_base = 1 };

}  // namespace

Bytes encode_block_header(const BlockHeader& header) {
  WireWriter out;
  out.u8(kBlockVersion);
  out.u8(header.codec);
  out.u8(header.base ? has_base : 0);
  if (header.base) out.raw(header.base->bytes);
  out.varint(header.content_size);
  out.varint(header.objects.size());
  for (const BlockObject& object : header.objects) {
    out.raw(object.id.bytes);
    out.u8(static_cast<std::uint8_t>(object.kind));
    out.varint(object.size);
    out.varint(object.features.size());
    for (const std::uint64_t feature : object.features) out.u64(feature);
  }
  return out.take();
}

Result<BlockHeader> decode_block_header(ByteView bytes) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kBlockVersion)
    return Error(ErrorCode::unsupported, "the block was made by a newer kin");
  if (in.u8() != kBlockVersion) in.fail();
  BlockHeader header;
  header.codec = in.u8();
  const std::uint8_t flags = in.u8();
  if ((flags & ~has_base) != 0) in.fail();
  if (flags & has_base) header.base = ObjectId{in.array<32>()};
  header.content_size = in.varint();
  if (header.content_size > kMostBlockBytes) in.fail();
  const std::size_t count = in.count(35);
  if (count > kMostBlockObjects) in.fail();
  header.objects.resize(in.failed() ? 0 : count);
  std::uint64_t sum = 0;
  for (BlockObject& object : header.objects) {
    object.id.bytes = in.array<32>();
    const std::uint8_t kind = in.u8();
    if (kind < 1 || kind > 4) in.fail();
    object.kind = static_cast<ObjectKind>(kind);
    object.size = in.varint();
    object.features.resize(in.count(8));
    for (std::uint64_t& feature : object.features) feature = in.u64();
    if (in.failed() || object.size > header.content_size) {
      in.fail();
      break;
    }
    // A group lists itself as one more object, which spans the others.
    if (object.kind == ObjectKind::group && object.size != header.content_size) in.fail();
    if (object.kind != ObjectKind::group) sum += object.size;
  }
  if (sum != header.content_size) in.fail();
  KIN_TRY(in.finish("block header"));
  return header;
}

BlockEncoder::BlockEncoder(int level)
    : codec_(find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(level)) {}

EncodedBlock BlockEncoder::encode(PlainBlock block) {
  EncodedBlock out;
  out.header.content_size = block.content.size();
  out.header.objects = std::move(block.objects);
  auto payload = codec_->encode({}, block.content);
  if (payload && payload->size() < block.content.size()) {
    const auto decoded = codec_->decode({}, *payload, block.content.size());
    if (decoded && equal(*decoded, block.content)) {
      out.header.codec = static_cast<std::uint8_t>(CodecId::zstd);
      out.payload = *std::move(payload);
      return out;
    }
    out.refused = true;
  }
  out.header.codec = static_cast<std::uint8_t>(CodecId::plain);
  out.payload = std::move(block.content);
  return out;
}

Result<Bytes> BlockDecoder::decode(const BlockHeader& header, ByteView base, ByteView payload) {
  const CodecEntry* const entry = find_codec(header.codec);
  if (entry == nullptr)
    return Error(ErrorCode::unsupported, fmt::format("encoding {} was made by a newer kin", header.codec));
  if (codecs_.size() <= header.codec) codecs_.resize(header.codec + std::size_t{1});
  std::unique_ptr<Codec>& codec = codecs_[header.codec];
  if (!codec) codec = entry->make(0);
  return codec->decode(base, payload, static_cast<std::size_t>(header.content_size));
}

}  // namespace kin

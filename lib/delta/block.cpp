#include "lib/delta/block.h"

#include "lib/base/wire.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin {
namespace {

constexpr std::uint8_t kBlockVersion = 1;
enum BlockFlag : std::uint8_t { has_base = 1 };

// A few samples tell what is compressed already: pictures, archives, sound.
constexpr std::size_t kSamples = 4;
constexpr std::size_t kSampleBytes = 16 << 10;
constexpr int kSampleLevel = 1;

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
    for (const Feature feature : object.features)
      for (std::size_t i = 0; i < kFeatureBytes; ++i) out.u8(static_cast<std::uint8_t>(feature >> (8 * i)));
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
    if (kind < 1 || kind > 5) in.fail();
    object.kind = static_cast<ObjectKind>(kind);
    object.size = in.varint();
    const std::size_t features = in.count(kFeatureBytes);
    if (features > kMostFeatures) in.fail();
    object.features.resize(in.failed() ? 0 : features);
    for (Feature& feature : object.features)
      for (std::size_t i = 0; i < kFeatureBytes; ++i) feature |= Feature{in.u8()} << (8 * i);
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

BlockEncoder::BlockEncoder(const Effort& effort) : effort_(effort) {}
BlockEncoder::~BlockEncoder() = default;

Codec& BlockEncoder::codec(CodecId id, int level) {
  std::unique_ptr<Codec>& codec = codecs_[id];
  if (!codec) codec = find_codec(static_cast<std::uint8_t>(id))->make(level);
  codec->set_level(level);
  return *codec;
}

Encoding BlockEncoder::compress(ByteView content, int level) {
  auto payload = codec(CodecId::zstd, level).encode({}, content);
  if (payload && payload->size() < content.size()) return {CodecId::zstd, *std::move(payload)};
  return {CodecId::plain, Bytes(content.begin(), content.end())};
}

bool BlockEncoder::is_dense(ByteView content) {
  const std::size_t step = content.size() / kSamples + 1;
  std::size_t taken = 0, left = 0;
  for (std::size_t at = 0; at < content.size(); at += step) {
    const ByteView sample = content.subspan(at, std::min({step, kSampleBytes, content.size() - at}));
    taken += sample.size();
    left += compress(sample, kSampleLevel).payload.size();
  }
  return left > taken / 2;
}

// Most of the time that large objects take goes to those that a search does not make smaller.
Encoding BlockEncoder::compress_whole(ByteView content, bool is_long) {
  const int level = is_long ? effort_.long_whole_level : effort_.whole_level;
  const bool dense = effort_.dense_level != level && is_dense(content);
  return compress(content, dense ? effort_.dense_level : level);
}

std::optional<Encoding> BlockEncoder::compress_delta(ByteView base, ByteView content, bool close) {
  std::optional<Encoding> best;
  const auto try_codec = [&](CodecId id, int level) {
    auto payload = codec(id, level).encode(base, content);
    if (payload && payload->size() < (best ? best->payload.size() : content.size()))
      best = Encoding{id, *std::move(payload)};
  };
  try_codec(CodecId::zstd, effort_.quick_delta_level);
  if (!close && effort_.only_close_kin) return best;
  if (!best || best->payload.size() > content.size() / effort_.thorough_part) return best;
  try_codec(CodecId::zstd, effort_.delta_level);
  // xdelta3 is ahead where large content is nearly equal to its base; elsewhere it takes time for nothing.
  if (best && content.size() >= effort_.xdelta3_from &&
      best->payload.size() <= content.size() / effort_.xdelta3_part)
    try_codec(CodecId::xdelta3, effort_.delta_level);
  return best;
}

std::size_t BlockEncoder::delta_bytes(CodecId id, ByteView base, ByteView content) {
  const auto payload = codec(id, effort_.delta_level).encode(base, content);
  return payload ? std::min(payload->size(), content.size()) : content.size();
}

EncodedBlock BlockEncoder::keep(std::vector<BlockObject> objects, ByteView content, Encoding encoding,
                                const std::optional<ObjectId>& base, ByteView base_content) {
  EncodedBlock out;
  out.header.content_size = content.size();
  out.header.objects = std::move(objects);
  if (encoding.codec != CodecId::plain) {
    const auto decoded = scratch_of(decoded_, content.size());
    if (codec(encoding.codec, effort_.delta_level).decode_into(base_content, encoding.payload, decoded) &&
        equal(decoded, content)) {
      out.header.codec = static_cast<std::uint8_t>(encoding.codec);
      out.header.base = base;
      out.payload = std::move(encoding.payload);
      return out;
    }
    out.refused = true;
  }
  out.header.codec = static_cast<std::uint8_t>(CodecId::plain);
  out.payload.assign(content.begin(), content.end());
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

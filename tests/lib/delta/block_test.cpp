#include "lib/delta/block.h"

#include "lib/base/wire.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>

namespace kin {
namespace {

using testing::code_of;
using testing::filled_id;
using testing::random_bytes;
using testing::text_like;
using testing::value_of;

constexpr auto kPlain = static_cast<std::uint8_t>(CodecId::plain);
constexpr auto kZstd = static_cast<std::uint8_t>(CodecId::zstd);

BlockHeader full_header() {
  BlockHeader header;
  header.codec = kZstd;
  header.base = filled_id(9);
  header.content_size = 1000;
  header.objects = {{filled_id(1), ObjectKind::data, 300, {2, 1, (Feature{1} << kFeatureBits) - 1}},
                    {filled_id(2), ObjectKind::data, 0, {}},
                    {filled_id(3), ObjectKind::data, 700, {5}},
                    {filled_id(4), ObjectKind::group, 1000, {7}}};
  return header;
}

bool accepted(const BlockHeader& header) {
  const auto decoded = decode_block_header(encode_block_header(header));
  return decoded && *decoded == header;
}

}  // namespace

TEST_CASE("a block header comes back with every field", "[block]") {
  CHECK(accepted(full_header()));
  BlockHeader plain;
  plain.content_size = 5;
  plain.objects = {{filled_id(1), ObjectKind::tree, 5, {}}};
  CHECK(accepted(plain));
  for (const ObjectKind kind : {ObjectKind::data, ObjectKind::tree, ObjectKind::list, ObjectKind::group}) {
    plain.objects[0].kind = kind;
    INFO(static_cast<int>(kind));
    CHECK(accepted(plain) == (kind != ObjectKind::group));  // a group of nothing but itself
  }
}

TEST_CASE("a block header's bytes are part of the format", "[block]") {
  BlockHeader header;
  header.codec = 1;
  header.base = filled_id(9);
  header.content_size = 300;
  header.objects = {{filled_id(1), ObjectKind::data, 300, {0x0102}}};
  WireWriter out;
  out.raw(Bytes{1, 1, 1});
  out.raw(Bytes(32, 9));
  out.raw(Bytes{0xac, 2, 1});
  out.raw(Bytes(32, 1));
  out.raw(Bytes{1, 0xac, 2, 1, 2, 1, 0, 0, 0});
  CHECK(encode_block_header(header) == out.bytes());
  header.base.reset();
  CHECK(encode_block_header(header).size() == out.size() - 32);
  CHECK(encode_block_header(header)[2] == 0);
}

TEST_CASE("a block header cut at any length is corrupt", "[block]") {
  testing::for_each_cut(encode_block_header(full_header()), [](const Bytes& cut, const std::string& what) {
    INFO(what);
    CHECK(code_of(decode_block_header(cut)) == ErrorCode::corrupt);
  });
  Bytes longer = encode_block_header(full_header());
  longer.push_back(0);
  CHECK(code_of(decode_block_header(longer)) == ErrorCode::corrupt);
}

TEST_CASE("a damaged block header is refused, or is one that encodes to the same bytes", "[block]") {
  std::size_t refused = 0;
  testing::for_each_flip(encode_block_header(full_header()),
                         [&](const Bytes& damaged, const std::string& what) {
                           const auto header = decode_block_header(damaged);
                           if (!header) ++refused;
                           if (header && encode_block_header(*header) != damaged) FAIL(what);
                         });
  CHECK(refused > 20);
}

TEST_CASE("objects must add up to the block's content", "[block]") {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  const auto adds_up = [](std::uint64_t content_size, std::vector<BlockObject> objects) {
    BlockHeader header;
    header.content_size = content_size;
    header.objects = std::move(objects);
    return accepted(header);
  };
  const auto data = [](std::uint64_t size) { return BlockObject{filled_id(1), ObjectKind::data, size, {}}; };
  const auto group = [](std::uint64_t size) {
    return BlockObject{filled_id(2), ObjectKind::group, size, {}};
  };
  CHECK(adds_up(0, {data(0)}));
  CHECK(adds_up(10, {data(4), data(6)}));
  CHECK(adds_up(10, {data(4), data(6), group(10)}));
  CHECK(adds_up(10, {group(10), data(4), data(6)}));
  CHECK_FALSE(adds_up(10, {data(4), data(5)}));
  CHECK_FALSE(adds_up(10, {data(4), data(7)}));
  CHECK_FALSE(adds_up(10, {data(11)}));
  CHECK_FALSE(adds_up(10, {}));
  CHECK_FALSE(adds_up(10, {data(10), group(9)}));
  CHECK_FALSE(adds_up(10, {data(10), group(11)}));
  CHECK_FALSE(adds_up(10, {data(kHuge), data(11)}));  // 2^64 + 10
}

TEST_CASE("a block larger than any that kin writes is refused before anything is allocated for it",
          "[block]") {
  BlockHeader header;
  header.content_size = kMostBlockBytes;
  header.objects = {{filled_id(1), ObjectKind::data, kMostBlockBytes, {}}};
  CHECK(accepted(header));
  header.content_size = header.objects[0].size = kMostBlockBytes + 1;
  CHECK_FALSE(accepted(header));
  header.content_size = header.objects[0].size = std::numeric_limits<std::uint64_t>::max();
  CHECK_FALSE(accepted(header));
}

TEST_CASE("a sketch larger than any that kin writes is refused", "[block]") {
  BlockHeader header = full_header();
  header.objects[0].features.assign(kMostFeatures, 7);
  CHECK(accepted(header));
  header.objects[0].features.push_back(7);
  CHECK_FALSE(accepted(header));
}

TEST_CASE("counts that the header's bytes cannot hold are refused", "[block]") {
  WireWriter objects;
  objects.raw(Bytes{1, 0, 0, 0});
  objects.varint(std::uint64_t{1} << 50);
  CHECK(code_of(decode_block_header(objects.bytes())) == ErrorCode::corrupt);
  WireWriter features;
  features.raw(Bytes{1, 0, 0, 0, 1});
  features.raw(Bytes(32));
  features.raw(Bytes{1, 0});
  features.varint(std::uint64_t{1} << 61);  // times 8 it would wrap around to 0
  CHECK(code_of(decode_block_header(features.bytes())) == ErrorCode::corrupt);
}

TEST_CASE("a header of a newer version is unsupported, and flags or kinds that there are not are corrupt",
          "[block]") {
  const Bytes good = encode_block_header(full_header());
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = good;
    bytes[at] = value;
    return code_of(decode_block_header(bytes));
  };
  CHECK(with(0, 2) == ErrorCode::unsupported);
  CHECK(with(0, 255) == ErrorCode::unsupported);
  CHECK(with(0, 0) == ErrorCode::corrupt);
  CHECK(with(2, 3) == ErrorCode::corrupt);
  CHECK(with(2, 0x80) == ErrorCode::corrupt);
  const std::size_t kind_at = 3 + 32 + 2 + 1 + 32;
  REQUIRE(good[kind_at] == 1);
  CHECK(with(kind_at, 0) == ErrorCode::corrupt);
  CHECK(with(kind_at, 6) == ErrorCode::corrupt);
}

TEST_CASE("a codec of a newer kin is kept in the header and unsupported when decoding", "[block]") {
  BlockHeader header = full_header();
  header.codec = 200;
  CHECK(accepted(header));
  CHECK(code_of(BlockDecoder().decode(header, {}, Bytes(10))) == ErrorCode::unsupported);
}

TEST_CASE("the encoder compresses what compresses and keeps the rest plain", "[block]") {
  BlockEncoder encoder(Effort::normal());
  BlockDecoder decoder;
  for (const std::size_t size : {0, 1, 10, 1000, 100'000, 2 << 20}) {
    for (const bool text : {false, true}) {
      const Bytes content = text ? text_like(size, size) : random_bytes(size, size);
      const std::vector<BlockObject> objects = {{filled_id(1), ObjectKind::data, size, {}}};
      const EncodedBlock encoded = encoder.keep(objects, content, encoder.compress_group(content));
      INFO(size << (text ? " text" : " random"));
      CHECK(encoded.header.objects == objects);
      CHECK(encoded.header.content_size == size);
      CHECK_FALSE(encoded.header.base.has_value());
      CHECK_FALSE(encoded.refused);
      CHECK(encoded.payload.size() <= content.size());
      CHECK(encoded.header.codec == (text && size >= 1000 ? kZstd : kPlain));
      CHECK(equal(value_of(decoder.decode(encoded.header, {}, encoded.payload)), content));
    }
  }
}

TEST_CASE("a block that is a delta decodes against its base", "[block]") {
  const Bytes base = random_bytes(1, 50'000);
  Bytes content = base;
  content[25'000] ^= 1;
  BlockHeader header;
  header.codec = kZstd;
  header.base = filled_id(1);
  header.content_size = content.size();
  const Bytes payload = value_of(find_codec(kZstd)->make(3)->encode(base, content));
  REQUIRE(payload.size() < 1000);
  BlockDecoder decoder;
  CHECK(equal(value_of(decoder.decode(header, base, payload)), content));
  const auto without_base = decoder.decode(header, {}, payload);
  CHECK((!without_base || !equal(*without_base, content)));
}

TEST_CASE("a decoder serves blocks of all codecs in turn", "[block]") {
  BlockDecoder decoder;
  const Bytes content = text_like(2, 5000);
  for (int round = 0; round < 2; ++round)
    for (const CodecEntry& entry : all_codecs()) {
      BlockHeader header;
      header.codec = static_cast<std::uint8_t>(entry.id);
      header.content_size = content.size();
      INFO(entry.name);
      CHECK(
          equal(value_of(decoder.decode(header, {}, value_of(entry.make(3)->encode({}, content)))), content));
    }
}

}  // namespace kin

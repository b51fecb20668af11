#include "store/index_segment.h"

#include "lib/base/wire.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>
#include <set>

namespace kin::store {
namespace {

using testing::code_of;
using testing::filled_id;
using testing::value_of;

IndexSegment sample() {
  IndexSegment segment;
  segment.packs = {{filled_id(100), 5000}, {filled_id(101), 17 << 20}};
  segment.blocks = {{0, {24, 300}, 1000, 1, std::nullopt},
                    {0, {324, 4676}, kMostBlockBytes, 0, filled_id(9)},
                    {1, {24, 500}, 0, 255, std::nullopt}};
  segment.objects = {{filled_id(1), ObjectKind::data, 0, 400},
                     {filled_id(2), ObjectKind::tree, 1, 1},
                     {filled_id(3), ObjectKind::list, 2, 0},
                     {filled_id(4), ObjectKind::group, 0, 600}};
  return segment;
}

bool same(const IndexSegment& a, const IndexSegment& b) {
  return encode_index_segment(a) == encode_index_segment(b);
}

bool accepted(const IndexSegment& segment) {
  const auto decoded = decode_index_segment(encode_index_segment(segment));
  return decoded && same(*decoded, segment);
}

}  // namespace

TEST_CASE("an index segment comes back with every field", "[index_segment]") {
  const IndexSegment got = value_of(decode_index_segment(encode_index_segment(sample())));
  const IndexSegment expected = sample();
  REQUIRE(got.packs.size() == expected.packs.size());
  for (std::size_t i = 0; i < got.packs.size(); ++i) {
    CHECK(got.packs[i].id == expected.packs[i].id);
    CHECK(got.packs[i].size == expected.packs[i].size);
  }
  REQUIRE(got.blocks.size() == expected.blocks.size());
  for (std::size_t i = 0; i < got.blocks.size(); ++i) {
    CHECK(got.blocks[i].pack == expected.blocks[i].pack);
    CHECK(got.blocks[i].range.offset == expected.blocks[i].range.offset);
    CHECK(got.blocks[i].range.size == expected.blocks[i].range.size);
    CHECK(got.blocks[i].content_size == expected.blocks[i].content_size);
    CHECK(got.blocks[i].codec == expected.blocks[i].codec);
    CHECK(got.blocks[i].base == expected.blocks[i].base);
  }
  REQUIRE(got.objects.size() == expected.objects.size());
  for (std::size_t i = 0; i < got.objects.size(); ++i) {
    CHECK(got.objects[i].id == expected.objects[i].id);
    CHECK(got.objects[i].kind == expected.objects[i].kind);
    CHECK(got.objects[i].block == expected.objects[i].block);
    CHECK(got.objects[i].size == expected.objects[i].size);
  }
  CHECK(accepted(IndexSegment{}));
}

TEST_CASE("an index segment's bytes are part of the format", "[index_segment]") {
  IndexSegment segment;
  segment.packs = {{filled_id(7), 300}};
  segment.blocks = {{0, {24, 200}, 128, 1, filled_id(9)}};
  segment.objects = {{filled_id(1), ObjectKind::tree, 0, 5}};
  WireWriter out;
  out.raw(Bytes{1, 1});
  out.raw(Bytes(32, 7));
  out.raw(Bytes{0xac, 2, 1, 0, 24, 0xc8, 1, 0x80, 1, 1, 1});
  out.raw(Bytes(32, 9));
  out.raw(Bytes{1});
  out.raw(Bytes(32, 1));
  out.raw(Bytes{2, 0, 5});
  CHECK(encode_index_segment(segment) == out.bytes());
}

TEST_CASE("blocks are added with their objects, and sorting keeps the first of two", "[index_segment]") {
  IndexSegment segment;
  segment.packs = {{filled_id(100), 5000}};
  BlockHeader first, second;
  first.codec = 1;
  first.content_size = 10;
  first.objects = {{filled_id(5), ObjectKind::data, 4, {}}, {filled_id(3), ObjectKind::tree, 6, {}}};
  second.base = filled_id(9);
  second.content_size = 7;
  second.objects = {{filled_id(5), ObjectKind::data, 7, {}}, {filled_id(1), ObjectKind::data, 0, {}}};
  segment.add_block(0, first, {24, 100});
  segment.add_block(0, second, {124, 50});
  segment.sort();
  REQUIRE(segment.blocks.size() == 2);
  CHECK(segment.blocks[0].codec == 1);
  CHECK(segment.blocks[0].content_size == 10);
  CHECK(segment.blocks[1].base == filled_id(9));
  CHECK(segment.blocks[1].range.offset == 124);
  REQUIRE(segment.objects.size() == 3);
  CHECK(segment.objects[0].id == filled_id(1));
  CHECK(segment.objects[0].block == 1);
  CHECK(segment.objects[1].id == filled_id(3));
  CHECK(segment.objects[1].kind == ObjectKind::tree);
  CHECK(segment.objects[2].id == filled_id(5));
  CHECK(segment.objects[2].block == 0);
  CHECK(segment.objects[2].size == 4);
  CHECK(accepted(segment));
}

TEST_CASE("every place of an object is in a segment, and every block in one with all its objects",
          "[index_segment]") {
  IndexSegment segment;
  segment.packs = {{filled_id(100), 5000}, {filled_id(101), 5000}, {filled_id(102), 5000}};
  const auto add = [&](std::uint32_t pack, std::uint64_t offset, const std::vector<std::uint8_t>& ids) {
    BlockHeader header;
    header.content_size = offset;  // to know it by
    for (const std::uint8_t id : ids) header.objects.push_back({filled_id(id), ObjectKind::data, 4, {}});
    segment.add_block(pack, header, {offset, 10});
  };
  add(0, 24, {5, 3});
  add(1, 34, {7});
  add(1, 44, {5, 8});
  add(2, 54, {8, 5});
  add(2, 64, {6, 6});  // twice in the same block is one place
  std::set<std::pair<ObjectId, std::uint64_t>> places;
  std::vector<std::vector<std::uint64_t>> blocks;
  for (IndexSegment rest = segment; !rest.packs.empty();) {
    IndexSegment more = rest.take_repeats();
    rest.sort();
    CHECK(accepted(rest));
    blocks.emplace_back();
    for (const IndexBlock& block : rest.blocks) {
      blocks.back().push_back(block.content_size);
      CHECK(rest.packs[block.pack].id == (block.range.offset < 34   ? filled_id(100)
                                          : block.range.offset < 54 ? filled_id(101)
                                                                    : filled_id(102)));
    }
    for (const IndexObject& object : rest.objects)
      CHECK(places.emplace(object.id, rest.blocks[object.block].content_size).second);
    rest = std::move(more);
  }
  CHECK(blocks == std::vector<std::vector<std::uint64_t>>{{24, 34, 64}, {44}, {54}});
  CHECK(places == std::set<std::pair<ObjectId, std::uint64_t>>{{filled_id(5), 24},
                                                               {filled_id(3), 24},
                                                               {filled_id(7), 34},
                                                               {filled_id(5), 44},
                                                               {filled_id(8), 44},
                                                               {filled_id(8), 54},
                                                               {filled_id(5), 54},
                                                               {filled_id(6), 64}});
}

TEST_CASE("an index segment cut at any length, or with bytes to spare, is corrupt", "[index_segment]") {
  testing::for_each_cut(encode_index_segment(sample()), [](const Bytes& cut, const std::string& what) {
    INFO(what);
    CHECK(code_of(decode_index_segment(cut)) == ErrorCode::corrupt);
  });
  Bytes longer = encode_index_segment(sample());
  longer.push_back(0);
  CHECK(code_of(decode_index_segment(longer)) == ErrorCode::corrupt);
}

TEST_CASE("a damaged index segment is refused, or is one that encodes to the same bytes", "[index_segment]") {
  std::size_t refused = 0;
  testing::for_each_flip(encode_index_segment(sample()), [&](const Bytes& damaged, const std::string& what) {
    const auto segment = decode_index_segment(damaged);
    if (!segment) ++refused;
    if (segment && encode_index_segment(*segment) != damaged) FAIL(what);
  });
  CHECK(refused > 50);
}

TEST_CASE("a newer index segment is unsupported", "[index_segment]") {
  Bytes bytes = encode_index_segment(sample());
  bytes[0] = 2;
  CHECK(code_of(decode_index_segment(bytes)) == ErrorCode::unsupported);
  bytes[0] = 0;
  CHECK(code_of(decode_index_segment(bytes)) == ErrorCode::corrupt);
}

TEST_CASE("a segment that refers to what it does not hold is corrupt", "[index_segment]") {
  IndexSegment pack = sample();
  pack.blocks[0].pack = 2;
  CHECK_FALSE(accepted(pack));
  IndexSegment block = sample();
  block.objects[0].block = 3;
  CHECK_FALSE(accepted(block));
  IndexSegment none = sample();
  none.blocks.clear();
  CHECK_FALSE(accepted(none));
}

TEST_CASE("a block that is not within its pack, or larger than any, is corrupt", "[index_segment]") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto with = [](BlockRange range, std::uint64_t content_size) {
    IndexSegment segment = sample();
    segment.blocks[0].range = range;
    segment.blocks[0].content_size = content_size;
    return accepted(segment);
  };
  CHECK(with({0, 5000}, 1));
  CHECK(with({4999, 1}, 1));
  CHECK_FALSE(with({4999, 2}, 1));
  CHECK_FALSE(with({5001, 0}, 1));
  CHECK_FALSE(with({kMost, 1}, 1));
  CHECK_FALSE(with({kMost - 10, 11}, 1));
  CHECK_FALSE(with({24, ~0U}, 1));
  CHECK(with({24, 100}, kMostBlockBytes));
  CHECK_FALSE(with({24, 100}, kMostBlockBytes + 1));
}

TEST_CASE("objects out of order, twice or of no kind are corrupt", "[index_segment]") {
  IndexSegment swapped = sample();
  std::swap(swapped.objects[0], swapped.objects[1]);
  CHECK_FALSE(accepted(swapped));
  IndexSegment twice = sample();
  twice.objects[1].id = twice.objects[0].id;
  CHECK_FALSE(accepted(twice));
  for (const int kind : {0, 6, 255}) {
    IndexSegment segment = sample();
    segment.objects[0].kind = static_cast<ObjectKind>(kind);
    CHECK_FALSE(accepted(segment));
  }
}

TEST_CASE("flags of a block that there are not are corrupt", "[index_segment]") {
  IndexSegment segment;
  segment.packs = {{filled_id(7), 300}};
  segment.blocks = {{0, {24, 200}, 100, 1, std::nullopt}};
  Bytes bytes = encode_index_segment(segment);
  const std::size_t flags_at = bytes.size() - 2;  // before the count of objects
  REQUIRE(bytes[flags_at] == 0);
  bytes[flags_at] = 2;
  CHECK(code_of(decode_index_segment(bytes)) == ErrorCode::corrupt);
}

TEST_CASE("numbers of a segment too large for their field are refused, not cut off", "[index_segment]") {
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 32;
  const auto with = [](std::uint64_t pack, std::uint64_t size, std::uint64_t block) {
    WireWriter out;
    out.raw(Bytes{1, 1});
    out.raw(Bytes(32, 7));
    out.varint(std::uint64_t{1} << 40);
    out.u8(1);
    out.varint(pack);
    out.varint(24);
    out.varint(size);
    out.varint(100);
    out.raw(Bytes{0, 0, 1});
    out.raw(Bytes(32, 1));
    out.u8(1);
    out.varint(block);
    out.varint(5);
    return decode_index_segment(out.bytes()).has_value();
  };
  CHECK(with(0, 50, 0));
  CHECK_FALSE(with(kTooLarge, 50, 0));
  CHECK_FALSE(with(0, kTooLarge | 50, 0));
  CHECK_FALSE(with(0, 50, kTooLarge));
}

TEST_CASE("counts that the segment's bytes cannot hold are refused", "[index_segment]") {
  for (const Bytes& start : {Bytes{1}, Bytes{1, 0}, Bytes{1, 0, 0}}) {
    WireWriter out;
    out.raw(start);
    out.varint(std::uint64_t{1} << 58);
    out.raw(Bytes(100));
    CHECK(code_of(decode_index_segment(out.bytes())) == ErrorCode::corrupt);
  }
}

}  // namespace kin::store

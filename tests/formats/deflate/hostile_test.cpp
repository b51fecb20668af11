// Streams and reconstructions that are damaged, cut, or made to hurt.
#include "formats/deflate/bit_writer.h"
#include "formats/deflate/inflate_tokens.h"
#include "formats/deflate/opener.h"
#include "formats/deflate/piece_header.h"
#include "formats/deflate/rebuilder.h"
#include "formats/deflate/whole.h"
#include "tests/formats/deflate/hostile_streams.h"
#include "tests/formats/deflate/streams.h"
#include "tests/support/damage.h"

#include <catch2/catch.hpp>

namespace kin::formats::deflate {
namespace {

using testing::code_of;
using testing::value_of;
using testing::zlib_stream;
using testing::ZlibOptions;

// Opens it, or gives a clear error; what opens comes back.
void open_or_refuse(const Bytes& stream) {
  OpenLimits limits;
  limits.most_plain = 1 << 20;
  limits.most_percent = 10000;
  const auto opened = open_stream(stream, limits);
  if (!opened) {
    const bool clear =
        opened.error().code() == ErrorCode::corrupt || opened.error().code() == ErrorCode::unsupported;
    REQUIRE(clear);
    return;
  }
  REQUIRE(equal(value_of(rebuild_stream(opened->plain, opened->reconstruction)),
                ByteView(stream).first(opened->compressed_bytes)));
}

std::vector<Bytes> small_streams() {
  Bytes plain = testing::text_like(3, 700);
  append(plain, Bytes(300, 'x'));
  return {zlib_stream(plain), zlib_stream(plain, {.level = 9}), zlib_stream(plain, {.strategy = Z_FIXED}),
          zlib_stream(plain, {.level = 0}), zlib_stream(plain, {.flush = Z_SYNC_FLUSH, .flush_every = 200})};
}

TEST_CASE("a damaged deflate stream opens exactly or not at all", "[deflate]") {
  for (const Bytes& stream : small_streams())
    testing::for_each_flip(stream, [](const Bytes& damaged, const std::string& describe) {
      INFO(describe);
      open_or_refuse(damaged);
    });
}

TEST_CASE("a deflate stream that is cut off does not open", "[deflate]") {
  for (const Bytes& stream : small_streams())
    testing::for_each_cut(stream, [](const Bytes& damaged, const std::string& describe) {
      INFO(describe);
      CHECK(code_of(open_stream(damaged)) == ErrorCode::corrupt);
    });
}

TEST_CASE("seeded random bytes open exactly or not at all", "[deflate]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO(seed);
    open_or_refuse(testing::random_bytes(seed, 1 + seed % 300));
  }
}

TEST_CASE("a damaged reconstruction gives an error or other bytes, and no more than there can be",
          "[deflate]") {
  for (const Bytes& stream : small_streams()) {
    OpenLimits limits;
    limits.most_percent = 10000;
    const Opened opened = value_of(open_stream(stream, limits));
    testing::for_each_damage(opened.reconstruction, [&](const Bytes& damaged, const std::string& describe) {
      INFO(describe);
      const auto rebuilt = rebuild_stream(opened.plain, damaged);
      if (rebuilt) CHECK(rebuilt->size() <= 65536 * 512);
    });
  }
}

TEST_CASE("wrong plain bytes do not hurt a rebuilder", "[deflate]") {
  const Bytes plain = testing::text_like(3, 5000);
  const Opened opened = value_of(open_stream(zlib_stream(plain, {.level = 1})));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto rebuilt = rebuild_stream(testing::random_bytes(seed, plain.size()), opened.reconstruction);
    if (rebuilt) CHECK(rebuilt->size() < 100000);
  }
  CHECK(code_of(rebuild_stream(ByteView(plain).first(4000), opened.reconstruction)) == ErrorCode::corrupt);
}

TEST_CASE("a deflate bomb is refused by size and by ratio", "[deflate]") {
  const Bytes stream = zlib_stream(Bytes(std::size_t{40} << 20), {.level = 9});
  OpenLimits limits;
  limits.most_plain = 10 << 20;
  CHECK(code_of(open_stream(stream, limits)) == ErrorCode::unsupported);
  limits = {};
  limits.most_ratio = 100;
  CHECK(code_of(open_stream(stream, limits)) == ErrorCode::unsupported);
  CHECK(value_of(open_stream(stream)).reconstruction.size() < 200);
}

// A block with fixed codes: a zero, and then copies of it. Other encoders than zlib put any number of tokens
// into a block.
void put_zeros(BitWriter& out, std::size_t copies, bool final) {
  out.put(final ? 3 : 2, 3);
  out.put(0x0c, 8);  // literal 0: 00110000
  for (std::size_t i = 0; i < copies; ++i)
    out.put(0xa3, 8 + 5);  // 258 of them, from 1 before: 11000101 00000
  out.put(0, 7);
}

Bytes zero_blocks(std::size_t blocks, std::size_t copies) {
  BitWriter out;
  for (std::size_t i = 0; i < blocks; ++i) put_zeros(out, copies, i + 1 == blocks);
  out.put(0, (8 - out.bits_in_last_byte()) % 8);
  return out.take();
}

TEST_CASE("what is opened of huge blocks is rebuilt, and larger blocks are refused", "[deflate][thorough]") {
  const std::size_t most = (kMostBlockBytes - 1) / 258;
  for (const std::size_t blocks : {1, 2, 3}) {
    const Bytes stream = zero_blocks(blocks, most);
    const Opened opened = value_of(open_stream(stream));
    CHECK(opened.plain.size() == blocks * (1 + 258 * most));
    CHECK((value_of(rebuild_stream(opened.plain, opened.reconstruction)) == stream));
  }
  CHECK(code_of(open_stream(zero_blocks(1, most + 1))) == ErrorCode::unsupported);
  OpenLimits limits;
  limits.block_bytes = 1 << 20;
  CHECK(open_stream(zero_blocks(1, 4000), limits).has_value());
  CHECK(code_of(open_stream(zero_blocks(1, 4100), limits)) == ErrorCode::unsupported);
}

TEST_CASE("pieces that leave plain bytes over are refused before they pile up", "[deflate]") {
  const Bytes stream = zlib_stream(testing::text_like(4, 3000));
  const Opened opened = value_of(open_stream(stream));
  // The same piece, as if more were to come, and with bytes that its blocks do not use.
  WireReader pieces(opened.reconstruction);
  pieces.varint();
  WireReader in(pieces.blob());
  PieceHeader header = value_of(decode_piece_header(in));
  header.last = false;
  WireWriter forged;
  encode_piece_header(forged, header);
  forged.raw(in.raw(in.left()));
  Bytes plain = opened.plain;
  append(plain, Bytes(kLookAhead + 1));
  CHECK(code_of(Rebuilder().add(plain, forged.bytes())) == ErrorCode::corrupt);
}

TEST_CASE("a stream whose reconstruction is not worth it is refused", "[deflate]") {
  const Bytes plain = testing::text_like(6, 30000);
  OpenLimits limits;
  limits.most_percent = 0;
  const ZlibOptions irregular{.flush = Z_BLOCK, .flush_every = 61};
  CHECK(code_of(open_stream(zlib_stream(plain, irregular), limits)) == ErrorCode::unsupported);
}

// Opens it to its end, or to where it is refused; gives the steps that took.
Result<std::uint64_t> steps_to_open(ByteView stream, const OpenLimits& limits) {
  Opener opener(
      [&](std::span<std::uint8_t> into) -> Result<std::size_t> {
        const std::size_t size = std::min(into.size(), stream.size());
        std::copy_n(stream.begin(), size, into.begin());
        stream = stream.subspan(size);
        return size;
      },
      limits);
  for (;;) {
    const auto piece = opener.next();
    // The last step may have been a long one.
    REQUIRE(opener.work().steps < opener.work().most + (1 << 20));
    REQUIRE(opener.work().is_spent() == (!piece && piece.error().message() == kTakesTooLong));
    if (!piece) return piece.error();
    if (!*piece) return opener.work().steps;
  }
}

OpenLimits any_work() {
  OpenLimits limits;
  limits.always_steps = UINT64_MAX / 2;
  limits.steps_per_byte = 0;
  limits.most_percent = 10000;
  return limits;
}

TEST_CASE("a stream whose matches take too long to search for is refused", "[deflate]") {
  for (const bool proven_later : {false, true}) {
    OpenLimits limits;
    limits.proven_later = proven_later;
    limits.steps_per_byte = 64;
    for (const Bytes& stream : {testing::far_zeros(10'000), testing::two_letters(1, 50'000)}) {
      const auto steps = steps_to_open(stream, limits);
      REQUIRE(!steps);
      CHECK(steps.error().code() == ErrorCode::unsupported);
      CHECK(steps.error().message() == kTakesTooLong);
    }
  }
}

TEST_CASE("streams of known encoders take a tenth of the steps they may, at most", "[deflate]") {
  const OpenLimits limits;
  const Bytes plain = testing::mixed_content(2 << 20);
  for (int level = 1; level <= 9; ++level)
    for (const std::size_t size : {std::size_t{300}, std::size_t{5000}, std::size_t{100'000}, plain.size()}) {
      const Bytes stream = zlib_stream(ByteView(plain).first(size), {.level = level});
      const std::uint64_t steps = value_of(steps_to_open(stream, any_work()));
      INFO("level " << level << ", " << size << " bytes: " << steps << " steps");
      CHECK(steps < (limits.always_steps + limits.steps_per_byte * (size + stream.size())) / 10);
    }
}

TEST_CASE("what was made of a stream that then fails counts as work, and none is made once that is spent",
          "[deflate]") {
  const Bytes zeros(4 << 20);
  Bytes cut = zlib_stream(zeros, {.level = 9});
  cut.resize(cut.size() - 100);
  SearchBudget budget(SearchLimits{10 << 20, 0});
  OpenLimits limits;
  limits.search = &budget;
  const std::uint64_t before = budget.left();
  CHECK(testing::code_of(open_stream(cut, limits)) == ErrorCode::corrupt);
  CHECK(before - budget.left() > (3 << 20));
  while (budget.left() > 0) CHECK_FALSE(open_stream(cut, limits));
  const auto refused = open_stream(cut, limits);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == kTakesTooLong);
}

TEST_CASE("streams that share a budget stop where it is spent, and what was opened is rebuilt", "[deflate]") {
  const Bytes stream = testing::two_letters(2, 5'000);
  const std::uint64_t alone = value_of(steps_to_open(stream, any_work()));
  SearchBudget budget({6 * alone, 0});
  OpenLimits limits = any_work();
  limits.search = &budget;
  const std::uint64_t has = budget.left();
  std::uint64_t opened = 0;
  while (opened < 100 && steps_to_open(stream, limits)) ++opened;
  CHECK(opened == has / alone);
  CHECK(budget.left() == 0);
  const auto refused = steps_to_open(stream, limits);
  REQUIRE(!refused);
  CHECK(refused.error().message() == kTakesTooLong);
  // Whoever restores has no budget, whatever there was to open it.
  const Opened whole = value_of(open_stream(stream, any_work()));
  CHECK((value_of(rebuild_stream(whole.plain, whole.reconstruction)) == stream));
  // Whoever tries before he keeps it has one.
  Rebuilder rebuilder(&budget);
  WireReader in(whole.reconstruction);
  CHECK(in.varint() == whole.plain.size());
  CHECK(code_of(rebuilder.add(whole.plain, in.blob())) == ErrorCode::unsupported);
}

TEST_CASE("a reader's error is handed on", "[deflate]") {
  Opener opener(
      [](std::span<std::uint8_t>) -> Result<std::size_t> { return Error(ErrorCode::io, "no disk"); }, {});
  CHECK(code_of(opener.next()) == ErrorCode::io);
}

}  // namespace
}  // namespace kin::formats::deflate

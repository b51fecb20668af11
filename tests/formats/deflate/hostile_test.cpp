// Streams and reconstructions that are damaged, cut, or made to hurt.
#include "formats/deflate/opener.h"
#include "formats/deflate/rebuilder.h"
#include "formats/deflate/whole.h"
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
  return {zlib_stream(plain), zlib_stream(plain, {.strategy = Z_FIXED}), zlib_stream(plain, {.level = 0}),
          zlib_stream(plain, {.flush = Z_SYNC_FLUSH, .flush_every = 200})};
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

TEST_CASE("a stream whose reconstruction is not worth it is refused", "[deflate]") {
  const Bytes plain = testing::text_like(6, 30000);
  OpenLimits limits;
  limits.most_percent = 0;
  const ZlibOptions irregular{.flush = Z_BLOCK, .flush_every = 61};
  CHECK(code_of(open_stream(zlib_stream(plain, irregular), limits)) == ErrorCode::unsupported);
}

TEST_CASE("a reader's error is handed on", "[deflate]") {
  Opener opener(
      [](std::span<std::uint8_t>) -> Result<std::size_t> { return Error(ErrorCode::io, "no disk"); }, {});
  CHECK(code_of(opener.next()) == ErrorCode::io);
}

}  // namespace
}  // namespace kin::formats::deflate

// What producers write comes back exactly, and what is kept for that stays below what is pinned here.
#include "formats/deflate/opener.h"
#include "formats/deflate/rebuilder.h"
#include "formats/deflate/self_test.h"
#include "formats/deflate/whole.h"
#include "tests/formats/deflate/streams.h"
#include "tests/support/damage.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

namespace kin::formats::deflate {
namespace {

using testing::code_of;
using testing::value_of;
using testing::zlib_stream;
using testing::ZlibOptions;

// Opens, rebuilds and compares; gives the reconstruction's size.
std::size_t round_trip(ByteView stream, ByteView plain, OpenLimits limits = {}) {
  Bytes with_more(stream.begin(), stream.end());
  append(with_more, as_bytes("trailer!"));
  const Opened opened = value_of(open_stream(with_more, limits));
  REQUIRE(opened.compressed_bytes == stream.size());
  REQUIRE(equal(opened.plain, plain));
  const auto rebuilt = rebuild_stream(opened.plain, opened.reconstruction);
  if (limits.proven_later && !(rebuilt && equal(*rebuilt, stream))) {
    // A guess that was wrong.
    limits.proven_later = false;
    return round_trip(stream, plain, limits);
  }
  REQUIRE(equal(value_of(rebuilt), stream));
  return opened.reconstruction.size();
}

double percent(std::size_t part, std::size_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

TEST_CASE("zlib's streams of every level and memory level are predicted", "[deflate][producers]") {
  const Bytes plain = testing::mixed_content(1 << 20);
  for (int level = 0; level <= 9; ++level)
    for (const int memory : {1, 4, 8, 9}) {
      CAPTURE(level, memory);
      const Bytes stream = zlib_stream(plain, {.level = level, .memory = memory});
      const std::size_t size = round_trip(stream, plain);
      CHECK(size <= (memory < 8 ? 300 : 120));
    }
}

TEST_CASE("zlib's streams of every strategy and window are predicted", "[deflate]") {
  const Bytes plain = testing::mixed_content(1 << 19);
  for (const int strategy : {Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
    for (const int level : {1, 6, 9}) {
      CAPTURE(strategy, level);
      CHECK(round_trip(zlib_stream(plain, {.level = level, .strategy = strategy}), plain) <= 120);
    }
  for (int window = 9; window <= 15; ++window) {
    CAPTURE(window);
    CHECK(round_trip(zlib_stream(plain, {.window = window}), plain) <= 120);
  }
}

TEST_CASE("the limits of Microsoft Office are known", "[deflate]") {
  const Bytes plain = testing::mixed_content(1 << 19);
  const ZlibOptions fast{.level = 2, .memory = 7, .chain = 16, .insert = 4};
  const ZlibOptions slow{.level = 4, .memory = 7, .chain = 32, .insert = 4};
  CHECK(round_trip(zlib_stream(plain, fast), plain) <= 100);
  CHECK(round_trip(zlib_stream(plain, slow), plain) <= 100);
}

TEST_CASE("flushed streams are predicted", "[deflate]") {
  const Bytes plain = testing::mixed_content(1 << 19);
  for (const int flush : {Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK})
    for (const int level : {1, 6}) {
      const Bytes stream = zlib_stream(plain, {.level = level, .flush = flush, .flush_every = 40000});
      CAPTURE(flush, level, stream.size());
      CHECK(percent(round_trip(stream, plain), stream.size()) <= 0.3);
    }
}

TEST_CASE("streams are the same in pieces of any size", "[deflate]") {
  const Bytes plain = testing::mixed_content(1 << 20);
  for (const int level : {1, 6})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{20000}, std::size_t{300000}}) {
      CAPTURE(level, piece);
      OpenLimits limits;
      limits.piece_bytes = piece;
      CHECK(round_trip(zlib_stream(plain, {.level = level}), plain, limits) <= 1500);
    }
}

// Where it was as predicted in one piece it may not be in the next, and back.
TEST_CASE("a stream whose encoder changes on its way comes back", "[deflate]") {
  const Bytes plain = testing::mixed_content(1 << 20);
  const Bytes stream = zlib_stream(plain, {.flush_every = 150'000, .levels = {6, 1, 9, 3}});
  for (const std::size_t piece : {std::size_t{20'000}, std::size_t{100'000}, std::size_t{1} << 20}) {
    CAPTURE(piece);
    OpenLimits limits;
    limits.piece_bytes = piece;
    CHECK(percent(round_trip(stream, plain, limits), stream.size()) < 10);
    limits.proven_later = true;
    CHECK(percent(round_trip(stream, plain, limits), stream.size()) < 10);
  }
}

TEST_CASE("what other programs write comes back, within these bounds", "[deflate][producers]") {
  struct Producer {
    const char* program;
    std::string command;
    double most_percent;
  };
  std::vector<Producer> producers;
  for (int level = 1; level <= 9; ++level) {
    producers.push_back({"gzip", fmt::format("gzip -n -c -{}", level), 0.1});
    producers.push_back({"pigz", fmt::format("pigz -n -c -{}", level), 0.1});
  }
  for (const int level : {1, 3, 6, 9})
    producers.push_back({"gzip", fmt::format("gzip --rsyncable -n -c -{}", level), 0.1});
  producers.push_back({"pigz", "pigz -i -n -c", 0.1});
  for (const int level : {1, 2, 4, 6, 7, 9, 10, 12})
    producers.push_back({"libdeflate-gzip", fmt::format("libdeflate-gzip -c -{}", level), 9});
  for (const int level : {1, 5, 9})
    producers.push_back({"7z", fmt::format("7z a -bd -tgzip -so -mx={} dummy", level), 9});
  producers.push_back({"zopfli", "zopfli -c --i2", 9});
  const Bytes plain = testing::mixed_content(1 << 20);
  for (const Producer& producer : producers) {
    if (!testing::has_program(producer.program)) continue;
    const Bytes stream = testing::gzip_stream_by(producer.command, plain);
    const Opened opened = value_of(open_stream(stream));
    CAPTURE(producer.command, opened.reconstruction.size(), opened.compressed_bytes);
    REQUIRE(opened.compressed_bytes + 8 == stream.size());
    REQUIRE(equal(opened.plain, plain));
    REQUIRE(equal(value_of(rebuild_stream(opened.plain, opened.reconstruction)),
                  ByteView(stream).first(opened.compressed_bytes)));
    CHECK(percent(opened.reconstruction.size(), opened.compressed_bytes) <= producer.most_percent);
  }
}

// Whatever they are: they change with every commit, so there is no bound for what is kept.
TEST_CASE("the sources of this program, and itself, come back from streams of every level",
          "[deflate][producers]") {
  Bytes plain = testing::real_text(500'000);
  append(plain, value_of(read_file("/proc/self/exe", std::uint64_t{1} << 30)));
  plain.resize(std::min<std::size_t>(plain.size(), 1'500'000));
  for (int level = 1; level <= 9; ++level) {
    CAPTURE(level);
    round_trip(zlib_stream(plain, {.level = level}), plain);
    if (testing::has_program("gzip")) {
      Bytes stream = testing::gzip_stream_by(fmt::format("gzip -n -c -{}", level), plain);
      stream.resize(stream.size() - 8);
      round_trip(stream, plain);
    }
  }
}

// A stream that a program made, as what was kept of it, and its checksum: the program may not be installed,
// or write otherwise by now.
void check_pinned(const Bytes& plain, const Bytes& reconstruction, std::size_t size, std::uint32_t checksum) {
  const Bytes stream = value_of(rebuild_stream(plain, reconstruction));
  REQUIRE(stream.size() == size);
  REQUIRE(::crc32(0, stream.data(), static_cast<uInt>(size)) == checksum);
  CHECK(round_trip(stream, plain) == reconstruction.size());
  for (const std::size_t piece_bytes : {1UL, 50'000UL, 70'000UL}) {
    OpenLimits limits;
    limits.piece_bytes = piece_bytes;
    CHECK(percent(round_trip(stream, plain, limits), size) < 0.3);
  }
  testing::for_each_flip(reconstruction, [&](const Bytes& damaged, const std::string& describe) {
    INFO(describe);
    const auto rebuilt = rebuild_stream(plain, damaged);
    if (rebuilt) CHECK(rebuilt->size() <= 2 * plain.size() + 65536);
  });
}

TEST_CASE("Go's streams of level 1 are predicted", "[deflate]") {
  check_pinned(
      testing::text_like(7, 200'000),
      {0xc0, 0x9a, 0x0c, 0x2a, 0x01, 0x17, 0x40, 0xee, 0x03, 0x70, 0x05, 0xff, 0xff, 0x3a, 0xc7, 0x08,
       0x04, 0x23, 0x5c, 0x38, 0xda, 0x8d, 0x8c, 0x52, 0x40, 0x68, 0xef, 0xc0, 0xed, 0x44, 0xd0, 0x61,
       0x0a, 0x2b, 0xb0, 0x30, 0x64, 0x5c, 0x4d, 0xd6, 0x76, 0x29, 0x7e, 0x9c, 0xff, 0xba},
      78'105, 0x8ff48fa5);
}

// Made once by zlib at levels 1 and 6, memory level 5, and opened in pieces of 30,000 bytes. Some pieces have
// bytes in stored blocks, and for the lazy parser of level 6 the prediction starts anew there.
TEST_CASE("streams in pieces are rebuilt as they always were", "[deflate]") {
  Bytes plain = testing::text_like(7, 120'000);
  append(plain, testing::random_bytes(8, 40'000));
  append(plain, testing::text_like(9, 90'000));
  struct Pinned {
    std::size_t size;
    unsigned long checksum;
    Bytes reconstruction;
  };
  const Pinned all[] = {
      {124874,
       0xe73396f3,
       {0xc5, 0xc1, 0x01, 0x09, 0x01, 0x0e, 0x01, 0xec, 0x01, 0x2b, 0xff, 0xff, 0x0c, 0xe7, 0xc6, 0x01, 0x03,
        0x01, 0x0c, 0xf0, 0xb1, 0xc6, 0x01, 0x03, 0x01, 0x0c, 0xc0, 0xc6, 0xc6, 0x01, 0x03, 0x01, 0x0c, 0xc0,
        0xc9, 0xe3, 0x01, 0x0c, 0x01, 0x1c, 0xb6, 0xbb, 0x86, 0x44, 0x98, 0xc6, 0xa6, 0x00, 0x2f, 0x90, 0xae,
        0xe0, 0x01, 0x11, 0x01, 0x38, 0xc2, 0xe2, 0x66, 0x7b, 0x6c, 0xb5, 0x26, 0xfd, 0x13, 0x06, 0xed, 0x45,
        0x61, 0x13, 0x80, 0x96, 0xd7, 0x01, 0x04, 0x01, 0x10, 0xff, 0x80, 0xdb, 0xc4, 0x01, 0x03, 0x01, 0x0c,
        0x80, 0xf3, 0xc6, 0x01, 0x03, 0x01, 0x0c, 0x80, 0x92, 0x65, 0x03, 0x01, 0x09, 0x70}},
      {114839,
       0xf9ffee12,
       {0xc8, 0xec, 0x01, 0x09, 0x01, 0x0e, 0x06, 0xec, 0x03, 0x2b, 0xff, 0xff, 0x0e, 0x92, 0xa6,
        0x01, 0x03, 0x01, 0x08, 0xe0, 0x9e, 0xa5, 0x01, 0x03, 0x01, 0x08, 0xc0, 0xf3, 0xa4, 0x01,
        0x03, 0x01, 0x08, 0xe0, 0x92, 0xe8, 0x01, 0x0b, 0x01, 0x12, 0x06, 0xec, 0x03, 0x2b, 0xcd,
        0xb3, 0x41, 0xe4, 0xc0, 0x86, 0xe0, 0x01, 0x14, 0x01, 0x38, 0x5f, 0xce, 0x9e, 0xda, 0x62,
        0x48, 0x46, 0x95, 0xec, 0xf3, 0x8b, 0x17, 0xa9, 0xb6, 0x28, 0xf5, 0x02, 0xc6, 0xdb, 0xd1,
        0x01, 0x07, 0x01, 0x18, 0xea, 0x10, 0x7c, 0x1e, 0x7c, 0xd0, 0xa5, 0x01, 0x03, 0x01, 0x08,
        0x80, 0x8b, 0xa6, 0x01, 0x03, 0x01, 0x08, 0x80, 0xd7, 0xde, 0x01, 0x03, 0x01, 0x0d, 0x97}},
  };
  for (const auto& [size, checksum, reconstruction] : all) {
    const Bytes stream = value_of(rebuild_stream(plain, reconstruction));
    REQUIRE(stream.size() == size);
    REQUIRE(::crc32(0, stream.data(), static_cast<uInt>(size)) == checksum);
    OpenLimits limits;
    limits.piece_bytes = 30'000;
    CHECK(round_trip(stream, plain, limits) == reconstruction.size());
  }
}

TEST_CASE("streams of gzip --rsyncable are predicted", "[deflate]") {
  check_pinned(
      testing::text_like(7, 200'000),
      {0xc0, 0x9a, 0x0c, 0x0c, 0x01, 0x2b, 0x06, 0xef, 0x03, 0x8f, 0xff, 0xfe, 0x97, 0xc0, 0xbf, 0x50},
      70'222, 0xbc3c94f4);
}

TEST_CASE("what the cheapest way is known for comes back in pieces too", "[deflate]") {
  if (!testing::has_program("zopfli")) return;
  const Bytes plain = testing::real_text(400000);
  Bytes stream = testing::gzip_stream_by("zopfli -c --i1", plain);
  stream.resize(stream.size() - 8);
  OpenLimits limits;
  limits.piece_bytes = 20000;
  CHECK(percent(round_trip(stream, plain, limits), stream.size()) <= 9);
}

TEST_CASE("small and odd contents come back", "[deflate]") {
  testing::Random random(11);
  for (int round = 0; round < 400; ++round) {
    const std::size_t size = random.below(round % 4 == 0 ? 20 : 3000);
    Bytes plain = round % 3 == 0   ? testing::random_bytes(random.next(), size)
                  : round % 3 == 1 ? testing::text_like(random.next(), size)
                                   : Bytes(size, 'a');
    const ZlibOptions options{.level = static_cast<int>(random.below(10)),
                              .memory = static_cast<int>(1 + random.below(9)),
                              .strategy = static_cast<int>(random.below(5))};
    CAPTURE(round, size, options.level, options.memory, options.strategy);
    OpenLimits limits;
    limits.most_percent = 10000;
    CHECK(round_trip(zlib_stream(plain, options), plain, limits) <= 120);
  }
}

TEST_CASE("a stream's encoder is a hint for the next", "[deflate]") {
  const Bytes plain = testing::real_text(100000);
  const Bytes stream = zlib_stream(plain, {.level = 7});
  const auto reader = [&stream] {
    return [rest = ByteView(stream)](std::span<std::uint8_t> into) mutable -> Result<std::size_t> {
      const std::size_t size = std::min(into.size(), rest.size());
      std::copy_n(rest.begin(), size, into.begin());
      rest = rest.subspan(size);
      return size;
    };
  };
  Opener first(reader(), {});
  const Bytes once = value_of(first.next())->reconstruction;
  const auto hint = first.hint();
  REQUIRE(hint != nullptr);
  Opener second(reader(), {}, hint);
  CHECK(value_of(second.next())->reconstruction == once);
  CHECK_FALSE(value_of(second.next()).has_value());
}

TEST_CASE("the deflate self-test passes", "[deflate]") { testing::require_ok(self_test()); }

}  // namespace
}  // namespace kin::formats::deflate

#include "lib/similarity/shingleprint.h"

#include "lib/base/crc32.h"
#include "lib/base/text.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <set>

namespace kin {
namespace {

Shingleprint shingles_of(ByteView content, const ShingleOptions& options = {}) {
  ShingleSampler sampler(options);
  sampler.add(content);
  return sampler.finish();
}

std::vector<std::uint32_t> smallest_crcs(ByteView content, std::size_t bytes, std::size_t most) {
  std::set<std::uint32_t> all;
  for (std::size_t at = 0; at + bytes <= content.size(); ++at) all.insert(crc32(content.subspan(at, bytes)));
  while (all.size() > most) all.erase(std::prev(all.end()));
  return {all.rbegin(), all.rend()};
}

}  // namespace

TEST_CASE("features are the smallest CRC-32 of all substrings", "[shingleprint]") {
  for (const Bytes& content : {testing::random_bytes(1, 20'000), testing::text_like(2, 20'000),
                               testing::compressible_bytes(3, 20'000), Bytes(5'000, 0), Bytes(9, 'x')})
    for (const unsigned bytes : {4U, 8U, 9U, 16U, 17U, 100U})
      for (const unsigned features : {1U, 128U, 5'000U}) {
        const Shingleprint print = shingles_of(content, {bytes, features, ShingleHash::crc32});
        CHECK(print.features == smallest_crcs(content, bytes, features));
      }
}

TEST_CASE("content that repeats itself, much or little, has the smallest hashes of all", "[shingleprint]") {
  // A guess of how small they are fails, and sometimes the next one too.
  for (const std::size_t different : {1U, 20U, 60U, 120U, 135U, 200U, 400U, 1'000U, 3'000U}) {
    const Bytes part = testing::random_bytes(different, different);
    Bytes content;
    while (content.size() < 20'000) append(content, part);
    CHECK(shingles_of(content).features == smallest_crcs(content, 8, 128));
  }
}

TEST_CASE("no substring is left out, however long the content is", "[shingleprint]") {
  // The one at each end is among the smallest, whichever row or rest it falls into.
  for (std::size_t size = 4'000; size < 4'100; ++size) {
    const Bytes content = testing::random_bytes(size, size);
    CHECK(shingles_of(content).features == smallest_crcs(content, 8, 128));
  }
}

TEST_CASE("features do not depend on the pieces that content comes in", "[shingleprint]") {
  const Bytes content = testing::text_like(4, 10'000);
  for (const ShingleHash hash : {ShingleHash::crc32, ShingleHash::rabin}) {
    const ShingleOptions options{8, 128, hash};
    ShingleSampler sampler(options);
    for (std::size_t at = 0; at < content.size(); at += 13)
      sampler.add(ByteView(content).subspan(at, std::min<std::size_t>(13, content.size() - at)));
    CHECK(sampler.finish() == shingles_of(content, options));
    CHECK(sampler.finish().features.empty());  // and nothing of it is left for the next
  }
}

TEST_CASE("the smallest hash that there can be is kept alone", "[shingleprint]") {
  // These four bytes have the CRC-32 0.
  const Bytes zero = {0x9d, 0x0a, 0xd9, 0x6d};
  REQUIRE(crc32(zero) == 0);
  Bytes content = testing::random_bytes(8, 3'000);
  append(content, zero);
  append(content, testing::random_bytes(9, 3'000));
  CHECK(shingles_of(content, {4, 1, ShingleHash::crc32}).features == std::vector<std::uint32_t>{0});
}

TEST_CASE("content shorter than a shingle has no features", "[shingleprint]") {
  CHECK(shingles_of(Bytes(7, 'a')).features.empty());
  CHECK(shingles_of({}).features.empty());
  CHECK(shingles_of(Bytes(8, 'a')).features.size() == 1);
}

TEST_CASE("a Rabin fingerprint spreads what it keeps over all values", "[shingleprint]") {
  // Of 100,000 substrings the 1,000 smallest are below a hundredth of the largest value, about.
  for (const Bytes& content : {testing::random_bytes(5, 100'007), testing::text_like(6, 100'007)}) {
    const Shingleprint print = shingles_of(content, {8, 1'000, ShingleHash::rabin});
    REQUIRE(print.features.size() == 1'000);
    CHECK(print.features.front() < UINT32_MAX / 30);
    CHECK(print.features.front() > UINT32_MAX / 200);
  }
}

TEST_CASE("a hash file is Debian's, byte for byte", "[shingleprint]") {
  CHECK(hex(encode_shingleprint(shingles_of(as_bytes("abcdefghij")))) == "cb010008f3990149aeef2a50459ad68f");
}

TEST_CASE("hash files come back, cut ones and foreign ones do not", "[shingleprint]") {
  for (const ShingleHash hash : {ShingleHash::crc32, ShingleHash::rabin}) {
    const Shingleprint print = shingles_of(testing::text_like(7, 3'000), {8, 16, hash});
    const Bytes bytes = encode_shingleprint(print);
    CHECK(testing::value_of(decode_shingleprint(bytes)) == print);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = decode_shingleprint(ByteView(bytes).first(size));
      if (size >= 8 && size % 4 == 0)
        CHECK(testing::value_of(cut).features.size() ==
              (size - 4) / 4);  // nothing in it tells how many there were
      else
        CHECK(testing::code_of(cut) == ErrorCode::corrupt);
    }
    for (const std::size_t flipped : {0, 1}) {
      Bytes foreign = bytes;
      foreign[flipped] ^= 0x10;
      CHECK(testing::error_of(decode_shingleprint(foreign)).message() ==
            "not a hash file of simhash (bad file version)");
    }
    Bytes unsorted = bytes;
    std::swap_ranges(unsorted.begin() + 4, unsorted.begin() + 8, unsorted.begin() + 8);
    CHECK(testing::code_of(decode_shingleprint(unsorted)) == ErrorCode::corrupt);
  }
  CHECK(testing::code_of(decode_shingleprint(Bytes(kMostSimFileBytes + 4, 0xcb))) == ErrorCode::corrupt);
}

TEST_CASE("the score is that of simhash, by the smaller of two samples", "[shingleprint]") {
  const Shingleprint a{8, ShingleHash::crc32, {50, 40, 30, 20}}, b{8, ShingleHash::crc32, {60, 40, 20}};
  CHECK(shingle_matches(a, b) == 2);
  CHECK(shingle_score(2, 4, 3) == Approx(2.0 / 4));
  CHECK(shingle_score(4, 4, 4) == 1);
  CHECK(shingle_score(0, 0, 4) == 0);
}

}  // namespace kin

#include "lib/similarity/scanner.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace kin {
namespace {

using testing::random_bytes;

Key seed(std::uint8_t number) {
  Key key{};
  key[0] = number;
  return key;
}

// The lengths of all segments of the content.
std::vector<std::size_t> cut_all(const Scanner& scanner, ByteView content) {
  std::vector<std::size_t> out;
  while (!content.empty()) {
    out.push_back(scanner.segment(content.first(std::min(content.size(), Scanner::kMostBytes))).size);
    if (out.back() == 0 || out.back() > content.size()) FAIL("a segment of " << out.back() << " bytes");
    content = content.subspan(out.back());
  }
  return out;
}

std::set<Digest> segments_of(const Scanner& scanner, ByteView content) {
  std::set<Digest> out;
  for (const std::size_t length : cut_all(scanner, content)) {
    out.insert(hash(content.first(length)));
    content = content.subspan(length);
  }
  return out;
}

std::size_t count_missing(const std::set<Digest>& wanted, const std::set<Digest>& from) {
  std::size_t missing = 0;
  for (const Digest& digest : wanted) missing += from.contains(digest) ? 0 : 1;
  return missing;
}

}  // namespace

TEST_CASE("cuts are part of the format: this content is cut here, for ever", "[scanner]") {
  const Scanner scanner(seed(1));
  CHECK(cut_all(scanner, random_bytes(100, 12 << 20)) ==
        std::vector<std::size_t>{844309, 2800293, 966703, 2862417, 1970039, 1907623, 1231528});
  CHECK(cut_all(scanner, testing::text_like(101, 8 << 20)) ==
        std::vector<std::size_t>{768480, 1060233, 3966356, 2593539});
}

TEST_CASE("segments are within their bounds and 1 to 2 MiB on average", "[scanner]") {
  const Scanner scanner(seed(2));
  const Bytes content = random_bytes(102, 64 << 20);
  const std::vector<std::size_t> lengths = cut_all(scanner, content);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sum += lengths[i];
    if (i + 1 < lengths.size()) CHECK(lengths[i] >= Scanner::kLeastBytes);
    CHECK(lengths[i] <= Scanner::kMostBytes);
  }
  CHECK(sum == content.size());
  CHECK(lengths.size() >= 32);
  CHECK(lengths.size() <= 64);
}

TEST_CASE("one byte put in front changes few segments", "[scanner]") {
  const Scanner scanner(seed(3));
  Bytes content = random_bytes(103, 32 << 20);
  const std::set<Digest> before = segments_of(scanner, content);
  content.insert(content.begin(), 0x42);
  const std::set<Digest> after = segments_of(scanner, content);
  CHECK(before.size() > 12);
  CHECK(count_missing(after, before) >= 1);
  CHECK(count_missing(after, before) <= 3);
}

TEST_CASE("bytes changed in the middle leave the segments far from them alone", "[scanner]") {
  const Scanner scanner(seed(4));
  Bytes content = random_bytes(104, 32 << 20);
  const std::set<Digest> before = segments_of(scanner, content);
  const auto middle = content.begin() + (16 << 20);
  content.erase(middle, middle + 1000);
  content.insert(content.begin() + (16 << 20), 3333, 0x42);
  CHECK(count_missing(segments_of(scanner, content), before) <= 4);
}

TEST_CASE("a cut depends on nothing beyond the longest segment", "[scanner]") {
  const Scanner scanner(seed(5));
  const Bytes content = random_bytes(105, 6 << 20);
  CHECK(scanner.segment(content).size == scanner.segment(ByteView(content).first(Scanner::kMostBytes)).size);
}

TEST_CASE("a cut depends only on the bytes of its window", "[scanner]") {
  const Scanner scanner(seed(6));
  Bytes content = random_bytes(106, Scanner::kMostBytes);
  const std::size_t cut = scanner.segment(content).size;
  REQUIRE(cut > Scanner::kLeastBytes + Scanner::kWindowBytes);
  REQUIRE(cut < Scanner::kMostBytes);
  content[cut - Scanner::kWindowBytes - 1] ^= 1;
  content[Scanner::kLeastBytes - Scanner::kWindowBytes - 1] ^= 1;
  content[cut] ^= 1;
  CHECK(scanner.segment(content).size == cut);
  content[cut - Scanner::kWindowBytes / 2] ^= 1;
  CHECK(scanner.segment(content).size != cut);
}

TEST_CASE("short content is one segment", "[scanner]") {
  const Scanner scanner(seed(7));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, Scanner::kWindowBytes, Scanner::kLeastBytes - Scanner::kWindowBytes,
        Scanner::kLeastBytes - 1, Scanner::kLeastBytes})
    CHECK(scanner.segment(random_bytes(107, size)).size == size);
}

TEST_CASE("content that never invites a cut is cut at the most bytes", "[scanner]") {
  // A run of one byte has one hash from the 32nd byte on: it cuts at once or never.
  const Bytes zeros(9 << 20);
  for (std::uint8_t number = 0; number < 20; ++number) {
    const std::size_t cut = Scanner(seed(number)).segment(zeros).size;
    CHECK((cut == Scanner::kMostBytes || cut == Scanner::kLeastBytes));
  }
}

TEST_CASE("another seed cuts elsewhere, the same seed in the same places", "[scanner]") {
  const Bytes content = random_bytes(108, 16 << 20);
  CHECK(cut_all(Scanner(seed(8)), content) == cut_all(Scanner(seed(8)), content));
  CHECK(cut_all(Scanner(seed(8)), content) != cut_all(Scanner(seed(9)), content));
}

// -- sketches

namespace {

// As the header says it, one window at a time and nothing clever.
Sketch plain_sketch(const Key& key, ByteView content, unsigned most,
                    std::size_t window = Scanner::kWindowBytes) {
  std::array<std::uint64_t, 256> table{};
  for (std::size_t i = 0; i < 256; i += 4) {
    const auto counter = static_cast<std::uint8_t>(i);
    const Digest words = keyed_hash(key, ByteView(&counter, 1));
    for (std::size_t j = 0; j < 32; ++j) table[i + j / 8] |= std::uint64_t{words[j]} << (8 * (j % 8));
  }
  std::set<std::uint64_t> mixed;
  for (std::size_t end = window; end <= content.size(); ++end) {
    std::uint64_t h = 0;
    for (std::size_t i = end - window; i < end; ++i) h = (h << (64 / window)) + table[content[i]];
    if (h >> 58 != 0) continue;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
    mixed.insert(h ^ (h >> 33));
  }
  Sketch out;
  for (const std::uint64_t value : mixed)
    if (out.size() < most) out.push_back(value & 0xff'ffff'ffff);
  return out;
}

std::size_t common(const Sketch& a, const Sketch& b) {
  std::size_t out = 0;
  for (const Feature feature : a) out += std::count(b.begin(), b.end(), feature);
  return out;
}

}  // namespace

TEST_CASE("a sketch is the smallest of all windows' features", "[scanner]") {
  const Scanner scanner(seed(10));
  for (const std::size_t size : {0, 1, 31, 32, 33, 34, 35, 100, 1000, 1001, 4096, 16383, 16384, 100'001}) {
    CAPTURE(size);
    const Bytes content = testing::text_like(size, size);
    CHECK(
        scanner.sketch(content) ==
        plain_sketch(seed(10), content, static_cast<unsigned>(std::clamp<std::size_t>(size / 1024, 2, 16))));
  }
}

TEST_CASE("a segment has the sketch of its own bytes", "[scanner]") {
  const Scanner scanner(seed(11));
  for (const std::size_t size : {100'000, 524'287, 524'288, 524'289, 700'001, 4'200'000}) {
    CAPTURE(size);
    const Bytes content = random_bytes(size, size);
    const Scanner::Segment segment = scanner.segment(content);
    CHECK(segment.sketch == scanner.sketch(ByteView(content).first(segment.size)));
  }
}

TEST_CASE("features are part of the format: this content has these, for ever", "[scanner]") {
  CHECK(Scanner(seed(1)).sketch(testing::text_like(101, 4000)) ==
        Sketch{0xd1f618353, 0x7b2ae2b1c5, 0xa6f4e7e148});
}

TEST_CASE("an edit leaves most features, other content shares none", "[scanner]") {
  const Scanner scanner(seed(12));
  const Bytes content = testing::text_like(120, 100'000);
  Bytes edited = content;
  edited.insert(edited.begin() + 50'000, {'e', 'd', 'i', 't'});
  CHECK(common(scanner.sketch(content), scanner.sketch(edited)) >= 14);
  CHECK(common(scanner.sketch(content), scanner.sketch(random_bytes(121, 100'000))) == 0);
}

TEST_CASE("part of the content has part of its features", "[scanner]") {
  const Scanner scanner(seed(13));
  const Bytes content = testing::text_like(130, 200'000);
  const std::size_t shared =
      common(scanner.sketch(content), scanner.sketch(ByteView(content).first(100'000)));
  CHECK(shared >= 3);
  CHECK(shared <= 13);
}

TEST_CASE("another seed gives other features", "[scanner]") {
  const Bytes content = testing::text_like(140, 50'000);
  CHECK(common(Scanner(seed(14)).sketch(content), Scanner(seed(15)).sketch(content)) == 0);
}

TEST_CASE("a repeated byte has one feature at most", "[scanner]") {
  for (std::uint8_t number = 0; number < 64; ++number)
    CHECK(Scanner(seed(16)).sketch(Bytes(100'000, number)).size() <= 1);
}

}  // namespace kin

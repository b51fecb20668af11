#include "lib/object/segmenter.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

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
std::vector<std::size_t> cut_all(const Segmenter& segmenter, ByteView content) {
  std::vector<std::size_t> out;
  while (!content.empty()) {
    out.push_back(segmenter.cut(content.first(std::min(content.size(), Segmenter::kMostBytes))));
    if (out.back() == 0 || out.back() > content.size()) FAIL("a segment of " << out.back() << " bytes");
    content = content.subspan(out.back());
  }
  return out;
}

std::set<Digest> segments_of(const Segmenter& segmenter, ByteView content) {
  std::set<Digest> out;
  for (const std::size_t length : cut_all(segmenter, content)) {
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

TEST_CASE("cuts are part of the format: this content is cut here, for ever", "[segmenter]") {
  const Segmenter segmenter(seed(1));
  CHECK(cut_all(segmenter, random_bytes(100, 12 << 20)) ==
        std::vector<std::size_t>{844309, 2800293, 966703, 2862417, 1970039, 1907623, 1231528});
  CHECK(cut_all(segmenter, testing::text_like(101, 8 << 20)) ==
        std::vector<std::size_t>{768480, 1060233, 3966356, 2593539});
}

TEST_CASE("segments are within their bounds and 1 to 2 MiB on average", "[segmenter]") {
  const Segmenter segmenter(seed(2));
  const Bytes content = random_bytes(102, 64 << 20);
  const std::vector<std::size_t> lengths = cut_all(segmenter, content);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sum += lengths[i];
    if (i + 1 < lengths.size()) CHECK(lengths[i] >= Segmenter::kLeastBytes);
    CHECK(lengths[i] <= Segmenter::kMostBytes);
  }
  CHECK(sum == content.size());
  CHECK(lengths.size() >= 32);
  CHECK(lengths.size() <= 64);
}

TEST_CASE("one byte put in front changes few segments", "[segmenter]") {
  const Segmenter segmenter(seed(3));
  Bytes content = random_bytes(103, 32 << 20);
  const std::set<Digest> before = segments_of(segmenter, content);
  content.insert(content.begin(), 0x42);
  const std::set<Digest> after = segments_of(segmenter, content);
  CHECK(before.size() > 12);
  CHECK(count_missing(after, before) >= 1);
  CHECK(count_missing(after, before) <= 3);
}

TEST_CASE("bytes changed in the middle leave the segments far from them alone", "[segmenter]") {
  const Segmenter segmenter(seed(4));
  Bytes content = random_bytes(104, 32 << 20);
  const std::set<Digest> before = segments_of(segmenter, content);
  const auto middle = content.begin() + (16 << 20);
  content.erase(middle, middle + 1000);
  content.insert(content.begin() + (16 << 20), 3333, 0x42);
  CHECK(count_missing(segments_of(segmenter, content), before) <= 4);
}

TEST_CASE("a cut depends on nothing beyond the longest segment", "[segmenter]") {
  const Segmenter segmenter(seed(5));
  const Bytes content = random_bytes(105, 6 << 20);
  CHECK(segmenter.cut(content) == segmenter.cut(ByteView(content).first(Segmenter::kMostBytes)));
}

TEST_CASE("a cut depends only on the bytes of its window", "[segmenter]") {
  const Segmenter segmenter(seed(6));
  Bytes content = random_bytes(106, Segmenter::kMostBytes);
  const std::size_t cut = segmenter.cut(content);
  REQUIRE(cut > Segmenter::kLeastBytes + Segmenter::kWindowBytes);
  REQUIRE(cut < Segmenter::kMostBytes);
  content[cut - Segmenter::kWindowBytes - 1] ^= 1;
  content[Segmenter::kLeastBytes - Segmenter::kWindowBytes - 1] ^= 1;
  content[cut] ^= 1;
  CHECK(segmenter.cut(content) == cut);
  content[cut - Segmenter::kWindowBytes / 2] ^= 1;
  CHECK(segmenter.cut(content) != cut);
}

TEST_CASE("short content is one segment", "[segmenter]") {
  const Segmenter segmenter(seed(7));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, Segmenter::kWindowBytes,
        Segmenter::kLeastBytes - Segmenter::kWindowBytes, Segmenter::kLeastBytes - 1, Segmenter::kLeastBytes})
    CHECK(segmenter.cut(random_bytes(107, size)) == size);
}

TEST_CASE("content that never invites a cut is cut at the most bytes", "[segmenter]") {
  // A run of one byte has one hash from the 32nd byte on: it cuts at once or never.
  const Bytes zeros(9 << 20);
  for (std::uint8_t number = 0; number < 20; ++number) {
    const std::size_t cut = Segmenter(seed(number)).cut(zeros);
    CHECK((cut == Segmenter::kMostBytes || cut == Segmenter::kLeastBytes));
  }
}

TEST_CASE("another seed cuts elsewhere, the same seed in the same places", "[segmenter]") {
  const Bytes content = random_bytes(108, 16 << 20);
  CHECK(cut_all(Segmenter(seed(8)), content) == cut_all(Segmenter(seed(8)), content));
  CHECK(cut_all(Segmenter(seed(8)), content) != cut_all(Segmenter(seed(9)), content));
}

}  // namespace kin

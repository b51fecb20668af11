#include "lib/similarity/detector.h"
#include "lib/similarity/simihash_tags.h"
#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"

namespace kin {
namespace {

using testing::value_of;

// As the paper says it: one bit at a time, a skip counter for each tag.
std::array<std::uint64_t, kSimihashTags> sums_by_bits(ByteView bytes) {
  std::array<std::uint64_t, kSimihashTags> sums{};
  std::array<int, kSimihashTags> skip{};
  for (std::size_t bit = 0; bit + 8 <= bytes.size() * 8; ++bit) {
    unsigned window = 0;
    for (std::size_t i = bit; i < bit + 8; ++i) window = window << 1 | (bytes[i / 8] >> (7 - i % 8) & 1U);
    for (std::size_t tag = 0; tag < kSimihashTags; ++tag) {
      if (skip[tag] > 0) {
        --skip[tag];
      } else if (window == kSimihashTagBytes[tag]) {
        ++sums[tag];
        skip[tag] = 7;
      }
    }
  }
  return sums;
}

Print simihash_print(ByteView content, const char* detector, std::string_view name) {
  MemoryContent reader(content);
  return value_of(find_detector(detector)->make()->print(reader, name));
}

}  // namespace

TEST_CASE("the sum table is what a scan by single bits with skip counters counts", "[simihash]") {
  for (const Bytes& content : {testing::random_bytes(1, 5'000), testing::text_like(2, 5'000), Bytes(300, 0),
                               Bytes(300, 0x65), Bytes(1, 0), Bytes()}) {
    TagCounter counter;
    counter.add(ByteView(content).first(content.size() / 3));
    counter.add(ByteView(content).subspan(content.size() / 3));
    CHECK(counter.sums() == sums_by_bits(content));
  }
}

TEST_CASE("two zero bytes count twice, not nine times", "[simihash]") {
  TagCounter counter;
  counter.add(Bytes(2, 0));
  CHECK(counter.sums()[0] == 2);
}

TEST_CASE("uniform keys weigh all tags alike, skew keys few of them", "[simihash]") {
  const Bytes content = testing::random_bytes(3, 10'000);
  std::uint64_t total = 0;
  const auto sums = sums_by_bits(content);
  for (const std::uint64_t sum : sums) total += sum;
  CHECK(simihash_print(content, "simihash-uniform", "a").key == total);
  CHECK(simihash_print(content, "simihash-skew", "a").key ==
        8 * sums[0] + 4 * sums[1] + 2 * sums[2] + sums[3]);
}

TEST_CASE("keys with the suffix are the same for the same suffix, and far apart otherwise", "[simihash]") {
  const Bytes content = testing::text_like(4, 10'000);
  const auto key = [&](const char* name) { return simihash_print(content, "simihash", name).key; };
  CHECK(key("a/b.html") == key("c.htm"));  // the first three characters of it
  CHECK(key("a.txt") != key("a.c"));
  CHECK(key("d.d/none") == key("none"));
  CHECK(key(".txt") == key("none"));  // a name and no suffix
  const std::uint64_t a = key("a.txt"), b = key("a.c");
  CHECK(std::max(a, b) - std::min(a, b) > std::uint64_t{1} << 32);
}

TEST_CASE("a near key is not enough: size and sum table have to be near as well", "[simihash]") {
  const auto detector = find_detector("simihash-uniform")->make();
  const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
  const auto print = [](std::uint64_t bytes, std::uint64_t first, std::uint64_t second) {
    Print out;
    out.file_bytes = bytes;
    out.values.assign(kSimihashTags, 100);
    out.values[0] = first;
    out.values[1] = second;
    for (const std::uint64_t value : out.values) out.key += value;
    return out;
  };
  testing::require_ok(index->add(1, print(10'000, 500, 500)));
  testing::require_ok(index->add(2, print(10'000, 800, 200)));  // the same key, another table
  testing::require_ok(index->add(3, print(20'000, 500, 500)));  // the same, twice the size
  testing::require_ok(index->add(4, print(10'000, 530, 500)));  // within 1 % of the size
  testing::require_ok(index->add(5, print(10'000, 650, 500)));  // not within
  const auto found = value_of(index->find(print(10'000, 500, 500), {}));
  REQUIRE(found.size() == 2);
  CHECK(found[0].file == 1);
  CHECK(found[1].file == 4);
  CHECK(index->counts().candidates == 4);
  CHECK(index->counts().matches == 2);
}

TEST_CASE("a bound on what is looked at keeps the nearest keys, not the lowest", "[simihash]") {
  const auto detector = find_detector("simihash-uniform")->make();
  const auto index = value_of(detector->make_index(testing::MemoryKeyStore::make));
  const auto print = [](std::uint64_t first) {
    Print out;
    out.file_bytes = 100'000;
    out.values.assign(kSimihashTags, 100);
    out.values[0] = first;
    for (const std::uint64_t value : out.values) out.key += value;
    return out;
  };
  for (std::uint32_t file = 0; file < 100; ++file) testing::require_ok(index->add(file, print(5'000 + file)));
  testing::require_ok(index->add(100, print(5'900)));
  FindLimits limits;
  limits.most_looked_at = 1;  // 16 keys, fewer than there are below
  const auto found = value_of(index->find(print(5'900), limits));
  REQUIRE(found.size() == kSimihashTags);
  CHECK(found[0].file == 100);
  CHECK(found[0].similarity == 1);
  CHECK(index->compare(print(5'900), print(5'900)).similarity == 1);
  CHECK(index->compare(print(5'900), print(9'000)).similarity == 0);
}

TEST_CASE("keys of files however large stay below the part of the suffix", "[simihash]") {
  CHECK(clamped_simihash_key(std::uint64_t{1} << 50) == (std::uint64_t{1} << 40) - 1);
  CHECK(clamped_simihash_key(12'345) == 12'345);
}

}  // namespace kin

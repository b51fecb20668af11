#include "store/feature_table.h"

#include "store/feature_filter.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <map>
#include <vector>

namespace kin::store {
namespace {

using testing::Random;

// Pieces of one history, the newest last, as a store would join them.
Postings joined(const std::vector<Postings>& pieces) {
  Postings out;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) out.append_older(*piece);
  return out;
}

std::vector<Ordinal> ordinals(const Postings& postings) {
  return {postings.newest_first.begin(), postings.newest_first.begin() + postings.size};
}

}  // namespace

TEST_CASE("a table finds what was added, and its keys are in order", "[feature_table]") {
  Random random(1);
  FeatureTable table(64 << 20);
  std::map<FeatureKey, std::vector<Ordinal>> expected;
  for (Ordinal ordinal = 0; ordinal < 100'000; ++ordinal) {
    const FeatureKey key = key_of(random.below(40'000));
    REQUIRE(table.add(key, ordinal));
    expected[key].push_back(ordinal);
  }
  CHECK(table.size() == expected.size());
  auto at = expected.begin();
  bool equal = true;
  table.for_each([&](FeatureKey key, const Postings& postings) {
    std::vector<Ordinal> newest(at->second.rbegin(), at->second.rend());
    if (newest.size() > Postings::kMost) newest.resize(Postings::kMost);
    equal = equal && key == at->first && postings.count == at->second.size() &&
            ordinals(postings) == newest && ordinals(table.find(key)) == newest;
    ++at;
  });
  CHECK(equal);
  CHECK(at == expected.end());
  CHECK(table.find(key_of(40'000)).count == 0);

  table.clear();
  CHECK(table.size() == 0);
  CHECK(table.find(expected.begin()->first).count == 0);
}

TEST_CASE("a full table takes no more keys, and keeps those that it has", "[feature_table]") {
  FeatureTable table(64 << 10);
  std::uint64_t added = 0;
  while (added < 100'000 && table.add(key_of(added), static_cast<Ordinal>(added))) ++added;
  CHECK(added > 1000);
  CHECK(added < 64 * 1024 / 16);
  for (std::uint64_t i = 0; i < added; ++i)
    REQUIRE(ordinals(table.find(key_of(i))) == std::vector<Ordinal>{Ordinal(i)});
  CHECK(table.find(key_of(added)).count == 0);
}

TEST_CASE("keys that crowd the end of a table find room", "[feature_table]") {
  FeatureTable table(1 << 20);
  constexpr FeatureKey kLast = (FeatureKey{1} << kFeatureBits) - 1;
  std::uint64_t added = 0;
  while (added < 5000 && table.add(kLast - added, 7)) ++added;
  CHECK(added >= 256);
  for (std::uint64_t i = 0; i < added; ++i) REQUIRE(table.find(kLast - i).count == 1);
}

TEST_CASE("a feature's history is the same however it is cut into pieces", "[feature_table]") {
  // Below 8, above 8, and around where a feature becomes too common.
  for (const Ordinal length : {1u, 7u, 8u, 9u, 100u, 4096u, 4097u, 9000u}) {
    FeatureTable whole(1 << 20);
    for (Ordinal i = 0; i < length; ++i) REQUIRE(whole.add(5, i));
    const Postings expected = whole.find(5);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Random random(seed);
      std::vector<Postings> pieces;
      FeatureTable part(1 << 20);
      for (Ordinal i = 0; i < length; ++i) {
        REQUIRE(part.add(5, i));
        if (random.below(length / 4 + 2) > 0) continue;
        pieces.push_back(part.find(5));
        part.clear();
      }
      pieces.push_back(part.find(5));
      // Older pieces are merged first, or newer ones: all the same.
      if (pieces.size() > 2) {
        const std::size_t at = random.below(pieces.size() - 1);
        pieces[at] = joined({pieces[at], pieces[at + 1]});
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      const Postings found = joined(pieces);
      CHECK(found.count == expected.count);
      CHECK(ordinals(found) == ordinals(expected));
    }
    CHECK(expected.is_stopped() == (length > 4096));
    CHECK(expected.size == (length > 4096 ? 0 : std::min(length, 8u)));
  }
}

TEST_CASE("features keep apart when they are shuffled, and spread evenly", "[feature_table]") {
  std::vector<FeatureKey> keys;
  std::vector<int> parts(16);
  for (Feature feature = 0; feature < 100'000; ++feature) {
    keys.push_back(key_of(feature));
    ++parts[keys.back() >> (kFeatureBits - 4)];
  }
  std::sort(keys.begin(), keys.end());
  CHECK(std::unique(keys.begin(), keys.end()) == keys.end());
  CHECK(keys.back() >> kFeatureBits == 0);
  for (const int part : parts) CHECK(std::abs(part - 6250) < 625);
}

TEST_CASE("a filter knows all its keys, and few others", "[feature_table]") {
  // 100,000 keys at 8 bits each.
  FeatureFilter filter(100'000 / 64);
  for (Feature feature = 0; feature < 100'000; ++feature) filter.insert(key_of(feature));
  int missed = 0, others = 0;
  for (Feature feature = 0; feature < 100'000; ++feature) {
    missed += !filter.may_contain(key_of(feature));
    others += filter.may_contain(key_of(1'000'000 + feature));
  }
  CHECK(missed == 0);
  CHECK(others < 4000);
}

}  // namespace kin::store

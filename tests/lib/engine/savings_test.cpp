#include "lib/engine/savings.h"

#include "tests/support/ids.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

using testing::numbered_id;

Extent data(std::uint64_t n, std::uint64_t size) { return {Extent::Kind::data, size, numbered_id(n)}; }

MeasuredObject alone(std::uint64_t n, std::uint64_t size, std::uint64_t compressed) {
  return {numbered_id(n), size, compressed, {}, {}, 0};
}

MeasuredObject delta(std::uint64_t n, std::uint64_t size, std::uint64_t compressed, std::uint64_t delta,
                     unsigned matches) {
  return {numbered_id(n), size, compressed, delta, numbered_id(0), matches};
}

}  // namespace

TEST_CASE("savings count a file each time, a different one once, and an object by what is smallest",
          "[savings]") {
  SavingsMeter meter;
  // Three files: an object, the same once more, and one with two objects, of which the second is known.
  meter.on_met(numbered_id(1), true);
  meter.on_file(100, {data(1, 100)});
  meter.on_met(numbered_id(1), false);
  meter.on_file(100, {data(1, 100)});
  meter.on_met(numbered_id(2), true);
  meter.on_met(numbered_id(1), false);
  meter.on_file(300, {data(2, 200), data(1, 100)});
  meter.on_tried(alone(1, 100, 60));
  meter.on_tried(delta(2, 200, 90, 7, 5));
  const Savings savings = meter.result();
  CHECK(savings.distinct_files == 2);
  CHECK(savings.distinct_file_bytes == 400);
  CHECK(savings.files_compressed == 3 * 60 + 90);
  CHECK(savings.objects_compressed == 60 + 90);
  CHECK(savings.deltas == 60 + 7);
  CHECK(savings.delta_objects == 1);
  REQUIRE(savings.by_matches.size() == 6);
  CHECK(savings.by_matches[0].objects == 1);
  CHECK(savings.by_matches[0].deltas == 60);
  CHECK(savings.by_matches[5].objects == 1);
  CHECK(savings.by_matches[5].bytes == 200);
  CHECK(savings.by_matches[5].compressed == 90);
  CHECK(savings.by_matches[5].deltas == 7);
  REQUIRE(savings.pairs.size() == 1);
  CHECK(savings.pairs[0].object == numbered_id(2));
  CHECK(savings.pairs[0].base == numbered_id(0));
}

TEST_CASE("a delta that is larger than the content compressed saves nothing", "[savings]") {
  SavingsMeter meter;
  meter.on_tried(delta(1, 100, 60, 61, 3));
  const Savings savings = meter.result();
  CHECK(savings.deltas == 60);
  CHECK(savings.delta_objects == 0);
  CHECK(savings.pairs.empty());
  CHECK(savings.skew.empty());
  // It was tried all the same.
  REQUIRE(savings.by_matches.size() == 4);
  CHECK(savings.by_matches[3].deltas == 60);
}

TEST_CASE("the skew goes from nothing to all, the objects that save most in front", "[savings]") {
  SavingsMeter meter;
  for (std::uint64_t i = 1; i <= 1000; ++i) meter.on_tried(delta(i, 10, 1000, i <= 100 ? 100 : 1000, 8));
  const std::vector<Savings::Skew> skew = meter.result().skew;
  REQUIRE(skew.size() == 101);
  CHECK(skew.front().saved == 0);
  CHECK(skew.back().objects == 1);
  CHECK(skew.back().bytes == 1);
  CHECK(skew.back().saved == 1);
  CHECK(skew[5].objects == Approx(0.05));
  CHECK(skew[5].saved == Approx(0.5));
  CHECK(skew[10].saved == 1);
  for (std::size_t i = 1; i < skew.size(); ++i) CHECK(skew[i].objects > skew[i - 1].objects);
}

TEST_CASE("of few objects, the skew has a point for each", "[savings]") {
  SavingsMeter meter;
  meter.on_tried(alone(1, 30, 20));
  meter.on_tried(delta(2, 10, 9, 3, 1));
  const std::vector<Savings::Skew> skew = meter.result().skew;
  REQUIRE(skew.size() == 3);
  CHECK(skew[1].objects == 0.5);
  CHECK(skew[1].bytes == 0.25);
  CHECK(skew[1].saved == 1);
}

TEST_CASE("the pairs that save most are kept, of equal ones the first", "[savings]") {
  SavingsMeter meter;
  for (std::uint64_t i = 1; i <= 100; ++i) meter.on_tried(delta(i, 5000, 1000 + i % 50, 0, 16));
  const std::vector<Savings::Pair> pairs = meter.result().pairs;
  REQUIRE(pairs.size() == SavingsMeter::kMostPairs);
  CHECK(pairs[0].object == numbered_id(49));
  CHECK(pairs[1].object == numbered_id(99));
  CHECK(pairs[2].object == numbered_id(48));
}

}  // namespace kin

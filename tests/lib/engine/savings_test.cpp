#include "lib/engine/savings.h"

#include "tests/support/ids.h"

#include <catch2/catch.hpp>

#include <map>

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

TEST_CASE("blocks, thresholds and least sizes are swept over what was measured", "[savings]") {
  SavingsMeter meter;
  meter.on_tried(alone(1, 5000, 4000));
  meter.on_tried(delta(2, 2000, 1000, 500, 8));
  meter.on_tried(delta(3, 100, 80, 60, 2));
  const Savings savings = meter.result();
  REQUIRE(savings.roundings.size() == 4);
  CHECK(savings.roundings[0].block == 1);
  CHECK(savings.roundings[0].original == 7100);
  CHECK(savings.roundings[0].compressed == 5080);
  CHECK(savings.roundings[0].deltas == 4560);
  CHECK(savings.roundings[2].block == 4096);
  CHECK(savings.roundings[2].original == 4 * 4096);
  CHECK(savings.roundings[2].deltas == 3 * 4096);
  std::map<unsigned, std::uint64_t> deltas, counts;
  for (const Savings::Threshold& row : savings.thresholds) {
    deltas[row.percent] = row.deltas;
    counts[row.percent] = row.delta_objects;
  }
  CHECK(deltas[100] == 4560);
  CHECK(counts[100] == 2);
  CHECK(deltas[75] == 4560);  // 60 of 80 is just that
  CHECK(deltas[50] == 4580);
  CHECK(counts[50] == 1);
  CHECK(deltas[25] == 5080);
  CHECK(counts[25] == 0);
  std::map<std::uint64_t, Savings::Minimum> least;
  for (const Savings::Minimum& row : savings.minimums) least[row.size] = row;
  CHECK(least[0].objects == 3);
  CHECK(least[1024].objects == 2);
  CHECK(least[1024].deltas == 4500);
  CHECK(least[4096].bytes == 5000);
  CHECK(least[64 << 10].objects == 0);
}

TEST_CASE("who compares is told of equal bases and of each program, others are not", "[savings]") {
  MeasuredObject object = delta(1, 1000, 500, 100, 9);
  object.equal_deltas = {100, 300, 200};
  object.zstd_bytes = 100;
  object.xdelta3_bytes = 150;
  MeasuredObject single = delta(2, 1000, 500, 200, 9);
  single.equal_deltas = {200};
  single.zstd_bytes = 200;
  single.xdelta3_bytes = 50;
  for (const bool compares : {true, false}) {
    SavingsMeter meter(compares);
    CHECK(meter.compares() == compares);
    meter.on_tried(alone(3, 10, 10));
    meter.on_tried(object);
    meter.on_tried(single);
    const Savings savings = meter.result();
    CHECK(savings.equal_bases.objects == (compares ? 1 : 0));
    CHECK(savings.programs.objects == (compares ? 2 : 0));
    if (!compares) continue;
    CHECK(savings.equal_bases.first == 100);
    CHECK(savings.equal_bases.best == 100);
    CHECK(savings.equal_bases.average == 200);
    CHECK(savings.programs.compressed == 1000);
    CHECK(savings.programs.zstd == 300);
    CHECK(savings.programs.xdelta3 == 200);
    CHECK(savings.programs.better == 150);
  }
}

}  // namespace kin

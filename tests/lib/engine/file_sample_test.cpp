#include "lib/engine/sample_families.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace kin {
namespace {

using testing::Random;

double fraction(Random& random) { return std::ldexp(static_cast<double>(random.next() >> 11), -53); }

SampleUnit unit(std::uint64_t file, std::uint64_t feature, std::uint32_t bytes, float expected) {
  SampleUnit out;
  out.file = file;
  out.features.front() = feature;
  out.bytes = bytes;
  out.expected = expected;
  return out;
}

struct Population {
  std::vector<SampleUnit> units;
  std::map<std::uint64_t, double> taken;  // by feature
  double all = 0;
};

// Families of one to ten similar units, a few of them a thousand times as large as most. A family takes what
// its first unit is expected to, more or less, and a little for each of the others.
Population families(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  Population out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t feature = random.next();
    const double size = 1000 * std::exp(7 * std::pow(fraction(random), 3));
    const double part = 0.1 + 0.9 * fraction(random);
    const std::uint64_t members = 1 + random.below(10);
    for (std::uint64_t j = 0; j < members; ++j)
      out.units.push_back(unit(sample_file_id("/" + std::to_string(i) + "/" + std::to_string(j)), feature,
                               static_cast<std::uint32_t>(size), static_cast<float>(size * part)));
    const double taken =
        size * part * (0.6 + 0.8 * fraction(random)) * (1 + 0.05 * static_cast<double>(members));
    out.taken[feature] += taken;
    out.all += taken;
  }
  return out;
}

// By index, as FileSample has its families: ascending by number.
std::vector<double> by_family(const Population& population) {
  const std::vector<std::uint64_t> numbers = family_numbers(population.units);
  std::map<std::uint64_t, double> sorted;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    sorted[numbers[i]] = population.taken.at(population.units[i].features.front());
  std::vector<double> out;
  for (const auto& [number, taken] : sorted) out.push_back(taken);
  return out;
}

std::uint64_t bytes_of(const Population& population) {
  std::uint64_t out = 0;
  for (const SampleUnit& unit : population.units) out += unit.bytes;
  return out;
}

}  // namespace

TEST_CASE("a sample of everything says what everything takes", "[sample]") {
  const Population population = families(1, 500);
  const FileSample sample(population.units, 1);
  CHECK(sample.bytes() == bytes_of(population));
  CHECK(sample.share() == Approx(1));
  REQUIRE(sample.families() == population.taken.size());
  const Estimated found = sample.estimate(by_family(population), FileSample::By::kin);
  CHECK(found.value == Approx(population.all));
  CHECK(found.low == Approx(population.all));
  CHECK(found.high == Approx(population.all));
}

TEST_CASE("nothing can be said of nothing, and that is said", "[sample]") {
  const FileSample sample({}, 0.1);
  CHECK(sample.files() == 0);
  const Estimated found = sample.estimate({}, FileSample::By::kin);
  CHECK(found.value == 0);
  CHECK(found.low == 0);
  CHECK(found.high == 0);
}

TEST_CASE("of few families all are drawn, and of none too few to say anything", "[sample]") {
  for (const std::size_t count : {1, 5, 29}) {
    const Population population = families(count, count);
    const FileSample sample(population.units, 0.01);
    CHECK(sample.drawn_families() == population.taken.size());
    const Estimated found = sample.estimate(by_family(population), FileSample::By::kin);
    CHECK(found.low == Approx(population.all));
    CHECK(found.high == Approx(population.all));
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(FileSample(families(seed, 300).units, 0.001).drawn_families() >= 30);
}

TEST_CASE("similar units are drawn together or not at all", "[sample]") {
  std::vector<SampleUnit> units;
  Random random(2);
  std::vector<std::uint64_t> features;
  for (int i = 0; i < 1000; ++i) features.push_back(random.next());
  const auto name = [](int family, int member) { return fmt::format("/{}/{}", family, member); };
  for (int member = 0; member < 5; ++member)
    for (int family = 0; family < 1000; ++family)
      units.push_back(unit(sample_file_id(name(family, member)), features[static_cast<std::size_t>(family)],
                           static_cast<std::uint32_t>(1000 + member), 300));
  const FileSample sample(units, 0.1);
  int drawn = 0;
  for (int family = 0; family < 1000; ++family) {
    const bool is_in = !sample.drawn_of(name(family, 0)).empty();
    drawn += is_in;
    for (int member = 1; member < 5; ++member) CHECK(is_in == !sample.drawn_of(name(family, member)).empty());
  }
  CHECK(drawn > 60);
  CHECK(drawn < 140);
}

TEST_CASE("about as much is drawn as was asked for", "[sample]") {
  double parts = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Population population = families(100 + seed, 3000);
    const FileSample sample(population.units, 0.1);
    parts += static_cast<double>(sample.bytes()) / static_cast<double>(bytes_of(population)) / 20;
  }
  CHECK(parts > 0.09);
  CHECK(parts < 0.11);
}

TEST_CASE("of a hundred samples, what is true lies between the bounds in 95 at least", "[sample]") {
  for (const std::size_t count : {200, 3000}) {
    unsigned within = 0;
    double off = 0;
    std::vector<double> widths;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Population population = families(1000 + seed, count);
      const FileSample sample(population.units, 0.1);
      const Estimated found = sample.estimate(by_family(population), FileSample::By::kin);
      within += found.low <= population.all && population.all <= found.high;
      off += (found.value / population.all - 1) / 100;
      widths.push_back((found.high - found.low) / population.all);
    }
    std::ranges::nth_element(widths, widths.begin() + 50);
    const double width = widths[50];
    INFO(count << " families: " << off << " off, " << width << " between the bounds");
    CHECK(within >= 95);
    CHECK(std::abs(off) < 0.05);
    if (count == 3000) CHECK(width < 0.25);  // of a dozen families, which is a tenth of 200, little is known
  }
}

TEST_CASE("units are of one family with all whom their kin resemble, and a licence makes none", "[sample]") {
  std::vector<SampleUnit> units;
  const auto add = [&](std::initializer_list<std::uint64_t> features) {
    SampleUnit each = unit(units.size(), 0, 1000, 500);
    std::ranges::copy(features, each.features.begin());
    units.push_back(each);
  };
  // Versions of a file, of which the last has nothing of the first.
  add({1, 2, 3});
  add({2, 3, 4});
  add({4, 5, 6});
  add({7});
  for (std::uint64_t i = 0; i < 2 * kMostCarriers; ++i) add({8, 100 + i / 2});
  const std::vector<std::uint64_t> numbers = family_numbers(units);
  CHECK(numbers[0] == numbers[1]);
  CHECK(numbers[0] == numbers[2]);
  CHECK(std::set(numbers.begin(), numbers.end()).size() == 2 + kMostCarriers);

  // The same in another order.
  std::vector<SampleUnit> reversed(units.rbegin(), units.rend());
  std::vector<std::uint64_t> again = family_numbers(reversed);
  std::ranges::reverse(again);
  CHECK(again == numbers);
}

TEST_CASE("stretches are kin at the same place of their files only", "[sample]") {
  std::vector<SampleUnit> units;
  for (std::uint64_t file = 0; file < 2; ++file)
    for (std::uint32_t stretch = 0; stretch < 10; ++stretch) {
      units.push_back(unit(file, 7, kStretchBytes, 100));
      units.back().stretch = stretch;
    }
  const std::vector<std::uint64_t> numbers = family_numbers(units);
  CHECK(std::set(numbers.begin(), numbers.end()).size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(numbers[i] == numbers[10 + i]);
}

TEST_CASE("families do not grow without end", "[sample]") {
  std::vector<SampleUnit> units;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    units.push_back(unit(i, i + 1, 1000, 500));
    units.back().features[1] = i + 2;  // each has one of the next
  }
  const std::vector<std::uint64_t> numbers = family_numbers(units);
  std::map<std::uint64_t, std::size_t> sizes;
  for (const std::uint64_t number : numbers) ++sizes[number];
  for (const auto& [number, size] : sizes) CHECK(size <= kMostFamily);
  CHECK(sizes.size() < 10'000 / 20);
}

TEST_CASE("units that are all alike are families of a bounded size too", "[sample]") {
  std::vector<SampleUnit> units;
  for (std::uint64_t i = 0; i < 10 * kMostFamily; ++i) units.push_back(unit(i, 42, 1000, 500));
  const std::vector<std::uint64_t> numbers = family_numbers(units);
  CHECK(std::set(numbers.begin(), numbers.end()).size() == 10);
}

TEST_CASE("that nothing drawn is there twice does not make it sure of the rest", "[sample]") {
  unsigned within = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<SampleUnit> units;
    std::map<std::uint64_t, double> taken;
    double all = 0;
    for (std::uint64_t i = 0; i < 603; ++i) {
      const std::uint64_t feature = random.next() | 1;
      for (std::uint64_t copy = 0; copy < (i < 3 ? 2U : 1U); ++copy)
        units.push_back(unit(2 * i + copy, feature, 1'000'000, 300'000));
      taken[feature] = 1'000'000;
      all += 1'000'000;
    }
    const FileSample sample(units, 0.1);
    const Estimated found = sample.estimate(by_family({units, taken, all}), FileSample::By::size);
    within += found.low <= all && all <= found.high;
  }
  CHECK(within >= 95);
}

TEST_CASE("a large file among many small ones is drawn enough of to say something", "[sample]") {
  unsigned within = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Population population;
    const auto add = [&](SampleUnit each, double taken) {
      population.units.push_back(each);
      population.taken[each.features.front()] = taken;
      population.all += taken;
    };
    for (std::uint64_t i = 0; i < 2000; ++i) add(unit(i, random.next() | 1, 50, 50), 50);
    // It takes a tenth of what its places let expect, which small ones say nothing of.
    for (std::uint32_t i = 0; i < 100; ++i) {
      SampleUnit stretch = unit(5000, random.next() | 1, kStretchBytes, 1'000'000);
      stretch.stretch = i;
      add(stretch, 80'000 + 40'000 * fraction(random));
    }
    const FileSample sample(population.units, 0.001);
    const Estimated found = sample.estimate(by_family(population), FileSample::By::kin);
    within += found.low <= population.all && population.all <= found.high;
    CHECK(std::abs(found.value / population.all - 1) < 0.2);
  }
  CHECK(within >= 95);
}

TEST_CASE("of what nothing was drawn of, it is said that nothing is known", "[sample]") {
  unsigned unseen = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<SampleUnit> units;
    std::map<std::uint64_t, double> taken;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      units.push_back(unit(i, random.next() | 1, 10'000, 100));
      taken[units.back().features.front()] = 100;
    }
    // 1 % of the bytes, as much as all the rest takes.
    units.push_back(unit(1000, random.next() | 1, 100'000, 100));
    taken[units.back().features.front()] = 100'000;
    const FileSample sample(units, 0.05);
    const Estimated found = sample.estimate(by_family({units, taken, 200'000}), FileSample::By::kin);
    CHECK(found.low <= 200'000);
    CHECK(found.high >= 200'000);
    unseen += found.value < 150'000;
  }
  CHECK(unseen > 50);
}

TEST_CASE("families that were sure to be drawn say nothing of the others", "[sample]") {
  Random random(1);
  std::vector<SampleUnit> units;
  std::map<std::uint64_t, double> taken;
  const auto add = [&](std::uint32_t bytes, float expected, double takes) {
    units.push_back(unit(units.size(), random.next() | 1, bytes, expected));
    taken[units.back().features.front()] = takes;
  };
  for (int i = 0; i < 40; ++i) add(10'000, 10'000, 1'000);
  for (int i = 0; i < 2000; ++i) add(10'000, 100, 100);
  const FileSample sample(units, 0.1);
  const Estimated found = sample.estimate(by_family({units, taken, 0}), FileSample::By::expected);
  CHECK(found.value == Approx(240'000));
  CHECK(found.low > 239'000);
  CHECK(found.high < 241'000);
}

TEST_CASE("half a sample is in it, and its families are drawn whole", "[sample]") {
  const Population population = families(5, 3000);
  const FileSample sample(population.units, 0.2);
  const FileSample half = sample.half();
  CHECK(half.families() == sample.families());
  CHECK(half.bytes() > sample.bytes() / 4);
  CHECK(half.bytes() < sample.bytes() * 3 / 4);
  const std::vector<double> ones(sample.families(), 1);
  CHECK(half.weighted(ones) > sample.weighted(ones) / 4);
  CHECK(half.weighted(ones) < sample.weighted(ones) * 3 / 4);
  std::size_t drawn = 0;
  for (std::size_t family = 0; family < 3000; ++family) {
    const std::string name = "/" + std::to_string(family) + "/0";
    drawn += !half.drawn_of(name).empty();
    CHECK(half.drawn_of(name).size() <= sample.drawn_of(name).size());
    const std::string second = "/" + std::to_string(family) + "/1";
    if (!sample.drawn_of(second).empty()) CHECK(half.drawn_of(second).empty() == half.drawn_of(name).empty());
  }
  CHECK(drawn > 0);
}

TEST_CASE("empty files are in every sample and in its half, and are no families", "[sample]") {
  const Population population = families(6, 3000);
  std::vector<std::uint64_t> empty;
  for (int i = 0; i < 500; ++i) empty.push_back(sample_file_id(fmt::format("/empty/{}", i)));
  const FileSample without(population.units, 0.1);
  const FileSample sample(population.units, 0.1, empty);
  CHECK(sample.files() == without.files() + 500);
  CHECK(sample.half().files() == without.half().files() + 500);
  CHECK(sample.families() == without.families());
  CHECK(sample.bytes() == without.bytes());
  REQUIRE(sample.drawn_of("/empty/7").size() == 1);
  CHECK(sample.drawn_of("/empty/7").front().is_empty());
}

TEST_CASE("a stretch is drawn at its place in the file", "[sample]") {
  SampleUnit third = unit(sample_file_id("/large"), 7, kStretchBytes, 100);
  third.stretch = 2;
  SampleUnit first = unit(sample_file_id("/large"), 7, kStretchBytes, 100);
  const FileSample sample({third, first}, 1);
  const auto drawn = sample.drawn_of("/large");
  REQUIRE(drawn.size() == 2);
  CHECK(drawn[0].begin == 0);
  CHECK(drawn[0].end == kStretchBytes);
  CHECK(drawn[1].begin == 2 * kStretchBytes);
  CHECK(sample.drawn_of("/other").empty());
}

}  // namespace kin

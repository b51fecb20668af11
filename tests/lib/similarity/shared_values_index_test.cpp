#include "lib/similarity/shared_values_index.h"

#include "tests/support/expect.h"

namespace kin {
namespace {

using testing::value_of;

Print print_with(std::vector<std::uint64_t> values, std::uint32_t kind = 0) {
  Print out;
  out.kind = kind;
  out.values = std::move(values);
  return out;
}

double part_shared(const SharedValues& shared) {
  return static_cast<double>(shared.other_shared) / static_cast<double>(shared.query_values);
}

}  // namespace

TEST_CASE("what a file has several times counts as often", "[shared_values_index]") {
  const auto index = make_shared_values_index(part_shared);
  testing::require_ok(index->add(1, print_with({10, 10, 10, 20, 90})));
  const auto found = value_of(index->find(print_with({10, 20}), {}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].similarity == 2.0);  // 4 of the other's values, for 2 of its own
  CHECK(found[0].reverse == Approx(2.0 / 5));
}

TEST_CASE("of equally similar files the one with rarer values comes first, then the newest",
          "[shared_values_index]") {
  const auto index = make_shared_values_index(part_shared);
  testing::require_ok(index->add(1, print_with({1, 100})));
  testing::require_ok(index->add(2, print_with({2, 200})));
  testing::require_ok(index->add(3, print_with({2, 300})));
  const auto found = value_of(index->find(print_with({1, 2}), {}));
  REQUIRE(found.size() == 3);
  CHECK(found[0].file == 1);
  CHECK(found[1].file == 3);
  CHECK(found[2].file == 2);
}

TEST_CASE("files of different kinds are not compared", "[shared_values_index]") {
  const auto index = make_shared_values_index(part_shared);
  testing::require_ok(index->add(1, print_with({1, 2, 3}, 0)));
  CHECK(value_of(index->find(print_with({1, 2, 3}, 1), {})).empty());
  CHECK(value_of(index->find(print_with({1, 2, 3}, 0), {})).size() == 1);
}

TEST_CASE("a value that very many have leads to all of them, and a bound looks at the newest only",
          "[shared_values_index]") {
  constexpr std::uint32_t kFiles = 10'000;
  const auto index = make_shared_values_index(part_shared);
  for (std::uint32_t file = 0; file < kFiles; ++file)
    testing::require_ok(index->add(file, print_with({7, 1'000 + file})));
  FindLimits few;
  few.most_looked_at = 5;
  const auto found = value_of(index->find(print_with({7}), few));
  REQUIRE(found.size() == 5);
  CHECK(found[0].file == kFiles - 1);
  CHECK(value_of(index->find(print_with({7}), {})).size() == kFiles);
}

TEST_CASE("two prints have the similarity that a search tells", "[shared_values_index]") {
  const auto index = make_shared_values_index(part_shared);
  const Print query = print_with({1, 2, 2, 3, 9}), other = print_with({2, 3, 3, 4});
  testing::require_ok(index->add(1, other));
  const auto found = value_of(index->find(query, {}));
  REQUIRE(found.size() == 1);
  CHECK(index->compare(query, other).similarity == found[0].similarity);
  CHECK(index->compare(query, other).reverse == found[0].reverse);
  CHECK(index->compare(query, print_with({4})).similarity == 0);
  CHECK(index->compare(query, print_with({1, 2, 3}, 1)).similarity == 0);
}

TEST_CASE("limits keep the best, and what is similar in either direction", "[shared_values_index]") {
  const auto index = make_shared_values_index(part_shared);
  testing::require_ok(index->add(1, print_with({1})));
  testing::require_ok(index->add(2, print_with({1, 2, 3})));
  FindLimits limits;
  limits.least_similarity = 0.9;
  const Print query = print_with({1, 2, 3, 4});
  CHECK(value_of(index->find(query, limits)).size() == 2);  // each is contained in it
  limits.most_matches = 1;
  const auto found = value_of(index->find(query, limits));
  REQUIRE(found.size() == 1);
  CHECK(found[0].file == 2);
}

}  // namespace kin

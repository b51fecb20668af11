#include "store/rocks_key_store.h"

#include "tests/support/expect.h"
#include "tests/support/temp_dir.h"

namespace kin::store {

using Files = std::vector<std::uint32_t>;

TEST_CASE("keys are found by their distance, the nearest first", "[rocks_key_store]") {
  const testing::TempDir directory;
  const auto keys = testing::value_of(make_rocks_key_store(directory / "new"));
  testing::require_ok(keys->add(300, 1));
  testing::require_ok(keys->add(70'000, 2));
  testing::require_ok(keys->add(300, 0));
  testing::require_ok(keys->add(UINT64_MAX, 4'000'000'000));
  testing::require_ok(keys->add(0, 5));
  const auto find = [&](std::uint64_t key, std::uint64_t distance, std::size_t most = 100) {
    return testing::value_of(keys->find_nearest(key, distance, most));
  };
  CHECK(find(0, UINT64_MAX) == Files{5, 0, 1, 2, 4'000'000'000});
  CHECK(find(UINT64_MAX, UINT64_MAX) == Files{4'000'000'000, 2, 1, 0, 5});
  CHECK(find(300, 0) == Files{1, 0});
  CHECK(find(35'000, 34'699).empty());
  CHECK(find(35'000, 35'000) == Files{1, 0, 5, 2});
  CHECK(find(70'000, UINT64_MAX, 2) == Files{2, 1});
  CHECK(keys->bytes() > 0);
}

TEST_CASE("a bound keeps the nearest keys, however many lower ones are in reach", "[rocks_key_store]") {
  const testing::TempDir directory;
  const auto keys = testing::value_of(make_rocks_key_store(directory.path()));
  for (std::uint32_t file = 0; file < 50; ++file) testing::require_ok(keys->add(1'000 + file, file));
  testing::require_ok(keys->add(2'000, 100));
  testing::require_ok(keys->add(2'003, 101));
  testing::require_ok(keys->add(1'998, 102));
  CHECK(testing::value_of(keys->find_nearest(2'001, 1'500, 3)) == Files{100, 101, 102});
}

TEST_CASE("a key store leaves nothing behind", "[rocks_key_store]") {
  const testing::TempDir directory;
  {
    const auto one = testing::value_of(make_rocks_key_store(directory.path()));
    const auto two = testing::value_of(make_rocks_key_store(directory.path()));
    testing::require_ok(one->add(1, 1));
    CHECK(testing::value_of(two->find_nearest(5, 5, 10)).empty());
  }
  CHECK(testing::entries_in(directory.path()) == 0);
}

TEST_CASE("a place where nothing can be made is an error", "[rocks_key_store]") {
  CHECK_FALSE(make_rocks_key_store("/dev/null/keys").has_value());
}

}  // namespace kin::store

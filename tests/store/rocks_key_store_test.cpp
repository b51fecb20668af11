#include "store/rocks_key_store.h"

#include "tests/support/expect.h"
#include "tests/support/temp_dir.h"

namespace kin::store {

using Files = std::vector<std::uint32_t>;

TEST_CASE("keys are found by range, in their order", "[rocks_key_store]") {
  const testing::TempDir directory;
  const auto keys = testing::value_of(make_rocks_key_store(directory / "new"));
  testing::require_ok(keys->add(300, 1));
  testing::require_ok(keys->add(70'000, 2));
  testing::require_ok(keys->add(300, 0));
  testing::require_ok(keys->add(UINT64_MAX, 4'000'000'000));
  testing::require_ok(keys->add(0, 5));
  const auto find = [&](std::uint64_t low, std::uint64_t high, std::size_t most = 100) {
    return testing::value_of(keys->find(low, high, most));
  };
  CHECK(find(0, UINT64_MAX) == Files{5, 0, 1, 2, 4'000'000'000});
  CHECK(find(300, 300) == Files{0, 1});
  CHECK(find(301, 69'999).empty());
  CHECK(find(301, 70'000) == Files{2});
  CHECK(find(0, UINT64_MAX, 2) == Files{5, 0});
  CHECK(keys->bytes() > 0);
}

TEST_CASE("a key store leaves nothing behind", "[rocks_key_store]") {
  const testing::TempDir directory;
  {
    const auto one = testing::value_of(make_rocks_key_store(directory.path()));
    const auto two = testing::value_of(make_rocks_key_store(directory.path()));
    testing::require_ok(one->add(1, 1));
    CHECK(testing::value_of(two->find(0, 10, 10)).empty());
  }
  CHECK(testing::entries_in(directory.path()) == 0);
}

TEST_CASE("a place where nothing can be made is an error", "[rocks_key_store]") {
  CHECK_FALSE(make_rocks_key_store("/dev/null/keys").has_value());
}

}  // namespace kin::store

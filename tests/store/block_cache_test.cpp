#include "store/block_cache.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin::store {
namespace {

BlockRef block(std::uint64_t number) { return {{hash(kin::testing::random_bytes(number, 8))}, 0, 1, 1}; }

std::shared_ptr<const BlockContent> content(std::size_t size) {
  return std::make_shared<const BlockContent>(std::vector<BlockObject>{}, Bytes(size), 0);
}

}  // namespace

TEST_CASE("new blocks take half of the cache, and the oldest make room", "[block-cache]") {
  BlockCache cache(100);
  for (std::uint64_t i = 0; i < 4; ++i) cache.add(block(i), content(20));
  CHECK_FALSE(cache.find(block(0)));
  CHECK_FALSE(cache.find(block(1)));
  CHECK(cache.find(block(2)));
  CHECK(cache.find(block(3)));
}

TEST_CASE("a block that was needed again outlives any number of new ones", "[block-cache]") {
  BlockCache cache(100);
  cache.add(block(0), content(20));
  CHECK(cache.find(block(0)));
  for (std::uint64_t i = 1; i < 100; ++i) cache.add(block(i), content(20));
  CHECK(cache.find(block(0)));
}

TEST_CASE("of the blocks needed again, those not used for longest make room", "[block-cache]") {
  BlockCache cache(100);
  for (std::uint64_t i = 0; i < 3; ++i) {
    cache.add(block(i), content(20));
    CHECK(cache.find(block(i)));
    CHECK(cache.find(block(0)));
  }
  CHECK_FALSE(cache.find(block(1)));
  CHECK(cache.find(block(0)));
  CHECK(cache.find(block(2)));
}

TEST_CASE("a block larger than its half is not kept", "[block-cache]") {
  BlockCache cache(100);
  cache.add(block(0), content(60));
  CHECK_FALSE(cache.find(block(0)));
  cache.add(block(1), content(50));
  CHECK(cache.find(block(1)));
}

}  // namespace kin::store

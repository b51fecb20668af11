#include "lib/engine/recent_contents.h"

#include "tests/support/ids.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

namespace kin {
namespace {

std::shared_ptr<const Bytes> bytes(std::size_t size) { return std::make_shared<const Bytes>(Bytes(size)); }

}  // namespace

TEST_CASE("objects on their way are kept whatever the limit", "[recent]") {
  RecentContents recent({100, 50, 1000});
  for (std::uint64_t i = 0; i < 10; ++i) recent.add(testing::numbered_id(i), bytes(90));
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(recent.find(testing::numbered_id(i)));
}

TEST_CASE("of the stored objects the oldest make room", "[recent]") {
  RecentContents recent({100, 50, 1000});
  for (std::uint64_t i = 0; i < 3; ++i) recent.add(testing::numbered_id(i), bytes(50));
  recent.stored(testing::numbered_id(0));
  recent.stored(testing::numbered_id(1));
  CHECK(recent.find(testing::numbered_id(0)));
  recent.stored(testing::numbered_id(2));
  CHECK_FALSE(recent.find(testing::numbered_id(0)));
  CHECK(recent.find(testing::numbered_id(1)));
  CHECK(recent.find(testing::numbered_id(2)));
}

TEST_CASE("an object larger than the limit goes when it is stored", "[recent]") {
  RecentContents recent({100, 50, 1000});
  recent.add(testing::numbered_id(1), bytes(101));
  CHECK(recent.find(testing::numbered_id(1)));
  recent.stored(testing::numbered_id(1));
  recent.stored(testing::numbered_id(1));
  CHECK_FALSE(recent.find(testing::numbered_id(1)));
}

TEST_CASE("nothing more sets out while too much is on its way", "[recent]") {
  const bool cancel = GENERATE(false, true);
  RecentContents recent({100, 50, 100});
  CHECK(recent.add(testing::numbered_id(0), bytes(60)));
  CHECK(recent.add(testing::numbered_id(1), bytes(500)));  // whatever its size
  std::atomic<bool> added = false, answer = false;
  std::thread adder([&] {
    answer = recent.add(testing::numbered_id(2), bytes(10));
    added = true;
  });
  recent.stored(testing::numbered_id(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK_FALSE(added);
  cancel ? recent.cancel() : recent.stored(testing::numbered_id(1));
  adder.join();
  CHECK(answer == !cancel);
  CHECK((recent.find(testing::numbered_id(2)) != nullptr) == !cancel);
}

TEST_CASE("what was added last is near, whether it is stored or not", "[recent]") {
  RecentContents recent({100, 50, 1000});
  CHECK_FALSE(recent.is_near(testing::numbered_id(0)));
  for (std::uint64_t i = 0; i < 10; ++i) recent.add(testing::numbered_id(i), bytes(10));
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(recent.is_near(testing::numbered_id(i)) == (i >= 5));
  for (std::uint64_t i = 0; i < 10; ++i) recent.stored(testing::numbered_id(i));
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(recent.is_near(testing::numbered_id(i)) == (i >= 5));
}

TEST_CASE("an object is near though others, which waited, are stored after it", "[recent]") {
  RecentContents recent({18, 8, 100});
  const ObjectId large = testing::numbered_id(100), older = testing::numbered_id(101);
  recent.add(older, bytes(10));
  recent.stored(older);
  for (std::uint64_t i = 0; i < 6; ++i) recent.add(testing::numbered_id(i), bytes(1));
  recent.add(large, bytes(4));
  for (std::uint64_t i = 6; i < 13; ++i) recent.add(testing::numbered_id(i), bytes(1));
  recent.stored(large);
  for (std::uint64_t i = 0; i < 13; ++i) recent.stored(testing::numbered_id(i));
  CHECK(recent.find(older) == nullptr);
  CHECK(recent.is_near(large));
  CHECK(recent.find(large) != nullptr);
  recent.add(testing::numbered_id(13), bytes(1));
  CHECK_FALSE(recent.is_near(large));
}

}  // namespace kin

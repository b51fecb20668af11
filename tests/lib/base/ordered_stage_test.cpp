#include "lib/base/ordered_stage.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/wait_until.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>

namespace kin {
namespace {

using testing::wait_until;

using Stage = OrderedStage<int, std::pair<int, int>>;  // job -> (job, number of the item)

int items_of(int job) {
  return static_cast<int>(testing::Random(static_cast<std::uint64_t>(job)).below(6));
}  // some have none

Stage::Worker make_worker() {
  return [](int job, const Stage::Emit& emit) {
    for (int i = 0; i < items_of(job); ++i) {
      if (job % 7 == i) std::this_thread::yield();
      if (!emit({job, i}, 10)) return;
    }
  };
}

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

}  // namespace

TEST_CASE("items come in the order of the jobs, whichever worker was quicker", "[ordered_stage]") {
  const unsigned workers = GENERATE(1U, 2U, 3U, 8U);
  const std::size_t limit_bytes = GENERATE(1UL, 35UL, 1000UL);  // less than one item, a few items, many
  constexpr int kJobs = 2000;
  Stage stage(workers, limit_bytes, [] { return make_worker(); });
  std::thread producer([&] {
    for (int job = 0; job < kJobs; ++job) stage.submit(job);
    stage.finish();
  });
  std::vector<std::pair<int, int>> got;
  while (auto item = stage.next()) got.push_back(*item);
  producer.join();

  std::vector<std::pair<int, int>> expected;
  for (int job = 0; job < kJobs; ++job)
    for (int i = 0; i < items_of(job); ++i) expected.emplace_back(job, i);
  CHECK((got == expected));
  CHECK_FALSE(stage.next().has_value());
}

TEST_CASE("jobs that no worker has taken stay below the limit, or are one", "[ordered_stage]") {
  std::atomic<bool> go = false;
  std::atomic<int> submitted = 0;
  OrderedStage<int, int> stage(2, 100, [&] {
    return [&](int job, const OrderedStage<int, int>::Emit& emit) {
      while (!go) std::this_thread::yield();
      emit(job, 1);
    };
  });
  std::thread producer([&] {
    for (int job = 0; job < 10; ++job) {
      stage.submit(job, job < 6 ? 40 : 500);
      ++submitted;
    }
    stage.finish();
  });
  // Two are being worked on, and two more fit.
  while (submitted < 4) std::this_thread::yield();
  pause();
  CHECK(submitted == 4);
  go = true;
  int count = 0;
  while (const auto item = stage.next()) CHECK(*item == count++);
  producer.join();
  CHECK(count == 10);  // those larger than the limit, too
}

TEST_CASE("a stage without jobs ends at once", "[ordered_stage]") {
  Stage stage(2, 100, [] { return make_worker(); });
  stage.finish();
  CHECK_FALSE(stage.next().has_value());
}

TEST_CASE("every thread gets a worker of its own", "[ordered_stage]") {
  std::atomic<int> made = 0;
  OrderedStage<int, int> stage(3, 100, [&] {
    ++made;
    return [state = 0](int job, const OrderedStage<int, int>::Emit& emit) mutable {
      ++state;  // a race, if two threads shared it; the thread sanitizer watches
      emit(job, 1);
    };
  });
  CHECK(made == 3);
  std::thread producer([&] {
    for (int job = 0; job < 500; ++job) stage.submit(job);
    stage.finish();
  });
  int count = 0;
  while (stage.next()) ++count;
  producer.join();
  CHECK(count == 500);
}

TEST_CASE("the oldest job's items flow while the job still runs", "[ordered_stage]") {
  std::atomic<bool> consumed = false;
  OrderedStage<int, int> stage(2, 100, [&] {
    return [&](int job, const OrderedStage<int, int>::Emit& emit) {
      emit(10 * job, 1);
      if (job == 0) wait_until(consumed);  // would wait for ever if items came only with the end of their job
      emit(10 * job + 1, 1);
    };
  });
  stage.submit(0);
  stage.submit(1);
  stage.finish();
  CHECK(stage.next() == 0);
  consumed = true;
  CHECK(stage.next() == 1);
  CHECK(stage.next() == 10);
  CHECK(stage.next() == 11);
  CHECK_FALSE(stage.next().has_value());
}

TEST_CASE("what waits stays within the limit, however slow the consumer is", "[ordered_stage]") {
  constexpr std::size_t kLimit = 1000, kItem = 50;
  constexpr unsigned kWorkers = 4;
  std::atomic<std::size_t> waiting = 0, most = 0;
  OrderedStage<int, int> stage(kWorkers, kLimit, [&] {
    return [&](int, const OrderedStage<int, int>::Emit& emit) {
      for (int i = 0; i < 100; ++i) {
        if (!emit(i, kItem)) return;
        const std::size_t now = waiting += kItem;
        for (std::size_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
      }
    };
  });
  std::thread producer([&] {
    for (int job = 0; job < 20; ++job) stage.submit(job);
    stage.finish();
  });
  pause();  // time to fill up
  int count = 0;
  while (stage.next()) {
    waiting -= kItem;
    if (++count % 200 == 0) pause();
  }
  producer.join();
  CHECK(count == 2000);
  // The oldest job has a share on top; and each worker counts its item a moment after it was taken in.
  CHECK(most <= kLimit + kLimit / (kWorkers + 1) + kWorkers * kItem);
  CHECK(most >= kLimit / 2);
}

TEST_CASE("jobs wait outside when too many are under way", "[ordered_stage]") {
  std::atomic<int> submitted = 0;
  OrderedStage<int, int> stage(
      2, 1000, [] { return [](int job, const OrderedStage<int, int>::Emit& emit) { emit(job, 1); }; });
  std::thread producer([&] {
    for (int job = 0; job < 1000; ++job) {
      stage.submit(job);
      ++submitted;
    }
    stage.finish();
  });
  pause();
  CHECK(submitted < 100);
  int expected = 0;
  bool in_order = true;
  while (auto item = stage.next()) in_order = in_order && *item == expected++;
  producer.join();
  CHECK(in_order);
  CHECK(expected == 1000);
}

TEST_CASE("an item larger than the limit passes, first in line or not", "[ordered_stage]") {
  OrderedStage<int, int> stage(3, 10, [] {
    return [](int job, const OrderedStage<int, int>::Emit& emit) {
      for (int i = 0; i < 3; ++i) emit(job, 1'000'000);
    };
  });
  std::thread producer([&] {
    for (int job = 0; job < 50; ++job) stage.submit(job);
    stage.finish();
  });
  int count = 0;
  while (stage.next()) ++count;
  producer.join();
  CHECK(count == 150);
}

TEST_CASE("cancelling wakes producer, workers and consumer, and they stay awake", "[ordered_stage]") {
  std::atomic<int> refused = 0;
  std::atomic<bool> producer_refused = false;
  {
    OrderedStage<int, int> stage(3, 10, [&] {
      return [&](int job, const OrderedStage<int, int>::Emit& emit) {
        while (emit(job, 5)) {  // never ends by itself
        }
        ++refused;
        if (emit(job, 5)) refused = -1000;  // still cancelled
      };
    });
    std::thread producer([&] {
      while (stage.submit(1)) {
      }
      producer_refused = !stage.submit(2);
    });
    pause();
    stage.cancel();
    producer.join();
    CHECK_FALSE(stage.next().has_value());
    stage.finish();
    CHECK_FALSE(stage.next().has_value());
  }
  CHECK(producer_refused);
  CHECK(refused == 3);
}

TEST_CASE("a consumer that waits is woken by cancel", "[ordered_stage]") {
  OrderedStage<int, int> stage(1, 10, [] { return [](int, const OrderedStage<int, int>::Emit&) {}; });
  std::thread canceller([&] {
    pause();
    stage.cancel();
  });
  CHECK_FALSE(stage.next().has_value());
  canceller.join();
}

TEST_CASE("a stage can be abandoned with jobs in every state", "[ordered_stage]") {
  for (int round = 0; round < 50; ++round) {
    Stage stage(3, 25, [] { return make_worker(); });
    for (int job = 0; job < 10; ++job) REQUIRE(stage.submit(job));
    for (int i = 0; i < round % 4; ++i) stage.next();
    // No finish(), no cancel(): the destructor has to do.
  }
  SUCCEED("it did not hang");
}

TEST_CASE("items and jobs may be types that only move", "[ordered_stage]") {
  using Pointer = std::unique_ptr<std::string>;
  OrderedStage<Pointer, Pointer> stage(2, 100, [] {
    return [](Pointer job, const OrderedStage<Pointer, Pointer>::Emit& emit) {
      emit(std::make_unique<std::string>(*job + "!"), 1);
    };
  });
  REQUIRE(stage.submit(std::make_unique<std::string>("a")));
  REQUIRE(stage.submit(std::make_unique<std::string>("b")));
  stage.finish();
  CHECK(**stage.next() == "a!");
  CHECK(**stage.next() == "b!");
  CHECK_FALSE(stage.next().has_value());
}

TEST_CASE("what the standard library throws in a worker ends the stage, and result() tells",
          "[ordered_stage]") {
  OrderedStage<int, int> stage(2, 100, [] {
    return [](int job, const OrderedStage<int, int>::Emit& emit) {
      if (job == 1) throw std::bad_alloc();
      emit(job, 1);
    };
  });
  std::thread producer([&] {
    for (int job = 0; stage.submit(job); ++job) {
    }
  });
  while (stage.next()) {
  }
  producer.join();
  CHECK(testing::code_of(stage.result()) == ErrorCode::io);
  stage.cancel();
  CHECK(testing::code_of(stage.result()) == ErrorCode::io);
}

TEST_CASE("a stage that is merely cancelled has no error to tell", "[ordered_stage]") {
  Stage stage(2, 100, [] { return make_worker(); });
  stage.cancel();
  CHECK_FALSE(stage.next().has_value());
  CHECK(stage.result());
}

TEST_CASE("a stage whose last thread cannot be made ends those before it", "[ordered_stage]") {
  int made = 0;
  const auto make = [&]() -> Stage::Worker {
    if (++made == 3) throw std::system_error(EAGAIN, std::generic_category());  // as std::thread would
    return make_worker();
  };
  CHECK_THROWS_AS(Stage(4, 100, make), std::system_error);
}

}  // namespace kin

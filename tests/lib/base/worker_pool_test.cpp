#include "lib/base/worker_pool.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/wait_until.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <memory>

namespace kin {
namespace {

using testing::error_of;
using testing::require_ok;
using testing::wait_until;

void raise_to(std::atomic<int>& most, int value) {
  for (int seen = most; seen < value && !most.compare_exchange_weak(seen, value);) {
  }
}

}  // namespace

TEST_CASE("every task runs once, and wait() comes after all of them", "[worker_pool]") {
  const unsigned workers = GENERATE(1U, 2U, 8U);
  std::vector<std::atomic<int>> runs(2000);
  WorkerPool pool(workers, 1000);
  for (int round = 1; round <= 2; ++round) {  // a pool can be used again
    for (std::atomic<int>& run : runs)
      pool.submit(
          [&run]() -> Result<void> {
            ++run;
            return {};
          },
          7);
    require_ok(pool.wait());
    int wrong = 0;
    for (const std::atomic<int>& run : runs) wrong += run != round;
    CHECK(wrong == 0);
  }
}

TEST_CASE("waiting for nothing succeeds", "[worker_pool]") {
  WorkerPool pool(2, 100);
  require_ok(pool.wait());
}

TEST_CASE("tasks do run at the same time", "[worker_pool]") {
  std::atomic<int> arrived = 0;
  WorkerPool pool(3, 100);
  for (int i = 0; i < 3; ++i)
    pool.submit(
        [&]() -> Result<void> {
          ++arrived;
          while (arrived < 3) std::this_thread::yield();  // returns only if the three meet
          return {};
        },
        1);
  require_ok(pool.wait());
  CHECK(arrived == 3);
}

TEST_CASE("queued and running tasks together cost no more than the limit", "[worker_pool]") {
  std::atomic<int> cost = 0, most = 0;
  testing::Random random(6);
  WorkerPool pool(4, 100);
  for (int i = 0; i < 3000; ++i) {
    const int bytes = static_cast<int>(1 + random.below(100));
    pool.submit(
        [&, bytes]() -> Result<void> {
          cost -= bytes;  // before the pool releases it, so what is counted is never more than what the pool
                          // holds
          return {};
        },
        static_cast<std::size_t>(bytes));
    raise_to(most, cost += bytes);
  }
  require_ok(pool.wait());
  CHECK(cost == 0);
  CHECK(most <= 100);
  CHECK(most > 50);
}

TEST_CASE("a task that costs more than the limit runs alone", "[worker_pool]") {
  std::atomic<int> running = 0, most = 0, runs = 0;
  WorkerPool pool(4, 10);
  for (int i = 0; i < 200; ++i)
    pool.submit(
        [&]() -> Result<void> {
          raise_to(most, ++running);
          std::this_thread::yield();
          --running;
          ++runs;
          return {};
        },
        1000);
  require_ok(pool.wait());
  CHECK(runs == 200);
  CHECK(most == 1);
}

TEST_CASE("what a task holds is released before its cost is", "[worker_pool]") {
  // Each task holds as much as the limit allows, so when submit() returns, the one before it must hold
  // nothing any more.
  std::atomic<int> alive = 0, most = 0;
  struct Held {
    explicit Held(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Held() { --count_; }
    std::atomic<int>& count_;
  };
  WorkerPool pool(2, 10);
  for (int i = 0; i < 500; ++i) {
    auto held = std::make_shared<Held>(alive);
    pool.submit([held = std::move(held)]() -> Result<void> { return {}; }, 10);
    raise_to(most, alive);
  }
  require_ok(pool.wait());
  CHECK(most == 1);
}

TEST_CASE("the first error is the answer, and what was queued behind it is dropped", "[worker_pool]") {
  std::atomic<bool> go = false;
  std::atomic<int> later = 0;
  WorkerPool pool(1, 1000);
  pool.submit(
      [&]() -> Result<void> {
        wait_until(go);
        return Error(ErrorCode::corrupt, "first");
      },
      1);
  for (int i = 0; i < 100; ++i)
    pool.submit(
        [&]() -> Result<void> {
          ++later;
          return Error(ErrorCode::io, "later");
        },
        1);
  go = true;
  const Error error = error_of(pool.wait());
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK(error.message() == "first");
  CHECK(later == 0);

  // The error was told once; the pool works again, with all of its room.
  pool.submit([]() -> Result<void> { return {}; }, 1000);
  require_ok(pool.wait());
}

TEST_CASE("an error lets a waiting submit() go on", "[worker_pool]") {
  std::atomic<int> runs = 0;
  WorkerPool pool(2, 10);
  for (int i = 0; i < 1000; ++i)
    pool.submit(
        [&]() -> Result<void> {
          ++runs;
          return Error(ErrorCode::io, "no");
        },
        10);
  CHECK(error_of(pool.wait()).message() == "no");
  CHECK(runs >= 1);
  CHECK(runs <= 2);
}

TEST_CASE("a pool that goes away finishes what runs and drops the rest", "[worker_pool]") {
  std::atomic<bool> started = false, finished = false;
  std::atomic<int> others = 0;
  {
    WorkerPool pool(1, 1000);
    pool.submit(
        [&]() -> Result<void> {
          started = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          finished = true;
          return {};
        },
        1);
    wait_until(started);
    for (int i = 0; i < 50; ++i)
      pool.submit(
          [&]() -> Result<void> {
            ++others;
            return {};
          },
          1);
  }
  CHECK(finished);
  CHECK(others == 0);
}

}  // namespace kin

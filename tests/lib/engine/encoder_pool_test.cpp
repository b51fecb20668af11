#include "lib/engine/encoder_pool.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace kin {

TEST_CASE("who finds no encoder waits until one comes back", "[encoder_pool]") {
  EncoderPool pool(Effort::fast(), 2);
  std::atomic<bool> taken = false;
  std::thread third;
  {
    const EncoderPool::Lease one = pool.take(), two = pool.take();
    CHECK(&*one.operator->() != &*two.operator->());
    third = std::thread([&] {
      const EncoderPool::Lease lease = pool.take();
      taken = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK_FALSE(taken);
  }
  third.join();
  CHECK(taken);
}

TEST_CASE("no more encoders are at work than the pool has", "[encoder_pool]") {
  EncoderPool pool(Effort::fast(), 3);
  std::atomic<int> at_work = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const EncoderPool::Lease lease = pool.take();
        const int now = ++at_work;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --at_work;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(most <= 3);
}

}  // namespace kin

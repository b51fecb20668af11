#pragma once

#include <atomic>
#include <thread>

namespace kin::testing {

inline void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

}  // namespace kin::testing

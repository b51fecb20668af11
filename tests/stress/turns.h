// Turns: threads of which exactly one runs at a time, and a seed says which. Each asks at every call of its
// backend; so two clients meet between any two calls, and the same seed gives the same meeting again.
//
// Some are slow for a while: a backup that sleeps through three prunes is what finds the most.
#pragma once

#include "lib/base/mutex.h"
#include "tests/support/random_bytes.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace kin::testing {

class Turns {
 public:
  Turns(std::uint64_t seed, std::size_t threads) : random_(seed), weights_(threads, 0), arrived_(threads) {}

  // Once for each thread, before any of them runs.
  void join(std::size_t thread);
  // A thread's first call: waits until all that joined may go, and it is its turn.
  void begin(std::size_t thread);
  // Lets another go, or goes on itself.
  void pass(std::size_t thread);
  void leave(std::size_t thread);

 private:
  void choose() KIN_REQUIRES(mutex_);
  void wait_for(std::size_t thread) KIN_REQUIRES(mutex_);

  Mutex mutex_;
  Random random_ KIN_GUARDED_BY(mutex_);
  std::vector<unsigned> weights_ KIN_GUARDED_BY(mutex_);  // 0: not there
  std::deque<CondVar> arrived_;
  std::size_t joined_ KIN_GUARDED_BY(mutex_) = 0, begun_ KIN_GUARDED_BY(mutex_) = 0;
  std::size_t current_ KIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kin::testing

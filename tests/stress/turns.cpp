#include "tests/stress/turns.h"

#include <numeric>

namespace kin::testing {
namespace {

constexpr unsigned kSpeeds[] = {1, 4, 16, 64};
constexpr std::uint64_t kTurnsPerChangeOfSpeed = 64;

}  // namespace

void Turns::join(std::size_t thread) {
  MutexLock lock(mutex_);
  weights_[thread] = kSpeeds[random_.below(std::size(kSpeeds))];
  ++joined_;
}

void Turns::begin(std::size_t thread) {
  MutexLock lock(mutex_);
  if (++begun_ == joined_) choose();
  wait_for(thread);
}

void Turns::pass(std::size_t thread) {
  MutexLock lock(mutex_);
  if (random_.below(kTurnsPerChangeOfSpeed) == 0)
    weights_[thread] = kSpeeds[random_.below(std::size(kSpeeds))];
  choose();
  wait_for(thread);
}

void Turns::leave(std::size_t thread) {
  MutexLock lock(mutex_);
  weights_[thread] = 0;
  if (std::accumulate(weights_.begin(), weights_.end(), 0U) > 0) return choose();
  joined_ = begun_ = 0;  // for the next who join
}

void Turns::choose() {
  std::uint64_t at = random_.below(std::accumulate(weights_.begin(), weights_.end(), 0U));
  for (current_ = 0; at >= weights_[current_]; ++current_) at -= weights_[current_];
  arrived_[current_].notify_one();
}

void Turns::wait_for(std::size_t thread) {
  while (begun_ < joined_ || current_ != thread) arrived_[thread].wait(mutex_);
}

}  // namespace kin::testing

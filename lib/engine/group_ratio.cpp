#include "lib/engine/group_ratio.h"

namespace kin {
namespace {

constexpr double kMemory = 0.7;  // what a group counts for when the next one comes

}  // namespace

void GroupRatio::report(std::uint64_t number, std::size_t content_bytes, std::size_t stored_bytes) {
  MutexLock lock(mutex_);
  waiting_[number] = {content_bytes, stored_bytes};
  reported_.notify_all();
}

double GroupRatio::after(std::uint64_t groups) {
  MutexLock lock(mutex_);
  while (counted_ < groups && !cancelled_) {
    const auto next = waiting_.find(counted_);
    if (next == waiting_.end()) {
      reported_.wait(mutex_);
      continue;
    }
    content_ = content_ * kMemory + static_cast<double>(next->second.content);
    stored_ = stored_ * kMemory + static_cast<double>(next->second.stored);
    waiting_.erase(next);
    ++counted_;
  }
  return stored_ / content_;
}

void GroupRatio::cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  reported_.notify_all();
}

}  // namespace kin

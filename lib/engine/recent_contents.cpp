#include "lib/engine/recent_contents.h"

namespace kin {

bool RecentContents::add(const ObjectId& id, std::shared_ptr<const Bytes> content) {
  const std::size_t size = content->size();
  MutexLock lock(mutex_);
  while (!cancelled_ && on_way_bytes_ > limits_.on_way_bytes) arrived_.wait(mutex_);
  if (cancelled_) return false;
  added_bytes_ += size;
  if (entries_.try_emplace(id, Entry{std::move(content), false, added_bytes_}).second) on_way_bytes_ += size;
  return true;
}

void RecentContents::cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  arrived_.notify_all();
}

void RecentContents::stored(const ObjectId& id) {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end() || at->second.stored) return;
  at->second.stored = true;
  on_way_bytes_ -= at->second.content->size();
  arrived_.notify_one();
  stored_.push_back(id);
  stored_bytes_ += at->second.content->size();
  while (stored_bytes_ > limits_.stored_bytes) {
    const auto oldest = entries_.find(stored_.front());
    stored_bytes_ -= oldest->second.content->size();
    entries_.erase(oldest);
    stored_.pop_front();
  }
}

bool RecentContents::is_near(const ObjectId& id) const {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  return at != entries_.end() && added_bytes_ - at->second.end < limits_.near_bytes;
}

std::shared_ptr<const Bytes> RecentContents::find(const ObjectId& id) const {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.content;
}

}  // namespace kin

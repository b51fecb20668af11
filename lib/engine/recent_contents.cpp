#include "lib/engine/recent_contents.h"

namespace kin {

void RecentContents::add(const ObjectId& id, std::shared_ptr<const Bytes> content) {
  MutexLock lock(mutex_);
  added_bytes_ += content->size();
  entries_.try_emplace(id, Entry{std::move(content), false, added_bytes_});
}

void RecentContents::stored(const ObjectId& id) {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end() || at->second.stored) return;
  at->second.stored = true;
  stored_.push_back(id);
  stored_bytes_ += at->second.content->size();
  while (stored_bytes_ > limit_bytes_) {
    const auto oldest = entries_.find(stored_.front());
    stored_bytes_ -= oldest->second.content->size();
    entries_.erase(oldest);
    stored_.pop_front();
  }
}

bool RecentContents::is_near(const ObjectId& id) const {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  return at != entries_.end() && added_bytes_ - at->second.end < limit_bytes_ / 3;
}

std::shared_ptr<const Bytes> RecentContents::find(const ObjectId& id) const {
  MutexLock lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.content;
}

}  // namespace kin

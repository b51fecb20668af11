#include "store/block_cache.h"

namespace kin::store {

std::shared_ptr<const BlockContent> BlockCache::find(const BlockRef& block) {
  MutexLock lock(mutex_);
  const auto at = by_block_.find(block);
  if (at == by_block_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->content;
}

void BlockCache::add(const BlockRef& block, std::shared_ptr<const BlockContent> content) {
  MutexLock lock(mutex_);
  if (content->size() > limit_bytes_ || by_block_.contains(block)) return;
  bytes_ += content->size();
  entries_.push_front({block, std::move(content)});
  by_block_[block] = entries_.begin();
  while (bytes_ > limit_bytes_) {
    bytes_ -= entries_.back().content->size();
    by_block_.erase(entries_.back().block);
    entries_.pop_back();
  }
}

}  // namespace kin::store

#include "store/block_cache.h"

namespace kin::store {

std::shared_ptr<const BlockContent> BlockCache::find(const BlockRef& block) {
  MutexLock lock(mutex_);
  const auto at = by_block_.find(block);
  if (at == by_block_.end()) return nullptr;
  Entry& entry = *at->second;
  Part& from = entry.hit ? hit_ : new_;
  hit_.entries.splice(hit_.entries.begin(), from.entries, at->second);
  const auto content = entry.content;
  if (!entry.hit) {
    entry.hit = true;
    new_.bytes -= content->size();
    hit_.bytes += content->size();
    make_room(hit_);
  }
  return content;
}

void BlockCache::add(const BlockRef& block, std::shared_ptr<const BlockContent> content) {
  MutexLock lock(mutex_);
  if (by_block_.contains(block)) return;
  new_.bytes += content->size();
  new_.entries.push_front({block, std::move(content)});
  by_block_[block] = new_.entries.begin();
  make_room(new_);
}

void BlockCache::make_room(Part& part) {
  while (part.bytes > part.limit_bytes) {
    part.bytes -= part.entries.back().content->size();
    by_block_.erase(part.entries.back().block);
    part.entries.pop_back();
  }
}

}  // namespace kin::store

// The blocks decoded last, up to a number of bytes. Thread-safe.
#pragma once

#include "lib/base/mutex.h"
#include "lib/engine/block_store.h"

#include <list>
#include <map>
#include <memory>

namespace kin::store {

class BlockCache {
 public:
  explicit BlockCache(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  std::shared_ptr<const BlockContent> find(const BlockRef& block);  // null if not there
  void add(const BlockRef& block, std::shared_ptr<const BlockContent> content);

 private:
  struct Entry {
    BlockRef block;
    std::shared_ptr<const BlockContent> content;
  };

  const std::size_t limit_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ KIN_GUARDED_BY(mutex_);  // the one used last in front
  std::map<BlockRef, std::list<Entry>::iterator> by_block_ KIN_GUARDED_BY(mutex_);
  std::size_t bytes_ KIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kin::store

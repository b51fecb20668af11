// The blocks decoded last, up to a number of bytes. Thread-safe.
//
// Most blocks are needed once: a restore writes their objects and goes on. Those that are needed again are
// bases, and will be needed a third time. So new blocks pass through one half of the cache, and the first hit
// moves a block to the other, where only its like can push it out.
#pragma once

#include "lib/base/mutex.h"
#include "lib/engine/block_store.h"

#include <list>
#include <map>
#include <memory>

namespace kin::store {

class BlockCache {
 public:
  explicit BlockCache(std::size_t limit_bytes)
      : new_{limit_bytes / 2, {}, 0}, hit_{limit_bytes - limit_bytes / 2, {}, 0} {}

  std::shared_ptr<const BlockContent> find(const BlockRef& block);  // null if not there
  void add(const BlockRef& block, std::shared_ptr<const BlockContent> content);

 private:
  struct Entry {
    BlockRef block;
    std::shared_ptr<const BlockContent> content;
    bool hit = false;
  };

  struct Part {
    const std::size_t limit_bytes;
    std::list<Entry> entries;  // the one used last in front
    std::size_t bytes;
  };

  void make_room(Part& part) KIN_REQUIRES(mutex_);

  Mutex mutex_;
  Part new_ KIN_GUARDED_BY(mutex_), hit_ KIN_GUARDED_BY(mutex_);
  std::map<BlockRef, std::list<Entry>::iterator> by_block_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin::store

// BlockUse: which stored blocks some snapshots need: by what their trees name, by what lists and recipes
// name, and by what deltas lean on. So it can be told, to the byte, what would be free without them.
//
// Some 16 bytes for each object and 32 for each block of the repository. Objects are told apart by the first
// 8 bytes of their ids: where two have the same, both are needed if one is. One thread at a time.
#pragma once

#include "lib/object/snapshot.h"
#include "store/repository.h"

#include <stop_token>
#include <vector>

namespace kin::store {

class BlockUse {
 public:
  // Reads all index segments. One that cannot be read is an error: what is not known is not free.
  static Result<BlockUse> read(Repository& repository, const std::stop_token& stop);

  // Adds what it needs. corrupt if an object is missing or cannot be read: then nothing is known of what it
  // would need.
  Result<void> add(const Snapshot& snapshot, const std::stop_token& stop);

  struct Sizes {
    std::uint64_t blocks = 0, bytes = 0;  // as they are stored
  };
  Sizes needed() const { return needed_; }  // by those added so far
  Sizes all() const { return all_; }

 private:
  // Bytes may be a tree for one and a file's content for another: what lies below is looked at for each.
  enum Role : std::uint8_t { kTree = 1, kList = 2, kData = 4 };
  struct Object {
    std::uint64_t prefix = 0;
    std::uint32_t block = 0;
    std::uint8_t roles = 0;
  };
  struct Block {
    std::uint64_t base = 0;  // its prefix, if it has one
    std::uint32_t bytes = 0;
    bool has_base = false;
    bool is_needed = false;
  };

  explicit BlockUse(Repository& repository) : repository_(&repository) {}
  Result<void> add_segment(const IndexSegment& segment);
  void settle();
  // Gives whether it is new in this role; corrupt if no segment has it.
  Result<bool> need(const ObjectId& id, Role role);
  void need_blocks(std::uint64_t prefix);
  std::vector<Object>::iterator find(std::uint64_t prefix);
  Result<void> walk(const ObjectId& tree, int depth, const std::stop_token& stop);

  Repository* repository_;
  std::vector<Object> objects_;  // by prefix
  std::vector<Block> blocks_;
  Sizes needed_, all_;
};

}  // namespace kin::store

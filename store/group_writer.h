// GroupWriter: stores small objects together, a group of content and one of metadata at a time, for those who
// write without a BlockPipeline. One thread at a time.
#pragma once

#include "lib/delta/block.h"
#include "store/repository.h"

namespace kin::store {

class GroupWriter {
 public:
  explicit GroupWriter(Repository& repository) : repository_(repository) {}

  Result<void> add(const BlockObject& object, ByteView content);
  Result<void> flush_content();  // its group, so that others can lean on it
  Result<void> flush();          // to the repository, whose flush() is the caller's
  std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  struct Group {
    std::vector<BlockObject> objects;
    Bytes content;
  };

  Result<void> put(std::size_t slot);

  Repository& repository_;
  BlockEncoder encoder_{Effort::normal()};
  Group groups_[2];  // content, metadata
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace kin::store

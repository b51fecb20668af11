// What backup, restore and check need from the repository, beyond single objects.
#pragma once

#include "lib/delta/block.h"
#include "lib/object/object_store.h"
#include "lib/object/snapshot.h"
#include "lib/similarity/feature_store.h"
#include "lib/similarity/scanner.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kin {

// Names a stored block. Ordered by pack and offset: reading in this order is reading forwards.
struct BlockRef {
  ObjectId pack;
  std::uint64_t offset = 0;
  std::uint32_t stored_size = 0;
  std::uint64_t content_size = 0;

  std::strong_ordering operator<=>(const BlockRef& other) const {
    if (const auto order = pack <=> other.pack; order != 0) return order;
    return offset <=> other.offset;
  }
  bool operator==(const BlockRef& other) const { return (*this <=> other) == 0; }
};

// What has to be decoded for an object: its own block, the block of its base, and so on.
struct Chain {
  unsigned depth = 0;       // deltas
  std::uint64_t bytes = 0;  // of content
};

// A decoded block. Its objects are compared with their ids by verify(), or by who takes one.
class BlockContent {
 public:
  // `deltas`: how many it was made of, its own included.
  BlockContent(const std::vector<BlockObject>& objects, Bytes content, unsigned deltas);
  BlockContent(BlockContent&& other) noexcept;

  std::optional<ByteView> find(const ObjectId& id) const;  // valid as long as this lives
  std::size_t size() const { return content_.size(); }
  unsigned deltas() const { return deltas_; }

  // Whether every object has been compared with its id; who takes one of a group need not compare all.
  bool is_verified() const { return verified_; }
  // The first object whose bytes are not those of its id. Thread-safe.
  std::optional<ObjectId> verify(const std::function<ObjectId(ByteView)>& id_of) const;

 private:
  struct Entry {
    ObjectId id;
    std::size_t offset, size;
  };
  std::vector<Entry> entries_;  // ascending by id
  Bytes content_;
  unsigned deltas_ = 0;
  mutable std::atomic<bool> verified_ = false;
};

// Thread-safe.
class BlockReader : public ObjectReader {
 public:
  // The block that holds the object; corrupt if none does: whoever asks has its id from the repository.
  virtual Result<BlockRef> locate(const ObjectId& id) = 0;
  virtual Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) = 0;
  virtual Result<Chain> chain(const ObjectId& id) = 0;
};

// Where a backup writes.
class BlockStore : public BlockReader {
 public:
  // Thread-safe.
  virtual ObjectId id_of(ByteView object) const = 0;
  virtual const Scanner& scanner() const = 0;

  // What may serve as a base. One thread at a time.
  virtual FeatureStore& features() = 0;

  // True, once, for an object that is neither stored nor claimed: the caller now has to append it. One thread
  // at a time.
  virtual Result<bool> claim(const ObjectId& id) = 0;
  // What was claimed is stored already, where it cannot be read. It must not become a delta: others may lean
  // on its old place, and if it leaned on one of them in turn, neither could be read.
  virtual bool is_stored_again(const ObjectId&) const { return false; }
  // Takes the block into a pack; gives the bytes that it takes there. In the order of the calls, one thread
  // at a time (not the one that claims).
  virtual Result<std::uint64_t> append(const EncodedBlock& block) = 0;
  // Makes durable and known what was appended. One thread at a time; nobody appends meanwhile.
  virtual Result<void> flush() = 0;
  // flush(), then the snapshot: the one commit point.
  virtual Result<SnapshotId> commit(const Snapshot& snapshot) = 0;
};

}  // namespace kin

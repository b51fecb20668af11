// A file's new content as the difference from its former one, by who no longer has that.
//
// Who scans a store keeps a signature of each file: the hashes of its blocks. When the file has changed and
// the other end still has the content of then, the signature shows which stretches it needs not be sent: the
// rest travels as it is. Other than with rsync's, the signatures never travel.
//
// Copies go forward only, so that the receiver reads what it has once, from front to end. The hashes are no
// proof: what comes out is compared with the hash of the whole.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/container/byte_source.h"
#include "lib/object/object_id.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kin::sync {

struct BlockSignature {
  ObjectId object;
  std::uint64_t size = 0;
  std::vector<std::uint64_t> blocks;  // hashes; what is left behind the last whole one has none

  bool operator==(const BlockSignature&) const = default;
};

// Follows from the size: smaller ones find more, and take more room to keep.
std::size_t block_bytes(std::uint64_t size);

Bytes encode_signatures(const std::vector<BlockSignature>& signatures);
std::vector<BlockSignature> decode_signatures(ByteView bytes);  // none, if they are damaged: they are hints

// Of a content that comes in pieces, and has this size.
class SignatureBuilder {
 public:
  explicit SignatureBuilder(std::uint64_t size);

  void add(ByteView bytes);
  // Nothing if the content was too short for one, or had another size.
  std::optional<BlockSignature> finish(const ObjectId& object);

 private:
  const std::size_t block_bytes_;
  BlockSignature out_;
  std::uint64_t seen_ = 0;
  Bytes block_;
};

// What the content is made of, for some of it.
struct BlockDifference {
  Bytes steps;                // docs/protocol.md, section on differences
  std::size_t covers = 0;     // bytes of content
  std::size_t new_bytes = 0;  // of them in `steps`
};

// Finds them, along a content. One instance for one content.
class BlockMatcher {
 public:
  explicit BlockMatcher(const BlockSignature& former);

  // Of the front of `content`, as much as can be told; `is_end`: nothing follows it. It ends early where that
  // has `most_new_bytes`. Covers something if there are two blocks or the end.
  BlockDifference next(ByteView content, bool is_end, std::size_t most_new_bytes);

 private:
  // The first block from next_block_ on with this hash.
  std::optional<std::uint64_t> find(std::uint64_t hash) const;

  const std::size_t block_bytes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_hash_;  // hash and block, sorted
  std::vector<bool> filter_;      // a bit of it is set for each hash: most bytes of a new stretch end there
  std::uint64_t next_block_ = 0;  // copies go forward
};

// Plays steps upon the former content, which is read once, forward.
class BlockPatcher {
 public:
  explicit BlockPatcher(std::unique_ptr<ByteSource> former) : former_(std::move(former)) {}

  // corrupt if the steps are none, or do not give exactly so many bytes; wrong_base if the former content is
  // shorter than they say.
  Result<Bytes> play(ByteView steps, std::size_t covers);

 private:
  Result<void> copy(std::uint64_t begin, std::size_t length, Bytes& out);

  const std::unique_ptr<ByteSource> former_;
  std::uint64_t at_ = 0;
};

}  // namespace kin::sync

// Pack: one file of many blocks, each with its own sealed header, so that a pack describes itself: the index
// can be rebuilt from packs alone, and damage to one block leaves the others readable.
//
//     "KINPACK1"  salt(16)  then per block:
//     header size (u32)  payload size (u32)  sealed header  sealed payload
//
// Nonces are the pack's salt and the block's offset, so none is stored per block. The sizes are bound to the
// header's seal, and the header's tag to the payload's.
#pragma once

#include "lib/delta/block.h"
#include "store/backend.h"
#include "store/crypto.h"

#include <functional>
#include <vector>

namespace kin::store {

inline constexpr std::size_t kPackTargetBytes = 16 << 20;

// Where a block lies in its pack.
struct BlockRange {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;  // with its header
};

// One thread at a time.
class PackBuilder {
 public:
  explicit PackBuilder(const Sealer& sealer);

  BlockRange add(const EncodedBlock& block);
  bool empty() const { return bytes_.size() <= kPrefixBytes; }
  std::size_t size() const { return bytes_.size(); }
  ByteView bytes() const { return bytes_; }

  static constexpr std::size_t kPrefixBytes = 8 + sizeof(Salt);

 private:
  const Sealer& sealer_;
  Salt salt_;
  Bytes bytes_;
};

struct OpenedBlock {
  BlockHeader header;
  Bytes payload;
};

// The pack's salt, from its first PackBuilder::kPrefixBytes bytes.
Result<Salt> read_pack_prefix(ByteView bytes);
// `record` is the BlockRange's bytes.
Result<OpenedBlock> open_block(const Sealer& sealer, const Salt& salt, std::uint64_t offset, ByteView record);
// The header needs the record's first bytes only: this many, as the first few of them tell. corrupt if no
// record of `size` bytes starts so.
Result<std::size_t> header_end(ByteView start, std::uint32_t size);
Result<BlockHeader> open_block_header(const Sealer& sealer, const Salt& salt, std::uint64_t offset,
                                      ByteView start);

// Reads the headers of all blocks of a pack, in order, without their payloads. Stops with an error at the
// first damage; what was visited before it is sound.
using VisitBlock = std::function<Result<void>(const BlockHeader& header, BlockRange range)>;
Result<void> scan_pack(const Sealer& sealer, Backend& backend, const FileInfo& pack, const VisitBlock& visit);

}  // namespace kin::store

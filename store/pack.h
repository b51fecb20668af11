// Pack: one file of many blocks, each with its own sealed header, so that a pack describes itself: the index
// can be rebuilt from packs alone, and damage to one block leaves the others readable.
//
//     "KINPACK1"  salt(16)  then per block:
//     header size (u32)  payload size (u32)  sealed header  sealed payload
//
// Nonces are the pack's salt and the block's offset, so none is stored per block. The sizes are bound to the
// header's seal, and the header's tag to the payload's.
#pragma once

#include "lib/base/hash.h"
#include "lib/delta/block.h"
#include "store/backend.h"
#include "store/crypto.h"

#include <functional>
#include <memory>
#include <vector>

namespace kin::store {

inline constexpr std::size_t kPackTargetBytes = 16 << 20;

// What a record takes beside its block's header and payload: the sizes of both, and a tag for each.
inline constexpr std::size_t kRecordOverheadBytes = 8 + 2 * kTagBytes;

// Where a block lies in its pack.
struct BlockRange {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;  // with its header
};

// A pack on its way to the backend; of its bytes, only the latest are in memory. What fails has changed
// nothing, and may be tried again. One thread at a time.
class PackBuilder {
 public:
  // Encrypted packs never have the name of another; others do, of equal blocks, unless they are to differ.
  PackBuilder(const Sealer& sealer, std::unique_ptr<Draft> draft, bool differs = false);

  Result<BlockRange> add(const EncodedBlock& block);
  bool empty() const { return size_ <= kPrefixBytes; }
  std::uint64_t size() const { return size_; }
  const Salt& salt() const { return salt_; }
  Result<Bytes> record(const BlockRange& range);  // of a block that was added, or a part of it
  Result<ObjectId> put();                         // under its name; then nothing can be added

  static constexpr std::size_t kPrefixBytes = 8 + sizeof(Salt);

 private:
  Result<void> write_tail();

  const Sealer& sealer_;
  std::unique_ptr<Draft> draft_;
  Salt salt_;
  Hasher hasher_;
  std::uint64_t size_ = 0;
  Bytes tail_;  // not yet in the draft: whole blocks, the first behind the prefix
};

struct OpenedBlock {
  BlockHeader header;
  Bytes payload;
};

// The pack's salt, from its first PackBuilder::kPrefixBytes bytes.
Result<Salt> read_pack_prefix(ByteView bytes);
// `record` is the BlockRange's bytes, and becomes the payload: it may be 16 MiB.
Result<OpenedBlock> open_block(const Sealer& sealer, const Salt& salt, std::uint64_t offset, Bytes record);
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

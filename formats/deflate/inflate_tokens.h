// BlockReader: inflates a raw deflate stream block by block, and keeps of each block all that is needed to
// write it again. One thread at a time.
#pragma once

#include "formats/deflate/bit_reader.h"
#include "formats/deflate/block.h"
#include "formats/deflate/decode_table.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cstddef>

namespace kin::formats::deflate {

// A block of more plain bytes than this, or whose tokens take more, is refused: a block is opened as a whole.
inline constexpr std::size_t kMostBlockBytes = std::size_t{16} << 20;

class BlockReader {
 public:
  explicit BlockReader(BitReader& bits, std::size_t most_block_bytes = kMostBlockBytes)
      : bits_(bits), most_block_bytes_(most_block_bytes) {}

  // Appends the block's plain bytes to `plain`, whose end must be the up to 32 KiB before it. corrupt: this
  // is not deflate, or it is cut off. unsupported: the block is too large, or `plain` would grow beyond
  // `most_plain`.
  Result<Block> next(Bytes& plain, std::size_t most_plain);

 private:
  Result<void> read_stored(Block& block, Bytes& plain, std::size_t most_plain);
  Result<void> read_header(DynamicHeader& header);
  Result<void> read_tokens(Block& block, Bytes& plain, std::size_t most_plain);

  BitReader& bits_;
  const std::size_t most_block_bytes_;
  DecodeTable lit_len_, distance_;
};

}  // namespace kin::formats::deflate

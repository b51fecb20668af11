// What stands around the blocks of a .xz stream: its header and footer, the headers of blocks, the index.
#pragma once

#include "formats/xz/content_check.h"

namespace kin::formats::xz {

inline constexpr std::size_t kStreamHeaderBytes = 12;
inline constexpr std::size_t kMostBlockHeader = 1024;
// All is in whole words of four bytes.
constexpr std::size_t padding_of(std::uint64_t bytes) { return static_cast<std::size_t>(-bytes & 3); }

Bytes stream_header(CheckId check);
// Nothing: no stream begins here, or one with a check that is not known.
std::optional<CheckId> parse_stream_header(ByteView bytes);

// How long the header of a block is whose first byte this is; 0: the index begins.
constexpr std::size_t block_header_bytes(std::uint8_t first) {
  return first == 0 ? 0 : 4 * (first + std::size_t{1});
}
// The dictionary's size. Nothing: it is no header, or that of a block with more filters than LZMA2.
std::optional<std::uint32_t> parse_block_header(ByteView header);

// Index: the sizes of a stream's blocks. It is kept as it will be written, in some ten bytes for each block.
class Index {
 public:
  static constexpr std::uint64_t kMostBlocks = 1U << 20;

  // `unpadded_bytes` of the block with its header and check. False: there are too many.
  bool add(std::uint64_t unpadded_bytes, std::uint64_t plain_bytes);
  // With the footer of the stream behind it.
  Bytes finish(CheckId check) const;

 private:
  std::uint64_t blocks_ = 0;
  Bytes records_;
};

}  // namespace kin::formats::xz

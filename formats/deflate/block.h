// Block: one deflate block, with all that its tokens and plain bytes do not imply.
#pragma once

#include "formats/deflate/token.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kin::formats::deflate {

enum class BlockType : std::uint8_t { stored = 0, fixed = 1, dynamic = 2 };

// One item of a dynamic header's list of code lengths: a length (0 to 15), or 16, 17, 18 with a repeat.
struct LengthItem {
  std::uint8_t symbol = 0;
  std::uint8_t repeat = 1;  // how many lengths it stands for

  bool operator==(const LengthItem&) const = default;
};

// A dynamic block's header as it is written.
struct DynamicHeader {
  std::vector<std::uint8_t> lit_len;            // 257 to 286 code lengths
  std::vector<std::uint8_t> distance;           // 1 to 30 code lengths
  std::vector<LengthItem> items;                // both of the above, run-length coded
  std::array<std::uint8_t, 19> item_lengths{};  // by symbol
  std::uint8_t item_lengths_written = 4;        // in the order of the wire

  bool operator==(const DynamicHeader&) const = default;
};

// In what order the wire has DynamicHeader::item_lengths.
inline constexpr std::array<std::uint8_t, 19> kItemOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                            11, 4,  12, 3, 13, 2, 14, 1, 15};

// Why a block ended where it did, as far as that tells something about its tokens.
enum class EndKind : std::uint8_t {
  rule = 0,       // by the parameters' BlockRule
  input_end = 1,  // with the stream's plain bytes
  flush = 2,      // the encoder was asked to write what it had: an empty block follows
  count = 3,      // no reason is known, so the number of tokens is kept
  empty = 4,      // has neither tokens nor bytes
  stored = 5,     // has bytes, and no tokens
};
inline constexpr std::size_t kEndKinds = 6;

struct Block {
  BlockType type = BlockType::stored;
  bool final = false;
  EndKind end = EndKind::count;
  bool flushed = false;        // its end was that of the input so far
  std::uint8_t start_bit = 0;  // the bit of its byte that it starts with
  std::uint8_t padding = 0;    // stored: the bits that were skipped before the length
  std::uint32_t plain_size = 0;
  std::vector<Token> tokens;             // not of stored blocks
  std::vector<std::uint32_t> irregular;  // ascending: tokens of length 258 written as 284 + 31
  DynamicHeader header;                  // of dynamic blocks
};

}  // namespace kin::formats::deflate

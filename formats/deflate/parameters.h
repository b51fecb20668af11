// Parameters: how the encoder of a stream chose its tokens and ended its blocks, as far as we model it.
// They are part of a reconstruction, so what each value means never changes.
#pragma once

#include "lib/base/wire.h"

#include <cstdint>

namespace kin::formats::deflate {

enum class Parser : std::uint8_t {
  literals = 0,  // zlib's Z_HUFFMAN_ONLY
  runs = 1,      // zlib's Z_RLE
  greedy = 2,    // zlib's levels 1 to 3: takes the match that it finds
  lazy = 3,      // zlib's levels 4 to 9: unless the next place has a longer one
  optimal = 4,   // the cheapest way through a block; the block rule is none
  fast = 5,      // Go's level 1: one place for each hash, and skips where there is nothing to find
};

enum class HashKind : std::uint8_t {
  zlib = 0,          // three bytes, shifted and xored
  crc32c_3 = 1,      // CRC-32C of three bytes: Chromium's zlib at levels 6 to 9
  crc32c_4 = 2,      // of four bytes: Chromium's at levels below
  multiplied_3 = 3,  // three bytes, as good as without collisions
  multiplied_4 = 4,  // four bytes: Go, libdeflate and others that take no match of three
  chromium_4 = 5,    // four bytes, multiplied by 66521: Chromium's zlib since 2022, at all levels
};

enum class BlockRule : std::uint8_t {
  none = 0,
  tokens = 1,  // when the token buffer is full but for one
  gzip = 2,    // so, with 32768; and at every 4096th if that looks well compressed: GNU gzip, Info-ZIP
  bytes = 3,   // when it has so many plain bytes, but for one: Go's level 1
  rsyncable =
      4,  // gzip's, and where the last 4096 plain bytes add up to a multiple of 4096: gzip --rsyncable
};

// What an encoder does with its history where its input was flushed.
enum class FlushHistory : std::uint8_t {
  keep = 0,
  clear = 1,     // zlib's Z_FULL_FLUSH
  reinsert = 2,  // all of the last 32 KiB: pigz, whose chunks start with a dictionary
};

struct Parameters {
  Parser parser = Parser::lazy;
  HashKind hash = HashKind::zlib;
  std::uint8_t hash_bits = 15;
  std::uint8_t window_bits = 15;
  bool zlib_window = true;      // never the first byte, nor the farthest 262 of the window
  bool skip_far_threes = true;  // zlib's TOO_FAR; with a hash of multiplied_4, fours
  bool filtered = false;        // zlib's Z_FILTERED: no match of up to 5
  std::uint16_t good = 8, lazy = 16, nice = 128, chain = 128;
  std::uint16_t insert_most = 258;  // greedy: the inside of longer matches stays unknown
  BlockRule rule = BlockRule::none;
  std::uint8_t block_log = 14;
  FlushHistory flush = FlushHistory::keep;

  // Whether the parser has to be told where a block ends.
  bool knows_block_end() const { return parser == Parser::optimal || parser == Parser::fast; }
  bool same_search(const Parameters& other) const {
    Parameters with_rule = other;
    with_rule.rule = rule;
    with_rule.block_log = block_log;
    return *this == with_rule;
  }
  bool has_limits() const { return parser >= Parser::greedy && parser <= Parser::optimal; }
  bool operator==(const Parameters&) const = default;
};

// The rows of zlib's table of levels, 1 to 9; gzip, Info-ZIP and Chromium have the same.
Parameters zlib_level(int level);

// Those that are written as a number: zlib's levels, and Microsoft Office's, 10 (fast) and 11.
Parameters preset(int number);

void encode_parameters(WireWriter& out, const Parameters& parameters);
// Fails the reader if a value is none that an encoder here would write.
Parameters decode_parameters(WireReader& in);

}  // namespace kin::formats::deflate

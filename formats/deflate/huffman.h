// Huffman codes as zlib makes them: the same frequencies give the same lengths to the bit, ties and over-long
// codes included. Pinned for ever: stored streams are rebuilt with it.
#pragma once

#include "formats/deflate/block.h"
#include "lib/base/bytes.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kin::formats::deflate {

struct Frequencies {
  std::array<std::uint32_t, kLitLenSymbols> lit_len{};
  std::array<std::uint32_t, kDistanceSymbols> distance{};
};

// Of the block's tokens, which start at `plain`, and its end.
Frequencies count_symbols(const Block& block, const std::uint8_t* plain);

// Code lengths of at most `most_bits` by symbol, cut after the last that has one.
std::vector<std::uint8_t> code_lengths(std::span<const std::uint32_t> frequencies, std::uint32_t most_bits);

// Run-length items as zlib writes them, for one of the two lists of a header.
void append_length_items(ByteView lengths, std::vector<LengthItem>& items);
// The code for the items, from how often each symbol occurs.
std::array<std::uint8_t, 19> item_code_lengths(const std::vector<LengthItem>& items);
// How many of them zlib writes.
std::uint8_t item_lengths_needed(const std::array<std::uint8_t, 19>& lengths);

DynamicHeader zlib_header(const Frequencies& frequencies);
// Whether zlib prefers the fixed code to this header.
bool zlib_prefers_fixed(const Frequencies& frequencies, const DynamicHeader& header);

// The fixed code's length of a literal or length symbol.
constexpr std::uint8_t fixed_length(std::size_t symbol) {
  return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}

inline constexpr auto kFixedLitLen = [] {
  std::array<std::uint8_t, 288> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = fixed_length(i);
  return out;
}();
inline constexpr auto kFixedDistance = [] {
  std::array<std::uint8_t, kDistanceSymbols> out{};
  out.fill(5);
  return out;
}();

// A header to start from where none is known.
DynamicHeader flat_header();

// The code words for these lengths, bits reversed as the wire wants them.
void assign_codes(ByteView lengths, std::span<std::uint16_t> codes);

}  // namespace kin::formats::deflate

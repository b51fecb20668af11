// What the parts of formats/xz share: the numbers of LZMA, and what an encoder was told.
//
//     plain ─► matches at each place ─► symbols chosen ─► bits by the model ─► chunks of LZMA2 ─► a block
//        window, match_finder    fast_parser,        symbol_coder,      lzma2_encoder      frame
//                                optimal_parser      range_encoder
#pragma once

#include "lib/base/bytes.h"

#include <bit>
#include <cstdint>

namespace kin::formats::xz {

// How probable a zero is, of 2048.
using Probability = std::uint16_t;
inline constexpr std::uint32_t kProbabilityBits = 11;
inline constexpr std::uint32_t kProbabilityTotal = 1U << kProbabilityBits;
inline constexpr std::uint32_t kAdaptShift = 5;

// A match has 2 to 273 bytes. Distances count from 0, the byte before.
inline constexpr std::uint32_t kShortestMatch = 2, kLongestMatch = 273;
inline constexpr std::uint32_t kLowLengths = 8, kMiddleLengths = 8, kHighLengths = 256;
inline constexpr std::uint32_t kLengths = kLowLengths + kMiddleLengths + kHighLengths;

// Recent distances, which take few bits.
inline constexpr std::uint32_t kReps = 4;

inline constexpr std::uint32_t kMostPositionBits = 4, kMostPositionStates = 1U << kMostPositionBits;
inline constexpr std::uint32_t kMostLiteralBits = 4;
inline constexpr std::uint32_t kLiteralCoderSize = 0x300;

// A distance is a slot, which has its two highest bits and how many there are, and the bits below. Those of
// the slots in between are modelled whole; of larger ones only the lowest four are.
inline constexpr std::uint32_t kLengthStates = 4, kSlotBits = 6, kSlots = 1U << kSlotBits;
inline constexpr std::uint32_t kFirstModelledSlot = 4, kFirstDirectSlot = 14;
inline constexpr std::uint32_t kModelledDistances = 1U << (kFirstDirectSlot / 2);
inline constexpr std::uint32_t kAlignBits = 4, kAlignSize = 1U << kAlignBits;

constexpr std::uint32_t slot_of(std::uint32_t distance) {
  if (distance < kFirstModelledSlot) return distance;
  const auto high = static_cast<std::uint32_t>(std::bit_width(distance)) - 1;
  return 2 * high + ((distance >> (high - 1)) & 1);
}
constexpr std::uint32_t slot_low_bits(std::uint32_t slot) { return (slot >> 1) - 1; }
constexpr std::uint32_t slot_base(std::uint32_t slot) { return (2 | (slot & 1)) << slot_low_bits(slot); }
// Short matches have slots of their own.
constexpr std::uint32_t length_state(std::uint32_t length) {
  return length < kShortestMatch + kLengthStates ? length - kShortestMatch : kLengthStates - 1;
}

// The last symbols' kinds, as one of twelve numbers: below 7, the last was a literal.
using State = std::uint8_t;
inline constexpr State kStates = 12, kLiteralStates = 7;
constexpr bool after_literal(State state) { return state < kLiteralStates; }
constexpr State state_after_literal(State state) {
  return static_cast<State>(state < 4 ? 0 : state < 10 ? state - 3 : state - 6);
}
constexpr State state_after_match(State state) { return after_literal(state) ? 7 : 10; }
constexpr State state_after_rep(State state) { return after_literal(state) ? 8 : 11; }
constexpr State state_after_short_rep(State state) { return after_literal(state) ? 9 : 11; }

// A chunk of LZMA2.
inline constexpr std::uint32_t kMostChunkBytes = 1U << 16;       // compressed, or stored
inline constexpr std::uint32_t kMostChunkPlainBytes = 1U << 21;  // of a compressed one

// How matches are looked for. The low digit is how many bytes are hashed; written to disk.
enum class Finder : std::uint8_t {
  chain_3 = 0x03,
  chain_4 = 0x04,
  tree_2 = 0x12,
  tree_3 = 0x13,
  tree_4 = 0x14
};
constexpr std::uint32_t hashed_bytes(Finder finder) { return static_cast<std::uint32_t>(finder) & 0xf; }
constexpr bool is_tree(Finder finder) { return (static_cast<std::uint32_t>(finder) & 0x10) != 0; }

inline constexpr std::uint32_t kLeastDictionary = 4096;
inline constexpr std::uint32_t kMostDictionary = 1U << 27;  // of a block that is opened
inline constexpr std::uint32_t kMostDepth = 1024;

// All that decides what an encoder makes of plain bytes.
struct Settings {
  bool stored = false;  // chunks that are not compressed, and nothing else below matters
  std::uint32_t dictionary_bytes = 1U << 23;
  std::uint8_t literal_context_bits = 3, literal_position_bits = 0, position_bits = 2;
  bool optimal = true;  // the parser: that, or fast
  Finder finder = Finder::tree_4;
  std::uint32_t nice_length = 64;  // a match as long as this is taken, and longer ones are not looked for
  std::uint32_t depth = 48;        // how many places are looked at

  friend bool operator==(const Settings&, const Settings&) = default;
};

// A match, or one of the recent distances, or a literal.
struct Symbol {
  static constexpr std::uint32_t kLiteral = UINT32_MAX;
  std::uint32_t back = kLiteral;  // below kReps: that recent distance; else the distance and kReps
  std::uint32_t length = 1;
};

}  // namespace kin::formats::xz

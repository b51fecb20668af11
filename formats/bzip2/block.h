// What the parts of formats/bzip2 share: numbers of the format, and a block between its stages.
//
//     plain ─► runs shortened ─► rotations sorted ─► symbols ─► tables chosen ─► bits
//       run_encoder     sort_rotations       make_symbols    choose_tables   write_block
//       run_expander    join_rotations       undo_symbols                    read_block
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kin::formats::bzip2 {

// Bytes of a block for each level, runs shortened.
inline constexpr std::size_t kLevelBytes = 100'000;
inline constexpr std::size_t kMostBlockBytes = 9 * kLevelBytes;

// Symbols: two digits for runs of the byte in front, the other places of the list, the end of the block.
inline constexpr std::size_t kMostSymbols = 258;
inline constexpr std::uint16_t kRunA = 0, kRunB = 1;

inline constexpr std::size_t kMostTables = 6;
inline constexpr std::size_t kGroupSymbols = 50;  // that share a table
inline constexpr std::size_t kMostSelectors = 32767;
inline constexpr std::uint8_t kMostCodeBits = 20;

inline constexpr std::uint64_t kBlockMagic = 0x314159265359;
inline constexpr std::uint64_t kEndMagic = 0x177245385090;

struct Symbols {
  std::array<bool, 256> used{};       // bytes that occur in the block
  std::size_t alphabet = 0;           // how many symbols there are
  std::vector<std::uint16_t> values;  // the end of the block included

  std::size_t groups() const { return (values.size() + kGroupSymbols - 1) / kGroupSymbols; }
};

using CodeLengths = std::array<std::uint8_t, kMostSymbols>;

struct Tables {
  std::size_t count = 0;
  std::array<CodeLengths, kMostTables> lengths{};
  std::vector<std::uint8_t> selectors;  // the table of each group

  friend bool operator==(const Tables&, const Tables&) = default;
};

// All that is in the bits of a block.
struct BlockContent {
  std::uint32_t crc = 0;
  std::uint32_t origin = 0;  // the row of the block itself among its rotations
  Symbols symbols;
  Tables tables;
};

}  // namespace kin::formats::bzip2

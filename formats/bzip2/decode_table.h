// DecodeTable: the symbol of a code at the front of some bits.
#pragma once

#include "formats/bzip2/block.h"

namespace kin::formats::bzip2 {

class DecodeTable {
 public:
  struct Entry {
    std::uint16_t symbol = 0;
    std::uint8_t bits = 0;  // 0: there is no such code
  };

  // Lengths that read_lengths() took.
  DecodeTable(const CodeLengths& lengths, std::size_t alphabet);

  Entry find(std::uint32_t bits) const {
    const Entry entry = quick_[bits >> (32 - kQuickBits)];
    return entry.bits != 0 ? entry : find_long(bits >> (32 - kMostCodeBits));
  }

 private:
  static constexpr std::uint32_t kQuickBits = 10;

  Entry find_long(std::uint32_t bits) const;

  std::array<Entry, 1U << kQuickBits> quick_{};
  std::array<std::uint16_t, kMostSymbols> by_code_{};
  // Of each length: where its codes end among codes of 20 bits, and what to add for the place in by_code_.
  std::array<std::uint32_t, kMostCodeBits + 1> ends_{};
  std::array<std::uint32_t, kMostCodeBits + 1> places_{};
};

}  // namespace kin::formats::bzip2

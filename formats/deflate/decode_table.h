// DecodeTable: a Huffman code as a table that turns the next bits into a symbol.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <vector>

namespace kin::formats::deflate {

class DecodeTable {
 public:
  struct Entry {
    std::uint16_t symbol = 0;  // or where the second level starts
    std::uint8_t length = 0;   // 0: no such code
    std::uint8_t second_bits = 0;
  };

  // False if the lengths (0 to 15) are no code that inflate programs accept: over-subscribed, or incomplete
  // with more than one symbol.
  bool build(ByteView lengths, std::uint32_t first_bits);

  Entry find(std::uint64_t bits) const {
    Entry entry = entries_[bits & first_mask_];
    if (entry.second_bits != 0) [[unlikely]]
      entry = entries_[entry.symbol + ((bits >> first_bits_) & ((1U << entry.second_bits) - 1))];
    return entry;
  }

 private:
  std::vector<Entry> entries_;
  std::uint32_t first_bits_ = 0;
  std::uint32_t first_mask_ = 0;
};

}  // namespace kin::formats::deflate

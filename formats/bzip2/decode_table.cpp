#include "formats/bzip2/decode_table.h"

#include <algorithm>

namespace kin::formats::bzip2 {

DecodeTable::DecodeTable(const CodeLengths& lengths, std::size_t alphabet) {
  std::uint32_t code = 0, place = 0;
  for (std::uint8_t bits = 1; bits <= kMostCodeBits; ++bits, code <<= 1) {
    places_[bits] = place - code;  // modulo 2^32
    for (std::size_t symbol = 0; symbol < alphabet; ++symbol) {
      if (lengths[symbol] != bits) continue;
      if (bits <= kQuickBits) {
        const std::uint32_t span = 1U << (kQuickBits - bits);
        std::fill_n(quick_.begin() + code * span, span, Entry{static_cast<std::uint16_t>(symbol), bits});
      }
      by_code_[place++] = static_cast<std::uint16_t>(symbol);
      ++code;
    }
    ends_[bits] = code << (kMostCodeBits - bits);
  }
}

DecodeTable::Entry DecodeTable::find_long(std::uint32_t bits) const {
  for (std::uint8_t length = kQuickBits + 1; length <= kMostCodeBits; ++length)
    if (bits < ends_[length]) return {by_code_[(bits >> (kMostCodeBits - length)) + places_[length]], length};
  return {};
}

}  // namespace kin::formats::bzip2

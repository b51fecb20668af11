// bzip2's CRC-32: the usual polynomial, but the highest bit first.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>

namespace kin::formats::bzip2 {

inline constexpr auto kCrcTable = [] {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i << 24;
    for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ (value >> 31 != 0 ? 0x04c11db7U : 0U);
    out[i] = value;
  }
  return out;
}();

// Of one block's plain bytes.
class Crc {
 public:
  void add(ByteView bytes) {
    std::uint32_t state = state_;
    for (const std::uint8_t byte : bytes) state = state << 8 ^ kCrcTable[state >> 24 ^ byte];
    state_ = state;
  }
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffff;
};

// Of a stream, from those of its blocks in order; it begins with 0.
constexpr std::uint32_t combine_crc(std::uint32_t stream, std::uint32_t block) {
  return (stream << 1 | stream >> 31) ^ block;
}

}  // namespace kin::formats::bzip2

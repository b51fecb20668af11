// How many bytes at two places are the same.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace kin::formats::deflate {

inline std::uint32_t same_bytes(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t most) {
  std::uint32_t length = 0;
  while (length + 8 <= most) {
    std::uint64_t x, y;
    std::memcpy(&x, a + length, 8);
    std::memcpy(&y, b + length, 8);
    if (x != y) {
      if constexpr (std::endian::native == std::endian::little)
        return length + static_cast<std::uint32_t>(std::countr_zero(x ^ y)) / 8;
      else
        return length + static_cast<std::uint32_t>(std::countl_zero(x ^ y)) / 8;
    }
    length += 8;
  }
  while (length < most && a[length] == b[length]) ++length;
  return length;
}

}  // namespace kin::formats::deflate

// How many bytes at two places are the same. Both have eight bytes more that can be read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace kin::formats::xz {

inline constexpr std::size_t kReadBeyond = 8;

// `known` of them are, and more than `limit` do not count. known <= limit.
inline std::uint32_t common_length(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t known,
                                   std::uint32_t limit) {
  for (; known < limit; known += 8) {
    std::uint64_t x, y;
    std::memcpy(&x, a + known, 8);
    std::memcpy(&y, b + known, 8);
    if (x == y) continue;
    const int bits =
        std::endian::native == std::endian::little ? std::countr_zero(x ^ y) : std::countl_zero(x ^ y);
    return std::min(known + static_cast<std::uint32_t>(bits) / 8, limit);
  }
  return limit;
}

inline bool same_two(const std::uint8_t* a, const std::uint8_t* b) { return std::memcmp(a, b, 2) == 0; }

}  // namespace kin::formats::xz

// The sum table of SimiHash: how often each of 16 bit patterns comes in a file, at whatever bit it begins.
#pragma once

#include "lib/base/bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kin {

inline constexpr std::size_t kSimihashTags = 16;

// 0x00, which tells padded files from others best; 'e' and 't', which tell of text; bytes beyond ASCII, and
// others without a plan.
inline constexpr std::array<std::uint8_t, kSimihashTags> kSimihashTagBytes = {
    0x00, 0x65, 0x74, 0xc3, 0x13, 0x2e, 0x3b, 0x4d, 0x58, 0x6a, 0x91, 0xa7, 0xb2, 0xd9, 0xe6, 0xfc};

// What is above belongs to the suffix. Skew keys count up to 8 for a byte, so that those of files from 128
// GiB on, if they are all zeros, are the same.
inline constexpr unsigned kSimihashKeyBits = 40;
constexpr std::uint64_t clamped_simihash_key(std::uint64_t key) {
  return std::min(key, (std::uint64_t{1} << kSimihashKeyBits) - 1);
}

// Bytes come in any pieces. One thread at a time.
class TagCounter {
 public:
  void add(ByteView bytes);
  const std::array<std::uint64_t, kSimihashTags>& sums() const { return sums_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::array<std::uint64_t, kSimihashTags> sums_{};
  std::array<std::uint64_t, kSimihashTags> free_from_{};  // the bit at which a tag may begin to match again
  std::uint64_t bytes_ = 0;
  unsigned before_ = 0;  // the byte before
};

}  // namespace kin

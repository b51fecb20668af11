// The hash functions of deflate encoders. Only which places fall together matters, so the values are ours.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace kin::formats::deflate {

inline std::uint32_t load32(const std::uint8_t* from) {
  return static_cast<std::uint32_t>(from[0]) | static_cast<std::uint32_t>(from[1]) << 8 |
         static_cast<std::uint32_t>(from[2]) << 16 | static_cast<std::uint32_t>(from[3]) << 24;
}

class ZlibHash {
 public:
  explicit ZlibHash(std::uint32_t bits) : shift_((bits + 2) / 3), mask_((1U << bits) - 1) {}
  std::uint32_t operator()(const std::uint8_t* at) const {
    return (static_cast<std::uint32_t>(at[0]) << (2 * shift_) ^ static_cast<std::uint32_t>(at[1]) << shift_ ^
            at[2]) &
           mask_;
  }

 private:
  std::uint32_t shift_, mask_;
};

namespace detail {

// CRC-32C of a four-byte word, from zero and without the final inversion, is the xor of one entry per byte.
constexpr std::array<std::array<std::uint32_t, 256>, 4> make_crc32c() {
  std::array<std::array<std::uint32_t, 256>, 4> out{};
  for (std::uint32_t byte = 0; byte < 4; ++byte)
    for (std::uint32_t value = 0; value < 256; ++value) {
      std::uint32_t crc = value << (8 * byte);
      for (int bit = 0; bit < 32; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
      out[byte][value] = crc;
    }
  return out;
}

inline constexpr auto kCrc32c = make_crc32c();

}  // namespace detail

template <bool kFourBytes>
class Crc32cHash {
 public:
  explicit Crc32cHash(std::uint32_t bits) : mask_((1U << bits) - 1) {}
  std::uint32_t operator()(const std::uint8_t* at) const {
    std::uint32_t crc = detail::kCrc32c[0][at[0]] ^ detail::kCrc32c[1][at[1]] ^ detail::kCrc32c[2][at[2]];
    // Chromium masks the fourth byte to zero, whose entry is zero.
    if constexpr (kFourBytes) crc ^= detail::kCrc32c[3][at[3]];
    return crc & mask_;
  }

 private:
  std::uint32_t mask_;
};

template <bool kFourBytes>
class MultipliedHash {
 public:
  explicit MultipliedHash(std::uint32_t bits) : shift_(32 - bits) {}
  std::uint32_t operator()(const std::uint8_t* at) const {
    std::uint32_t word = load32(at);
    if constexpr (!kFourBytes) word <<= 8;
    return (word * 0x1e35a7bdU) >> shift_;
  }

 private:
  std::uint32_t shift_;
};

class ChromiumHash {
 public:
  explicit ChromiumHash(std::uint32_t bits) : mask_((1U << bits) - 1) {}
  std::uint32_t operator()(const std::uint8_t* at) const {
    return (load32(at) * 66521U + 66521U) >> 16 & mask_;
  }

 private:
  std::uint32_t mask_;
};

}  // namespace kin::formats::deflate

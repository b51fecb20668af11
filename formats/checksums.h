// The sums that containers carry of their content. In code of our own: a restore must not depend on a
// library.
#pragma once

#include "lib/base/bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kin::formats {

constexpr std::array<std::uint32_t, 256> make_crc32_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320 : 0);
    table[i] = value;
  }
  return table;
}
inline constexpr auto kCrc32Table = make_crc32_table();

// CRC-32 of PNG, gzip and zip, of bytes that come in pieces.
class Crc32 {
 public:
  void add(ByteView bytes) {
    for (const std::uint8_t byte : bytes) state_ = kCrc32Table[(state_ ^ byte) & 0xff] ^ (state_ >> 8);
  }
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffff;
};

// Adler-32 of zlib streams, likewise.
class Adler32 {
 public:
  void add(ByteView bytes) {
    while (!bytes.empty()) {
      const ByteView step = bytes.first(std::min(bytes.size(), kMostStep));
      for (const std::uint8_t byte : step) sums_ += sum_ += byte;
      sum_ %= kModulus;
      sums_ %= kModulus;
      bytes = bytes.subspan(step.size());
    }
  }
  std::uint32_t value() const { return sums_ << 16 | sum_; }

 private:
  static constexpr std::uint32_t kModulus = 65521;
  static constexpr std::size_t kMostStep = 5552;  // so many bytes of 255 do not yet overflow

  std::uint32_t sum_ = 1, sums_ = 0;
};

}  // namespace kin::formats

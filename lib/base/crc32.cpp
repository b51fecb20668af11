// Eight bytes at a time: a byte's effect after k more bytes is a table of its own, so that eight lookups that
// wait for nothing take the place of eight that wait for each other.
#include "lib/base/crc32.h"

namespace kin {
namespace {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  CrcTables out{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t state = i;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320U : 0);
    out[0][i] = state;
  }
  for (std::size_t after = 1; after < out.size(); ++after)
    for (std::size_t i = 0; i < 256; ++i)
      out[after][i] = (out[after - 1][i] >> 8) ^ out[0][out[after - 1][i] & 0xff];
  return out;
}

constexpr CrcTables kCrcTables = make_crc_tables();

std::uint32_t crc_word(const std::uint8_t* data) {
  return static_cast<std::uint32_t>(data[0]) | static_cast<std::uint32_t>(data[1]) << 8 |
         static_cast<std::uint32_t>(data[2]) << 16 | static_cast<std::uint32_t>(data[3]) << 24;
}

}  // namespace

const std::array<std::uint32_t, 256>& crc32_table() { return kCrcTables[0]; }

std::uint32_t crc32(ByteView bytes, std::uint32_t before) {
  const CrcTables& t = kCrcTables;
  std::uint32_t state = ~before;
  const std::uint8_t* data = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    const std::uint32_t low = state ^ crc_word(data), high = crc_word(data + 4);
    state = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
            t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
  }
  for (; left > 0; --left, ++data) state = (state >> 8) ^ t[0][(state ^ *data) & 0xff];
  return ~state;
}

}  // namespace kin

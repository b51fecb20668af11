#include "formats/base64_text.h"

namespace kin::formats::base64 {

void decode(ByteView characters, Bytes& out) {
  std::size_t to = out.size();
  out.resize(to + characters.size() / 4 * 3);
  for (std::size_t i = 0; i + 4 <= characters.size(); i += 4, to += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) bits = bits << 6 | kValues[characters[i + j]];
    out[to] = static_cast<std::uint8_t>(bits >> 16);
    out[to + 1] = static_cast<std::uint8_t>(bits >> 8);
    out[to + 2] = static_cast<std::uint8_t>(bits);
  }
}

void encode(ByteView plain, Bytes& out) {
  std::size_t to = out.size();
  out.resize(to + plain.size() / 3 * 4);
  for (std::size_t i = 0; i + 3 <= plain.size(); i += 3, to += 4) {
    const std::uint32_t bits =
        std::uint32_t{plain[i]} << 16 | std::uint32_t{plain[i + 1]} << 8 | plain[i + 2];
    for (std::size_t j = 0; j < 4; ++j) out[to + j] = character(bits >> (18 - 6 * j));
  }
}

}  // namespace kin::formats::base64

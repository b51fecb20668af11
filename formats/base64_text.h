// What base64 is made of, for formats/base64.cpp: the alphabet, and characters to bytes and back.
#pragma once

#include "lib/base/bytes.h"

#include <array>

namespace kin::formats::base64 {

inline constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline constexpr std::uint8_t kNoValue = 0xff;
inline constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> out{};
  out.fill(kNoValue);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    out[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return out;
}();

// Of six bits; the others do not count.
inline std::uint8_t character(unsigned value) { return static_cast<std::uint8_t>(kAlphabet[value & 63]); }

// Of so many characters at the front.
inline std::size_t count_characters(ByteView text) {
  std::size_t count = 0;
  while (count < text.size() && kValues[text[count]] != kNoValue) ++count;
  return count;
}

// Whole fours of characters, and whole threes of bytes; what is over is left out.
void decode(ByteView characters, Bytes& out);
void encode(ByteView plain, Bytes& out);

}  // namespace kin::formats::base64

// Token: what deflate's parser decided at one place of the plain bytes: a literal, or a match with earlier
// bytes. A literal's value is not kept; the plain bytes have it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kin::formats::deflate {

inline constexpr std::uint32_t kLeastMatch = 3;
inline constexpr std::uint32_t kMostMatch = 258;
inline constexpr std::uint32_t kMostDistance = 32768;
inline constexpr std::size_t kLitLenSymbols = 286;
inline constexpr std::size_t kDistanceSymbols = 30;
inline constexpr std::size_t kEndOfBlock = 256;

struct Token {
  std::uint16_t length = 1;    // 1 for a literal, else 3 to 258
  std::uint16_t distance = 0;  // 0 for a literal, else 1 to 32768

  bool is_literal() const { return distance == 0; }
  bool operator==(const Token&) const = default;
};

// How a length or a distance is written: a symbol, and extra bits on top of the symbol's base.
struct ValueCode {
  std::uint16_t base = 0;
  std::uint8_t extra_bits = 0;
};

namespace detail {

constexpr std::array<ValueCode, 29> make_length_codes() {
  std::array<ValueCode, 29> out{};
  std::uint32_t base = 3;
  for (std::size_t i = 0; i < 28; ++i) {
    const std::uint32_t extra = i < 8 ? 0 : static_cast<std::uint32_t>(i / 4 - 1);
    out[i] = {static_cast<std::uint16_t>(base), static_cast<std::uint8_t>(extra)};
    base += 1U << extra;
  }
  out[28] = {258, 0};
  return out;
}

constexpr std::array<ValueCode, kDistanceSymbols> make_distance_codes() {
  std::array<ValueCode, kDistanceSymbols> out{};
  std::uint32_t base = 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t extra = i < 4 ? 0 : static_cast<std::uint32_t>(i / 2 - 1);
    out[i] = {static_cast<std::uint16_t>(base), static_cast<std::uint8_t>(extra)};
    base += 1U << extra;
  }
  return out;
}

constexpr std::array<std::uint8_t, kMostMatch + 1> make_length_symbols() {
  std::array<std::uint8_t, kMostMatch + 1> out{};
  const auto codes = make_length_codes();
  for (std::size_t i = 0; i < codes.size(); ++i)
    for (std::size_t j = 0; j < (std::size_t{1} << codes[i].extra_bits) && codes[i].base + j <= kMostMatch;
         ++j)
      out[codes[i].base + j] = static_cast<std::uint8_t>(i);
  return out;
}

}  // namespace detail

// By symbol: symbol 257 + i is kLengthCodes[i].
inline constexpr auto kLengthCodes = detail::make_length_codes();
inline constexpr auto kDistanceCodes = detail::make_distance_codes();

inline constexpr auto kLengthSymbols = detail::make_length_symbols();

// The index into kLengthCodes. Length 258 has a code of its own; a few encoders write it as 284 + 31 instead.
inline std::uint32_t length_index(std::uint32_t length) { return kLengthSymbols[length]; }

inline std::uint32_t distance_symbol(std::uint32_t distance) {
  const std::uint32_t d = distance - 1;
  if (d < 4) return d;
  const auto high = static_cast<std::uint32_t>(std::bit_width(d)) - 1;
  return 2 * high + ((d >> (high - 1)) & 1);
}

}  // namespace kin::formats::deflate

// What bits cost, in sixteenths of a bit: rounded as liblzma rounds them, since a price that is one less
// makes another stream.
#pragma once

#include "formats/xz/model.h"

namespace kin::formats::xz {

inline constexpr std::uint32_t kPriceShift = 4;  // of one bit
inline constexpr std::uint32_t kPricedBits = kProbabilityBits - 4;
inline constexpr std::uint32_t kInfinitePrice = 1U << 30;

// Of a zero, by the highest bits of its probability. Logarithms by squaring, and never from <cmath>, which
// may round otherwise elsewhere.
inline constexpr auto kPrices = [] {
  std::array<std::uint8_t, 1U << kPricedBits> out{};
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::uint32_t value = 16 * i + 8, log = 0;
    for (std::uint32_t round = 0; round < kPriceShift; ++round) {
      value *= value;
      log *= 2;
      for (; value >= 1U << 16; value >>= 1) ++log;
    }
    out[i] = static_cast<std::uint8_t>((kProbabilityBits << kPriceShift) - 15 - log);
  }
  return out;
}();

inline std::uint32_t zero_price(Probability zero) { return kPrices[zero >> 4]; }
inline std::uint32_t one_price(Probability zero) { return kPrices[(zero ^ (kProbabilityTotal - 1)) >> 4]; }
inline std::uint32_t bit_price(Probability zero, std::uint32_t bit) {
  return kPrices[(zero ^ ((0U - bit) & (kProbabilityTotal - 1))) >> 4];
}

inline std::uint32_t tree_price(const Probability* zeros, std::uint32_t bits, std::uint32_t value) {
  std::uint32_t price = 0;
  for (std::uint32_t node = value + (1U << bits); node > 1; node >>= 1)
    price += bit_price(zeros[node >> 1], node & 1);
  return price;
}

inline std::uint32_t reverse_tree_price(const Probability* zeros, std::uint32_t bits, std::uint32_t value) {
  std::uint32_t price = 0;
  std::uint32_t node = 1;
  for (; bits > 0; --bits, value >>= 1) {
    price += bit_price(zeros[node], value & 1);
    node = 2 * node + (value & 1);
  }
  return price;
}

inline std::uint32_t direct_price(std::uint32_t bits) { return bits << kPriceShift; }

}  // namespace kin::formats::xz

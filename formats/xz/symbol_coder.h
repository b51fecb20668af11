// SymbolCoder: symbols to bits, and all that the next symbols depend on: the model, the last kinds, the
// recent distances, and the tables of prices that parsers choose by. One thread at a time.
#pragma once

#include "formats/xz/match_finder.h"
#include "formats/xz/price_tables.h"
#include "formats/xz/range_encoder.h"

namespace kin::formats::xz {

class SymbolCoder {
 public:
  explicit SymbolCoder(const Settings& settings);

  // As at the beginning of a stream.
  void reset();
  // The first byte of all, which has nothing before it.
  void encode_first(std::uint8_t byte);
  // `here` is where the symbol's bytes stand.
  void encode(const Symbol& symbol, std::uint32_t position, const std::uint8_t* here);
  // What prices of literals are asked with.
  std::uint32_t literal_price(std::uint32_t position, std::uint8_t before, bool plain,
                              std::uint8_t match_byte, std::uint8_t byte) const;

  Model model;
  State state = 0;
  std::array<std::uint32_t, kReps> reps{};
  LengthPrices match_prices, rep_prices;
  DistancePrices distance_prices;
  RangeEncoder range;
  const std::uint32_t position_mask;

 private:
  void encode_literal(std::uint32_t position, const std::uint8_t* here);
  void encode_match(std::uint32_t position_state, std::uint32_t distance, std::uint32_t length);
  void encode_rep(std::uint32_t position_state, std::uint32_t rep, std::uint32_t length);
  void encode_length(LengthModel& lengths, LengthPrices& prices, std::uint32_t position_state,
                     std::uint32_t length);

  const Settings settings_;
  const LiteralContext literal_context_;
};

inline std::uint32_t SymbolCoder::literal_price(std::uint32_t position, std::uint8_t before, bool plain,
                                                std::uint8_t match_byte, std::uint8_t byte) const {
  const Probability* const zeros = model.literal[literal_context_.of(position, before)].data();
  if (plain) return tree_price(zeros, 8, byte);
  std::uint32_t price = 0;
  std::uint32_t offset = 0x100, symbol = byte + 0x100U, match = match_byte;
  for (; symbol < 0x10000; symbol <<= 1) {
    match <<= 1;
    price += bit_price(zeros[offset + (match & offset) + (symbol >> 8)], (symbol >> 7) & 1);
    offset &= ~(match ^ (symbol << 1));
  }
  return price;
}

}  // namespace kin::formats::xz

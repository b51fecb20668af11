#include "formats/xz/symbol_coder.h"

namespace kin::formats::xz {

SymbolCoder::SymbolCoder(const Settings& settings)
    : position_mask((1U << settings.position_bits) - 1),
      settings_(settings),
      literal_context_(settings.literal_context_bits, settings.literal_position_bits) {
  reset();
}

void SymbolCoder::reset() {
  model.reset();
  state = 0;
  reps = {};
  range.restart();
  if (!settings_.optimal) return;
  const std::uint32_t longest = std::max(settings_.nice_length, hashed_bytes(settings_.finder));
  match_prices.reset(model.match_length, longest, position_mask + 1);
  rep_prices.reset(model.rep_length, longest, position_mask + 1);
  distance_prices.reset(settings_.dictionary_bytes);
}

void SymbolCoder::encode_first(std::uint8_t byte) {
  range.bit(model.is_match[0][0], 0);
  range.tree(model.literal[0].data(), 8, byte);
}

void SymbolCoder::encode(const Symbol& symbol, std::uint32_t position, const std::uint8_t* here) {
  const std::uint32_t position_state = position & position_mask;
  const bool is_literal = symbol.back == Symbol::kLiteral;
  range.bit(model.is_match[state][position_state], is_literal ? 0 : 1);
  if (is_literal) return encode_literal(position, here);
  const bool is_rep = symbol.back < kReps;
  range.bit(model.is_rep[state], is_rep ? 1 : 0);
  if (is_rep)
    encode_rep(position_state, symbol.back, symbol.length);
  else
    encode_match(position_state, symbol.back - kReps, symbol.length);
}

// After a match, the byte that would have gone on with it is no likely one: so it is part of the model, as
// long as the bits are the same.
void SymbolCoder::encode_literal(std::uint32_t position, const std::uint8_t* here) {
  Probability* const zeros = model.literal[literal_context_.of(position, here[-1])].data();
  if (after_literal(state)) {
    range.tree(zeros, 8, *here);
  } else {
    std::uint32_t offset = 0x100, symbol = *here + 0x100U;
    std::uint32_t match = *(here - reps[0] - 1);
    for (; symbol < 0x10000; symbol <<= 1) {
      match <<= 1;
      range.bit(zeros[offset + (match & offset) + (symbol >> 8)], (symbol >> 7) & 1);
      offset &= ~(match ^ (symbol << 1));
    }
  }
  state = state_after_literal(state);
}

void SymbolCoder::encode_match(std::uint32_t position_state, std::uint32_t distance, std::uint32_t length) {
  state = state_after_match(state);
  encode_length(model.match_length, match_prices, position_state, length);
  const std::uint32_t slot = slot_of(distance);
  range.tree(model.slot[length_state(length)].data(), kSlotBits, slot);
  if (slot >= kFirstModelledSlot) {
    const std::uint32_t bits = slot_low_bits(slot), low = distance - slot_base(slot);
    if (slot < kFirstDirectSlot) {
      range.reverse_tree(model.low_bits.data() + Model::low_bits_of(slot), bits, low);
    } else {
      range.direct(low >> kAlignBits, bits - kAlignBits);
      range.reverse_tree(model.align.data(), kAlignBits, low & (kAlignSize - 1));
    }
  }
  reps = {distance, reps[0], reps[1], reps[2]};
  distance_prices.count(distance);
}

void SymbolCoder::encode_rep(std::uint32_t position_state, std::uint32_t rep, std::uint32_t length) {
  range.bit(model.is_other_rep[state], rep == 0 ? 0 : 1);
  if (rep == 0) {
    range.bit(model.is_long_rep0[state][position_state], length == 1 ? 0 : 1);
  } else {
    range.bit(model.is_rep2_or_3[state], rep == 1 ? 0 : 1);
    if (rep > 1) range.bit(model.is_rep3[state], rep - 2);
    const std::uint32_t distance = reps[rep];
    for (; rep > 0; --rep) reps[rep] = reps[rep - 1];
    reps[0] = distance;
  }
  if (length == 1) {
    state = state_after_short_rep(state);
  } else {
    encode_length(model.rep_length, rep_prices, position_state, length);
    state = state_after_rep(state);
  }
}

// The prices are counted first: liblzma makes them anew before the symbol's own bits have changed the model.
void SymbolCoder::encode_length(LengthModel& lengths, LengthPrices& prices, std::uint32_t position_state,
                                std::uint32_t length) {
  if (settings_.optimal) prices.count(lengths, position_state);
  std::uint32_t value = length - kShortestMatch;
  range.bit(lengths.choice[0], value < kLowLengths ? 0 : 1);
  if (value < kLowLengths) return range.tree(lengths.low[position_state].data(), 3, value);
  value -= kLowLengths;
  range.bit(lengths.choice[1], value < kMiddleLengths ? 0 : 1);
  if (value < kMiddleLengths) return range.tree(lengths.middle[position_state].data(), 3, value);
  range.tree(lengths.high.data(), 8, value - kMiddleLengths);
}

}  // namespace kin::formats::xz

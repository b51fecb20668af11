// Model: how probable each bit of a symbol is, by what came before. Encoder and decoder keep the same.
#pragma once

#include "formats/xz/lzma.h"

#include <algorithm>
#include <array>

namespace kin::formats::xz {

template <std::size_t N>
using Probabilities = std::array<Probability, N>;

struct LengthModel {
  Probabilities<2> choice;  // low or not; middle or high
  std::array<Probabilities<kLowLengths>, kMostPositionStates> low;
  std::array<Probabilities<kMiddleLengths>, kMostPositionStates> middle;
  Probabilities<kHighLengths> high;
};

struct Model {
  std::array<Probabilities<kLiteralCoderSize>, 1U << kMostLiteralBits> literal;
  std::array<Probabilities<kMostPositionStates>, kStates> is_match, is_long_rep0;
  Probabilities<kStates> is_rep, is_other_rep, is_rep2_or_3, is_rep3;
  std::array<Probabilities<kSlots>, kLengthStates> slot;
  Probabilities<kModelledDistances> low_bits;  // of modelled slots: see low_bits_of()
  Probabilities<kAlignSize> align;
  LengthModel match_length, rep_length;

  void reset() {
    static_assert(sizeof(Model) % sizeof(Probability) == 0);
    auto* const all = reinterpret_cast<Probability*>(this);
    std::fill_n(all, sizeof(Model) / sizeof(Probability), Probability{kProbabilityTotal / 2});
  }
  // A tree, whose root is [1].
  static constexpr std::uint32_t low_bits_of(std::uint32_t slot) { return slot_base(slot) - slot; }
};

// Which literals share probabilities: those after bytes with the same high bits, at the same low bits of the
// position.
class LiteralContext {
 public:
  LiteralContext() = default;
  LiteralContext(std::uint32_t context_bits, std::uint32_t position_bits)
      : shift_(8 - context_bits), position_mask_((1U << position_bits) - 1), context_bits_(context_bits) {}

  std::uint32_t of(std::uint32_t position, std::uint8_t before) const {
    return ((position & position_mask_) << context_bits_) + (std::uint32_t{before} >> shift_);
  }

 private:
  std::uint32_t shift_ = 5, position_mask_ = 0, context_bits_ = 3;
};

}  // namespace kin::formats::xz

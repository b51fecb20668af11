#include "formats/xz/price_tables.h"

namespace kin::formats::xz {

void LengthPrices::reset(const LengthModel& model, std::uint32_t longest, std::uint32_t position_states) {
  size_ = longest + 1 - kShortestMatch;
  for (std::uint32_t state = 0; state < position_states; ++state) update(model, state);
}

void LengthPrices::update(const LengthModel& model, std::uint32_t position_state) {
  left_[position_state] = size_;
  auto& prices = prices_[position_state];
  const std::uint32_t low = zero_price(model.choice[0]);
  const std::uint32_t not_low = one_price(model.choice[0]);
  const std::uint32_t middle = not_low + zero_price(model.choice[1]);
  const std::uint32_t high = not_low + one_price(model.choice[1]);
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (i < kLowLengths)
      prices[i] = low + tree_price(model.low[position_state].data(), 3, i);
    else if (i < kLowLengths + kMiddleLengths)
      prices[i] = middle + tree_price(model.middle[position_state].data(), 3, i - kLowLengths);
    else
      prices[i] = high + tree_price(model.high.data(), 8, i - kLowLengths - kMiddleLengths);
  }
}

void DistancePrices::reset(std::uint32_t dictionary_bytes) {
  slots_size_ = 2 * static_cast<std::uint32_t>(std::bit_width(dictionary_bytes - 1));
  // So that the tables are made before the first use.
  matches_ = aligned_ = UINT32_MAX / 2;
}

void DistancePrices::update_slots(const Model& model) {
  for (std::uint32_t state = 0; state < kLengthStates; ++state) {
    auto& slots = slots_[state];
    for (std::uint32_t slot = 0; slot < slots_size_; ++slot) {
      slots[slot] = tree_price(model.slot[state].data(), kSlotBits, slot);
      if (slot >= kFirstDirectSlot) slots[slot] += direct_price(slot_low_bits(slot) - kAlignBits);
    }
    for (std::uint32_t distance = 0; distance < kFirstModelledSlot; ++distance)
      low_[state][distance] = slots[distance];
  }
  for (std::uint32_t distance = kFirstModelledSlot; distance < kModelledDistances; ++distance) {
    const std::uint32_t slot = slot_of(distance);
    const std::uint32_t price = reverse_tree_price(model.low_bits.data() + Model::low_bits_of(slot),
                                                   slot_low_bits(slot), distance - slot_base(slot));
    for (std::uint32_t state = 0; state < kLengthStates; ++state)
      low_[state][distance] = price + slots_[state][slot];
  }
  matches_ = 0;
}

void DistancePrices::update_align(const Model& model) {
  for (std::uint32_t i = 0; i < kAlignSize; ++i)
    align_[i] = reverse_tree_price(model.align.data(), kAlignBits, i);
  aligned_ = 0;
}

}  // namespace kin::formats::xz

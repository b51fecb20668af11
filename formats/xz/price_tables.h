// Tables of prices, which follow the model at some distance: they are made anew after so many symbols, and
// liblzma's counts of them show in the stream.
#pragma once

#include "formats/xz/prices.h"

namespace kin::formats::xz {

class LengthPrices {
 public:
  // For lengths up to `longest`; those of all position states are made anew now.
  void reset(const LengthModel& model, std::uint32_t longest, std::uint32_t position_states);
  // Before a length is encoded: every so often the prices are made anew.
  void count(const LengthModel& model, std::uint32_t position_state) {
    if (--left_[position_state] == 0) update(model, position_state);
  }
  std::uint32_t of(std::uint32_t length, std::uint32_t position_state) const {
    return prices_[position_state][length - kShortestMatch];
  }

 private:
  void update(const LengthModel& model, std::uint32_t position_state);

  std::uint32_t size_ = 0;
  std::array<std::uint32_t, kMostPositionStates> left_{};
  std::array<std::array<std::uint32_t, kLengths>, kMostPositionStates> prices_{};
};

class DistancePrices {
 public:
  void reset(std::uint32_t dictionary_bytes);
  // After a match was encoded.
  void count(std::uint32_t distance) {
    ++matches_;
    if (distance >= kModelledDistances) ++aligned_;
  }
  // Before symbols are chosen.
  void update(const Model& model) {
    if (matches_ >= kMostMatches) update_slots(model);
    if (aligned_ >= kAlignSize) update_align(model);
  }
  std::uint32_t of(std::uint32_t distance, std::uint32_t length) const {
    const std::uint32_t state = length_state(length);
    if (distance < kModelledDistances) return low_[state][distance];
    return slots_[state][slot_of(distance)] + align_[distance & (kAlignSize - 1)];
  }

 private:
  static constexpr std::uint32_t kMostMatches = 128;

  void update_slots(const Model& model);
  void update_align(const Model& model);

  std::uint32_t slots_size_ = 0;
  std::uint32_t matches_ = 0, aligned_ = 0;
  std::array<std::array<std::uint32_t, kSlots>, kLengthStates> slots_{};
  std::array<std::array<std::uint32_t, kModelledDistances>, kLengthStates> low_{};
  std::array<std::uint32_t, kAlignSize> align_{};
};

}  // namespace kin::formats::xz

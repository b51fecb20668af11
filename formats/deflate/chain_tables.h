// ChainTables: what a ChainPredictor knows of the past: by hash the last place, and by place the one before
// it in its chain. To forget it all takes no time, so that one set of tables serves many predictors of a
// short stream: to make and clear some for each took most of the time that opening a stream of an unknown
// encoder takes. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kin::formats::deflate {

class ChainTables {
 public:
  // A step of this length or more leads out of every window.
  static constexpr std::int32_t kTooFar = 0xffff;

  // Before all else, with tables that are new or have forgotten everything. Steps of the last `ring` places
  // are kept, which is a power of two.
  void start(std::uint32_t hash_bits, std::size_t ring) {
    heads_.resize(std::size_t{1} << hash_bits, kNowhere);
    // Not cleared: a place is looked at only after it was inserted.
    if (steps_ == nullptr || ring_mask_ + 1 != ring)
      steps_ = std::make_unique_for_overwrite<std::uint16_t[]>(ring);
    ring_mask_ = static_cast<std::uint32_t>(ring - 1);
  }

  // The last place with this hash, or one that is farther away than kTooFar.
  std::int32_t head(std::uint32_t hash) const { return heads_[hash] - shift_; }
  // By place, modulo the ring: back to the one before.
  const std::uint16_t* steps() const { return steps_.get(); }
  std::uint32_t ring_mask() const { return ring_mask_; }

  // Gives the step from there.
  std::uint16_t insert(std::uint32_t at, std::uint32_t hash) {
    std::int32_t& head = heads_[hash];
    const auto place = static_cast<std::int32_t>(at) + shift_;
    const auto step = static_cast<std::uint16_t>(std::min(place - head, kTooFar));
    steps_[at & ring_mask_] = step;
    head = place;
    return step;
  }

  // All places are less by so many from now on.
  void drop(std::uint32_t count) {
    const std::int32_t less = static_cast<std::int32_t>(count) + shift_;
    for (std::int32_t& head : heads_) head = std::max(head - less, kNowhere);
    shift_ = 0;
    // Steps are found by place, and places have moved.
    std::rotate(steps_.get(), steps_.get() + (count & ring_mask_), steps_.get() + ring_mask_ + 1);
  }

  // Everything; all of it was before `end`. What is inserted next may be anywhere.
  void forget(std::uint32_t end) {
    if (end > kMuchShift || shift_ > std::int32_t{kMuchShift}) {
      std::fill(heads_.begin(), heads_.end(), kNowhere);
      shift_ = 0;
    } else {
      shift_ += static_cast<std::int32_t>(end) - kNowhere;  // moves them all to kNowhere, or before it
    }
  }

 private:
  static constexpr std::int32_t kNowhere = -2 * (kTooFar + 1);
  static constexpr std::uint32_t kMuchShift = 1 << 28;  // twice that and a place, up to 2^30, are below 2^31

  std::vector<std::int32_t> heads_;  // all are `shift_` more than the place
  std::unique_ptr<std::uint16_t[]> steps_;
  std::uint32_t ring_mask_ = 0;
  std::int32_t shift_ = 0;
};

}  // namespace kin::formats::deflate

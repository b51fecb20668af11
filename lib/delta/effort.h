// Effort: how much time a smaller encoding may cost. docs/similarity.md has the measurements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kin {

struct Effort {
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  // Levels of zstd; xdelta3's follows from that of deltas. Groups of kin and deltas gain most from a higher
  // level.
  int group_level = 8;
  int delta_level = 6;
  int whole_level = 5;
  int dense_level = 2;  // of whole content that hardly compresses, whatever the level
  // Deltas are made at this level first, and at delta_level only where that has left at most this part of the
  // content and the base is close kin: a thorough search among what is hardly alike costs most and finds
  // least.
  int quick_delta_level = 3;
  std::size_t thorough_part = 6;
  bool only_close_kin = true;
  // After so much new content, a backup is a long one: time counts then, and what has no base gets these
  // levels. The daily one, which is small, gets those above.
  std::uint64_t long_after_bytes = 128 << 20;
  int long_group_level = 5;
  int long_whole_level = 3;
  unsigned candidates = 1;  // bases tried per object
  // xdelta3 is tried as well from this size on, where zstd has left at most this part of the content.
  std::size_t xdelta3_from = 1 << 20;
  std::size_t xdelta3_part = 256;

  static constexpr Effort fast() { return {1, 1, 1, 1, 1, kNever, true, kNever, 1, 1, 1, kNever, 1}; }
  static constexpr Effort normal() { return {}; }
  static constexpr Effort max() { return {15, 15, 12, 12, 3, 1, false, kNever, 15, 12, 8, 64 << 10, 4}; }
};

}  // namespace kin

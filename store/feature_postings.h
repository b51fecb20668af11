// Postings: what is known of one feature: how common it is, and the newest few objects that have it.
//
// Merging is associative: however the history of a feature is cut into pieces, joining them in their order
// gives the same. So the count is exact up to where it stops to matter, and not the logarithm that ranking
// needs.
#pragma once

#include "lib/object/sketch.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kin::store {

using Ordinal = std::uint32_t;  // objects are numbered in the order in which they were added

struct Postings {
  static constexpr std::uint32_t kMost = 8;
  // A feature of more objects than this says nothing about any of them: only the count is kept.
  static constexpr std::uint32_t kMostCommon = 1 << 12;

  std::uint32_t count = 0;  // stays at kMostCommon + 1 once it is there
  std::uint32_t size = 0;
  std::array<Ordinal, kMost> newest_first;

  bool is_stopped() const { return count > kMostCommon; }

  void append_older(const Postings& older) {
    count = std::min(count + older.count, kMostCommon + 1);
    if (is_stopped()) {
      size = 0;
      return;
    }
    for (std::uint32_t i = 0; i < older.size && size < kMost; ++i)
      newest_first[size++] = older.newest_first[i];
  }
};

// A feature as the store sorts it: shuffled, one to one, since pages and filters want keys that are spread
// evenly and the smallest hashes of something are not.
using FeatureKey = std::uint64_t;

inline FeatureKey key_of(Feature feature) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kFeatureBits) - 1;
  std::uint64_t key = feature & kMask;
  key ^= key >> 21;
  key = key * 0x9e3779b97f4a7c15 & kMask;
  key ^= key >> 19;
  key = key * 0xbf58476d1ce4e5b9 & kMask;
  return key ^ key >> 21;
}

}  // namespace kin::store

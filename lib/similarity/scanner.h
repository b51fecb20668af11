// Scanner: one pass over content that finds where to cut it and what it resembles.
//
// One rolling hash over the last 32 bytes serves both: h = (h << 2) + T[byte], so that a byte is shifted out
// after 32 steps. T is 256 pseudo-random words from the repository's key, so that neither cuts nor features
// tell an outsider anything about known content.
//
// Cuts: content up to kWholeBytes is one object. Longer content is cut by content, so that an insertion moves
// the cuts near it and no others: where h has 20 leading zero bits, at least kLeastBytes and at most
// kMostBytes after the previous cut; 1.5 MiB on average.
//
// Features: where h has 6 leading zero bits, the rest of it is mixed, and the smallest results make the
// sketch. Mixing is needed since hashes of neighbouring windows are alike in their high bits.
//
// Both are part of the format: changing them would end deduplication and resemblance against what is stored.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/hash.h"
#include "lib/object/sketch.h"

#include <array>
#include <cstdint>

namespace kin {

class Scanner {
 public:
  static constexpr std::size_t kWholeBytes = 1 << 20;
  static constexpr std::size_t kLeastBytes = 512 << 10;
  static constexpr std::size_t kMostBytes = 4 << 20;
  static constexpr std::size_t kWindowBytes = 32;
  // Small content has fewer features: more would take more room in the repository than they save there.
  static constexpr std::size_t kBytesPerFeature = 1024;
  static constexpr unsigned kLeastFeatures = 2;
  static constexpr unsigned kDefaultFeatures = 16;

  // `features` is the most that a sketch holds: kLeastFeatures to kMostFeatures. `window`: 8, 16, 32 or 64
  // bytes; another one than that of all repositories is for studies.
  explicit Scanner(const Key& seed, unsigned features = kDefaultFeatures, std::size_t window = kWindowBytes);

  struct Segment {
    std::size_t size = 0;
    Sketch sketch;
  };

  // Thread-safe.
  // The segment at the start of `bytes`, which holds kMostBytes or all that is left.
  Segment segment(ByteView bytes) const;
  Sketch sketch(ByteView bytes) const;

 private:
  class Smallest;

  unsigned features_of(std::size_t bytes) const;
  // Calls `with` for the window: its template argument is by how much the hash is shifted for each byte.
  template <class With>
  auto by_window(const With& with) const;
  template <unsigned kShift>
  void sample(ByteView bytes, std::size_t begin, std::size_t end, Smallest& smallest) const;
  template <unsigned kShift>
  std::uint64_t hash_before(const std::uint8_t* data, std::size_t at) const;
  template <unsigned kShift>
  Segment long_segment(ByteView bytes) const;

  std::array<std::uint64_t, 256> table_;
  const unsigned features_;
  const std::size_t window_;
};

}  // namespace kin

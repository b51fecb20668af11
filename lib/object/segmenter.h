// Where to cut large content into objects: by content, so that an insertion moves the cuts near it and no
// others.
//
// Content up to kWholeBytes is one object. Longer content is cut where a rolling hash over the last 32 bytes
// has 20 leading zero bits, at least kLeastBytes and at most kMostBytes after the previous cut: 1.5 MiB on
// average. The hash is h = (h << 2) + T[byte], so that a byte is shifted out after 32 steps; T is 256
// pseudo-random words from the repository's key, so that cut positions tell an outsider nothing about known
// content. Cuts are part of the format: changing them would end deduplication against what is stored.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/hash.h"

#include <array>
#include <cstdint>

namespace kin {

class Segmenter {
 public:
  static constexpr std::size_t kWholeBytes = 1 << 20;
  static constexpr std::size_t kLeastBytes = 512 << 10;
  static constexpr std::size_t kMostBytes = 4 << 20;
  static constexpr std::size_t kWindowBytes = 32;

  explicit Segmenter(const Key& seed);

  // The length of the segment at the start of `bytes`, which holds kMostBytes or all that is left.
  // Thread-safe.
  std::size_t cut(ByteView bytes) const;

 private:
  std::array<std::uint64_t, 256> table_;
};

}  // namespace kin

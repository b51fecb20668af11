// Anchors: short strings at which sif's first way to choose fingerprints begins them.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kin {

inline constexpr std::size_t kAnchorBytes = 4;

// The rule, for a sample of text: of all strings of 4 small letters,
//   1. those are too common that come more often than once in 4,096 bytes: they would crowd together;
//   2. of the others, the most common come first (equal ones in the order of the alphabet);
//   3. as many are taken as it needs for one anchor in 200 bytes of the sample on average, at most 256.
std::vector<std::string> choose_anchors(ByteView sample);

// What the rule chose from the licences that Debian keeps in /usr/share/common-licenses (GPL-2, GPL-3,
// Artistic, Apache-2.0, GFDL-1.3 and MPL-2.0, one after the other). Fixed, so that prints can be compared.
std::span<const char* const> usual_anchors();

// Tells quickly whether an anchor begins at a place.
class AnchorSet {
 public:
  explicit AnchorSet(std::span<const char* const> anchors);

  // Of the 4 bytes, as load() gives them.
  bool contains(std::uint32_t word) const {
    const std::uint32_t known = table_[place_of(word)];
    return known != 0 && (known == word || contains_behind(word));
  }
  static std::uint32_t load(const std::uint8_t* bytes) {
    std::uint32_t out = 0;
    std::memcpy(&out, bytes, sizeof out);
    return out;
  }

 private:
  static constexpr std::size_t kPlaces = 4096;
  static std::size_t place_of(std::uint32_t word) { return word * 0x9e3779b1U >> 20; }
  bool contains_behind(std::uint32_t word) const;

  std::array<std::uint32_t, kPlaces> table_{};  // 0: free; an anchor has no zero bytes
};

}  // namespace kin

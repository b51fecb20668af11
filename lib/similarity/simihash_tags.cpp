// The scan moves on by one bit at a time: eight windows of 8 bits begin within each byte. A match blocks its
// own tag for the 7 bits that follow (the skip counter), so that two zero bytes count twice and not nine
// times.
//
// To compare each window with 16 tags would be 128 comparisons per byte. Instead a table says, for each pair
// of neighbouring bytes, at which of the eight places some tag matches, as a mask of bits; three pairs in
// five have no match at all. The skip counter of the paper counts down at every bit; here it is the bit from
// which on the tag may match again, which is looked at when it does.
#include "lib/similarity/simihash_tags.h"

#include <bit>

namespace kin {
namespace {

constexpr std::uint8_t kNoTag = 0xff;

struct TagTables {
  std::array<std::uint8_t, 256> tag{};  // of a window's 8 bits; or none
  std::array<std::uint8_t, 65536>
      places{};  // of two bytes: bit 8 - i for a match that begins at their bit i, 1 to 8
};

TagTables make_tag_tables() {
  TagTables out;
  out.tag.fill(kNoTag);
  for (std::size_t i = 0; i < kSimihashTags; ++i)
    out.tag[kSimihashTagBytes[i]] = static_cast<std::uint8_t>(i);
  for (unsigned pair = 0; pair < 65536; ++pair)
    for (unsigned bit = 1; bit <= 8; ++bit)
      if (out.tag[pair >> (8 - bit) & 0xff] != kNoTag)
        out.places[pair] = static_cast<std::uint8_t>(out.places[pair] | 1U << (8 - bit));
  return out;
}

}  // namespace

void TagCounter::add(ByteView bytes) {
  static const TagTables tables = make_tag_tables();
  for (const std::uint8_t byte : bytes) {
    const unsigned pair = before_ << 8 | byte;
    unsigned places = tables.places[pair];
    if (bytes_ == 0) places &= 1;  // nothing was before
    while (places != 0) {
      const unsigned bit = static_cast<unsigned>(std::countl_zero(static_cast<std::uint8_t>(places))) + 1;
      const std::uint64_t begin = bytes_ * 8 + bit - 8;
      const std::uint8_t tag = tables.tag[pair >> (8 - bit) & 0xff];
      if (begin >= free_from_[tag]) {
        ++sums_[tag];
        free_from_[tag] = begin + 8;
      }
      places &= ~(1U << (8 - bit));
    }
    before_ = byte;
    ++bytes_;
  }
}

}  // namespace kin

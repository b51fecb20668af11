#include "formats/deflate/decode_table.h"

#include <algorithm>
#include <array>

namespace kin::formats::deflate {
namespace {

constexpr std::uint32_t kMostBits = 15;

std::uint32_t reversed(std::uint32_t code, std::uint32_t bits) {
  std::uint32_t out = 0;
  for (std::uint32_t i = 0; i < bits; ++i) out |= ((code >> i) & 1) << (bits - 1 - i);
  return out;
}

}  // namespace

bool DecodeTable::build(ByteView lengths, std::uint32_t first_bits) {
  std::array<std::uint32_t, kMostBits + 1> count{};
  for (const std::uint8_t length : lengths) ++count[length];
  const std::size_t used = lengths.size() - count[0];
  count[0] = 0;
  std::uint32_t longest = kMostBits;
  while (longest > 1 && count[longest] == 0) --longest;
  first_bits_ = std::min(first_bits, longest);
  first_mask_ = (1U << first_bits_) - 1;

  std::array<std::uint32_t, kMostBits + 2> next{};
  std::uint32_t code = 0;
  for (std::uint32_t bits = 1; bits <= kMostBits; ++bits) {
    next[bits] = code;
    code += count[bits];
    if (code > 1U << bits) return false;
    code <<= 1;
  }
  if (code != 2U << kMostBits && used > 1) return false;

  entries_.assign(std::size_t{1} << first_bits_, Entry{});
  for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    const std::uint32_t length = lengths[symbol];
    if (length == 0) continue;
    const std::uint32_t bits = reversed(next[length]++, length);
    const Entry entry{static_cast<std::uint16_t>(symbol), static_cast<std::uint8_t>(length), 0};
    if (length <= first_bits_) {
      for (std::uint32_t at = bits; at <= first_mask_; at += 1U << length) entries_[at] = entry;
      continue;
    }
    // All second levels are as deep as the longest code: 2 to the power of 4, or of 6, entries each.
    Entry& first = entries_[bits & first_mask_];
    const std::uint32_t second_bits = longest - first_bits_;
    if (first.second_bits == 0) {
      first = {static_cast<std::uint16_t>(entries_.size()), 1, static_cast<std::uint8_t>(second_bits)};
      const std::size_t start = first.symbol;
      entries_.resize(entries_.size() + (std::size_t{1} << second_bits));
      for (std::uint32_t at = bits >> first_bits_; at < 1U << second_bits; at += 1U << (length - first_bits_))
        entries_[start + at] = entry;
      continue;
    }
    for (std::uint32_t at = bits >> first_bits_; at < 1U << second_bits; at += 1U << (length - first_bits_))
      entries_[first.symbol + at] = entry;
  }
  return true;
}

}  // namespace kin::formats::deflate

#include "formats/bzip2/length_bits.h"

namespace kin::formats::bzip2 {
namespace {

constexpr std::uint32_t kUp = 0b10, kDown = 0b11;

}  // namespace

void write_lengths(BitWriter& out, const CodeLengths& lengths, std::size_t alphabet) {
  std::uint8_t current = lengths[0];
  out.put(current, 5);
  for (std::size_t symbol = 0; symbol < alphabet; ++symbol) {
    for (; current < lengths[symbol]; ++current) out.put(kUp, 2);
    for (; current > lengths[symbol]; --current) out.put(kDown, 2);
    out.put(0, 1);
  }
}

bool read_lengths(BitReader& in, CodeLengths& lengths, std::size_t alphabet) {
  std::uint32_t current = in.take(5), codes = 0;
  for (std::size_t symbol = 0; symbol < alphabet; ++symbol) {
    while (in.take(1) != 0) {
      current += in.take(1) != 0 ? ~0U : 1U;
      // Steps that lead back and forth are bounded by the bits that there are.
      if (current < 1 || current > kMostCodeBits || in.overrun()) return false;
    }
    if (current < 1 || current > kMostCodeBits) return false;
    lengths[symbol] = static_cast<std::uint8_t>(current);
    codes += 1U << (kMostCodeBits - current);
  }
  return !in.overrun() && codes <= 1U << kMostCodeBits;
}

}  // namespace kin::formats::bzip2

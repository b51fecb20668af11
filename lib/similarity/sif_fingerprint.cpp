#include "lib/similarity/sif_fingerprint.h"

#include <algorithm>

namespace kin {

std::uint64_t SifPolynomial::of(const std::uint8_t* bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < kSifBytes; ++i) out = add(out, bytes[i]);
  return out;
}

bool is_sif_run(const std::uint8_t* bytes) {
  return std::all_of(bytes + 1, bytes + kSifBytes, [&](std::uint8_t byte) { return byte == bytes[0]; });
}

std::uint32_t sif_kind(ByteView beginning) {
  constexpr std::size_t kLookedAt = 4096, kControlPart = 32;
  const ByteView looked_at = beginning.first(std::min(beginning.size(), kLookedAt));
  std::size_t controls = 0;
  for (const std::uint8_t byte : looked_at) {
    if (byte == 0) return 0;
    const bool blank = byte >= '\b' && byte <= '\r';
    if ((byte < ' ' && !blank && byte != 0x1b) || byte == 0x7f) ++controls;
  }
  return controls * kControlPart <= looked_at.size() ? 1 : 0;
}

double sif_similarity(const SharedValues& shared) {
  return shared.query_values == 0
             ? 0
             : static_cast<double>(shared.other_shared) / static_cast<double>(shared.query_values);
}

}  // namespace kin

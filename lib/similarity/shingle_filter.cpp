// The problem: of a file's shingles 1 % have hashes small enough to be kept, and to roll a hash over all
// others takes 17 instructions a byte.
//
// The idea: most can be told by the first byte of their hash. The hash is linear, so that byte is the
// exclusive or of two tables of 16 entries for each byte of the shingle, one for either half of it. Such a
// table fits into a register, and AVX2 looks up 32 bytes in one at once. A shingle of 8 bytes takes 16
// lookups for 32 places, or 2 instructions a byte, whatever the content. What passes is hashed from its
// start.
//
// CRCs by carry-less multiplication were not tried: they take three multiplications per shingle, which is not
// better than two lookups in 32.
#include "lib/similarity/shingle_filter.h"

#include "lib/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kin {

ShingleFilter::ShingleFilter(unsigned bytes, std::uint32_t constant,
                             const std::function<std::uint32_t(unsigned i, std::uint8_t byte)>& part)
    : positions_(bytes), parts_(bytes) {
  KIN_CHECK(is_supported() && bytes <= kMostBytes);
  for (unsigned i = 0; i < bytes; ++i) {
    for (unsigned byte = 0; byte < 256; ++byte)
      parts_[i][byte] = part(i, static_cast<std::uint8_t>(byte)) ^ (i == 0 ? constant : 0);
    for (unsigned entry = 0; entry < 32; ++entry) {
      const auto high =
          static_cast<std::uint8_t>(entry % 16 << 4);  // without the constant, which is in `low`
      positions_[i].low[entry] = static_cast<std::uint8_t>(parts_[i][entry % 16] >> 24);
      positions_[i].high[entry] = static_cast<std::uint8_t>(part(i, high) >> 24);
    }
  }
}

#if defined(__x86_64__)

bool ShingleFilter::is_supported() {
  static const bool supported = __builtin_cpu_supports("avx2");
  return supported;
}

__attribute__((target("avx2"))) std::uint32_t ShingleFilter::candidates(const std::uint8_t* data,
                                                                        std::uint8_t most) const {
  const __m256i half = _mm256_set1_epi8(0x0f);
  __m256i first_bytes = _mm256_setzero_si256();
  for (const Halves& position : positions_) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data++));
    const __m256i low = _mm256_and_si256(bytes, half);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    const __m256i low_table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(position.low));
    const __m256i high_table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(position.high));
    first_bytes = _mm256_xor_si256(first_bytes, _mm256_shuffle_epi8(low_table, low));
    first_bytes = _mm256_xor_si256(first_bytes, _mm256_shuffle_epi8(high_table, high));
  }
  const __m256i limit = _mm256_set1_epi8(static_cast<char>(most));
  const __m256i passes = _mm256_cmpeq_epi8(_mm256_min_epu8(first_bytes, limit), first_bytes);
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(passes));
}

#else

bool ShingleFilter::is_supported() { return false; }
std::uint32_t ShingleFilter::candidates(const std::uint8_t*, std::uint8_t) const { return ~0U; }

#endif

}  // namespace kin

#include "lib/similarity/shingle_filter.h"

#include "lib/base/crc32.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin {

TEST_CASE("a filter passes the shingles whose CRC-32 begins with a small byte, and hashes them",
          "[shingleprint]") {
  if (!ShingleFilter::is_supported()) {
    WARN("skipped: this processor has no AVX2");
    return;
  }
  const Bytes content = testing::random_bytes(1, 10'000);
  for (unsigned bytes = 4; bytes <= ShingleFilter::kMostBytes; ++bytes) {
    // By definition: a CRC is linear but for what it begins and ends with.
    const std::uint32_t constant = crc32(Bytes(bytes, 0));
    const ShingleFilter filter(bytes, constant, [&](unsigned at, std::uint8_t byte) {
      Bytes alone(bytes, 0);
      alone[at] = byte;
      return crc32(alone) ^ constant;
    });
    for (std::size_t at = 0; at < 100; ++at)
      CHECK(filter.hash(content.data() + at) == crc32(ByteView(content).subspan(at, bytes)));
    for (const unsigned most : {0U, 1U, 50U, 127U, 128U, 254U, 255U}) {
      std::size_t wrong = 0;
      for (std::size_t at = 0; at + ShingleFilter::kShingles + bytes <= content.size(); at += 37) {
        const std::uint32_t passes = filter.candidates(content.data() + at, static_cast<std::uint8_t>(most));
        for (std::size_t i = 0; i < ShingleFilter::kShingles; ++i)
          wrong += (passes >> i & 1) != (crc32(ByteView(content).subspan(at + i, bytes)) >> 24 <= most);
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace kin

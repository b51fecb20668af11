// Content for tests: the same for the same seed, on every machine and for ever, so that tests may pin what
// comes of it.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>

namespace kin::testing {

// splitmix64: two lines, no state to get wrong, and no codec finds anything in it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

 private:
  std::uint64_t state_;
};

// Does not compress.
Bytes random_bytes(std::uint64_t seed, std::size_t size);
// Words and lines, as in source code or mail: shrinks to about a third.
Bytes text_like(std::uint64_t seed, std::size_t size);
// Long runs that repeat, with a little noise between: shrinks to less than a tenth.
Bytes compressible_bytes(std::uint64_t seed, std::size_t size);
// Records of a fixed width with counters in them.
Bytes structured_bytes(std::uint64_t seed, std::size_t size);
// Instructions with few operations and many addresses, and tables whose entries count up: shrinks to about
// half.
Bytes program_like(std::uint64_t seed, std::size_t size);

}  // namespace kin::testing

// Content for tests: the same for the same seed, on every machine and for ever, so that tests may pin what
// comes of it. Much of it is made, so it is compiled with optimisation even where tests are not.
#pragma once

#include "lib/base/bytes.h"

#include <cstddef>
#include <cstdint>

namespace kin::testing {

// splitmix64: two lines, no state to get wrong, and no codec finds anything in it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  std::uint64_t below(std::uint64_t limit);

 private:
  std::uint64_t state_;
};

// Does not compress.
Bytes random_bytes(std::uint64_t seed, std::size_t size);

// Words and lines, as in source code or mail: shrinks to about a third.
Bytes text_like(std::uint64_t seed, std::size_t size);

// Long runs that repeat, with a little noise between: shrinks to less than a tenth.
Bytes compressible_bytes(std::uint64_t seed, std::size_t size);

}  // namespace kin::testing

#include "lib/base/random.h"

#include <sodium.h>

namespace kin {

std::uint64_t random_number() {
  std::uint64_t out = 0;
  ::randombytes_buf(&out, sizeof out);
  return out;
}

}  // namespace kin

// Seeded edits of the kinds that people and programs make: the same for the same seed, on every machine and
// for ever, so that tests may pin what comes of them.
#pragma once

#include "lib/base/bytes.h"
#include "tests/support/random_bytes.h"

namespace kin::testing {

// Each edit touches at most 400 bytes; content of 1,000 bytes or fewer stays as it is.
Bytes edit(Bytes content, Random& random, int edits);

}  // namespace kin::testing

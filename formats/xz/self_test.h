// Whether this build rebuilds .xz streams as every other does. Cheap: some ten milliseconds.
#pragma once

#include "lib/base/result.h"

namespace kin::formats::xz {

// corrupt: it does not, so nothing may be opened or rebuilt with it.
Result<void> self_test();

}  // namespace kin::formats::xz

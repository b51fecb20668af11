// Whether this build rebuilds streams as every other does. Cheap: well below a millisecond.
#pragma once

#include "lib/base/result.h"

namespace kin::formats::deflate {

// corrupt: it does not, so nothing may be opened or rebuilt with it.
Result<void> self_test();

}  // namespace kin::formats::deflate

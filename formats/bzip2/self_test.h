// Whether this build rebuilds bzip2 streams as every other does. Cheap: some milliseconds.
#pragma once

#include "lib/base/result.h"

namespace kin::formats::bzip2 {

// corrupt: it does not, so nothing may be opened or rebuilt with it.
Result<void> self_test();

}  // namespace kin::formats::bzip2

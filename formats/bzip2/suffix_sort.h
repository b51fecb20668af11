// All suffixes of a text in order, in time and memory that grow with its length and nothing else.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <vector>

namespace kin::formats::bzip2 {

// Where each suffix begins, the smallest first. A suffix is smaller than any that continues it. `text` is
// shorter than 2 GiB.
std::vector<std::int32_t> sort_suffixes(ByteView text);

}  // namespace kin::formats::bzip2

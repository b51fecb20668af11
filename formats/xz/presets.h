// The settings that a block may have been written with.
#pragma once

#include "formats/xz/lzma.h"

#include <vector>

namespace kin::formats::xz {

// `known` has what the block itself says: the dictionary's size and the model's properties. The likely ones
// first.
std::vector<Settings> likely_settings(const Settings& known);

}  // namespace kin::formats::xz

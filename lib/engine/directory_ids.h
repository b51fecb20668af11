// Directories by device and inode, so that no other name leads into them.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

namespace kin {

using DirectoryIds = std::set<std::pair<std::uint64_t, std::uint64_t>>;

}  // namespace kin

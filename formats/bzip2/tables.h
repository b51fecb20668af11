// Which code tables a block gets, and which of them each group of symbols.
#pragma once

#include "formats/bzip2/block.h"

namespace kin::formats::bzip2 {

// As bzip2 1.0.3 and later choose, to the bit. Pinned for ever: stored streams are rebuilt with it.
Tables choose_tables(const Symbols& symbols);

// For each group the table in which it takes the fewest bits, the first of several. What an encoder of
// another kind will mostly have chosen, given its tables.
std::vector<std::uint8_t> cheapest_selectors(const Tables& tables, const Symbols& symbols);

}  // namespace kin::formats::bzip2

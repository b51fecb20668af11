// The Burrows-Wheeler transform as bzip2 has it: the rotations of a block in order, of which the last column
// and the row of the block itself are kept.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>

namespace kin::formats::bzip2 {

struct Rotations {
  Bytes last_column;
  // The last of the rows that are the block. There are more only if the block is something repeated; which of
  // them bzip2 names depends on how it sorted, but it is hardly ever another.
  std::uint32_t origin = 0;
};

// The block is not empty.
Rotations sort_rotations(ByteView block);

// The block, from what may be anything; `origin` is below the column's size, and that below 2^24.
Bytes join_rotations(ByteView last_column, std::uint32_t origin);

}  // namespace kin::formats::bzip2

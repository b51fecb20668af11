// The stage between the sorted rotations and the codes: each byte becomes its place in a list, to whose front
// it moves. Runs of the byte in front become numbers, of two digits that mean 1 and 2.
#pragma once

#include "formats/bzip2/block.h"
#include "lib/base/result.h"

namespace kin::formats::bzip2 {

Symbols make_symbols(ByteView last_column);

// The last column. corrupt: longer than `most_bytes`, or empty. `symbols` has values below its alphabet, the
// last of which, and only that, is the end.
Result<Bytes> undo_symbols(const Symbols& symbols, std::size_t most_bytes);

}  // namespace kin::formats::bzip2

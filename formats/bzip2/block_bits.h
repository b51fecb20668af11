// A block as bits, behind its magic number.
#pragma once

#include "formats/bzip2/bit_reader.h"
#include "formats/bzip2/bit_writer.h"
#include "formats/bzip2/block.h"

namespace kin::formats::bzip2 {

void write_block(BitWriter& out, const BlockContent& block);

// corrupt: no block. unsupported: one of the kind that bzip2 0.9.0 scrambled. The origin is not compared with
// the block's size. Of what may be written in more than one way, nothing is kept: write what was read and
// compare.
Result<BlockContent> read_block(BitReader& in);

}  // namespace kin::formats::bzip2

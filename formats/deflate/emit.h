// Writes a block's bits.
#pragma once

#include "formats/deflate/bit_writer.h"
#include "formats/deflate/block.h"
#include "formats/deflate/huffman.h"
#include "lib/base/result.h"

#include <cstdint>

namespace kin::formats::deflate {

// `plain` and `used` are the block's. corrupt: a token's symbol has no code in the header.
Result<void> write_block(BitWriter& out, const Block& block, const Frequencies& used,
                         const std::uint8_t* plain);

}  // namespace kin::formats::deflate

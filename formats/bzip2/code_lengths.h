// Huffman code lengths as bzip2 1.0.3 and later make them, to the bit: which of two equal weights is taken
// first, and how frequencies are flattened until no code is too long. Pinned for ever: stored streams are
// rebuilt with it.
#pragma once

#include "formats/bzip2/block.h"

#include <span>

namespace kin::formats::bzip2 {

// For frequencies of up to kMostSymbols symbols, at least two, which add up to less than 2^23.
CodeLengths make_code_lengths(std::span<const std::uint32_t> frequencies);

// The code words, by symbol.
std::array<std::uint32_t, kMostSymbols> assign_codes(const CodeLengths& lengths, std::size_t alphabet);

}  // namespace kin::formats::bzip2

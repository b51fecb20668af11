// A table's code lengths as bits: the first in five, then each as steps up or down from the one before.
#pragma once

#include "formats/bzip2/bit_reader.h"
#include "formats/bzip2/bit_writer.h"
#include "formats/bzip2/block.h"

namespace kin::formats::bzip2 {

void write_lengths(BitWriter& out, const CodeLengths& lengths, std::size_t alphabet);

// False: not from 1 to kMostCodeBits, cut off, or more codes than there are.
bool read_lengths(BitReader& in, CodeLengths& lengths, std::size_t alphabet);

}  // namespace kin::formats::bzip2

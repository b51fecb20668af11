// CRC-32 as zlib and simhash(1) count it: reflected polynomial 0xEDB88320, begun and ended with all bits set.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>

namespace kin {

// What a byte does to a state of zero; all else follows from that.
const std::array<std::uint32_t, 256>& crc32_table();

// Of bytes that come in pieces: crc32(b, crc32(a)) is that of a and b together.
std::uint32_t crc32(ByteView bytes, std::uint32_t before = 0);

}  // namespace kin

// The two bytes in front of a zlib stream (RFC 1950).
#pragma once

#include "lib/base/bytes.h"

namespace kin::formats {

inline constexpr std::size_t kZlibHeaderBytes = 2;

// Deflate, the check bits right, and no dictionary that we do not have.
inline bool is_zlib_header(ByteView bytes) {
  return bytes.size() >= kZlibHeaderBytes && (bytes[0] & 0x0f) == 8 && (bytes[0] >> 4) <= 7 &&
         (bytes[1] & 0x20) == 0 && (bytes[0] * 256 + bytes[1]) % 31 == 0;
}

}  // namespace kin::formats

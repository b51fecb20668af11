// What stands around the blocks of a stream.
#pragma once

#include "formats/bzip2/bit_writer.h"
#include "formats/bzip2/block.h"

namespace kin::formats::bzip2 {

inline void write_magic(BitWriter& out, std::uint64_t magic) {
  out.put(static_cast<std::uint32_t>(magic >> 24), 24);
  out.put(static_cast<std::uint32_t>(magic & 0xffffff), 24);
}

inline void write_stream_start(BitWriter& out, std::size_t level) {
  for (const char byte : {'B', 'Z', 'h'}) out.put(static_cast<std::uint8_t>(byte), 8);
  out.put(static_cast<std::uint32_t>('0' + level), 8);
}

inline void write_stream_end(BitWriter& out, std::uint32_t crc) {
  write_magic(out, kEndMagic);
  out.put(crc, 32);
  out.to_byte_boundary();
}

}  // namespace kin::formats::bzip2

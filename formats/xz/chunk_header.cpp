#include "formats/xz/chunk_header.h"

#include "formats/fields.h"

namespace kin::formats::xz {

std::optional<ChunkHeader> parse_chunk_header(ByteView bytes) {
  if (bytes.empty()) return std::nullopt;
  ChunkHeader out;
  const std::uint8_t control = bytes[0];
  if (control == 0) {
    out.is_end = true;
    return out;
  }
  if (control < 0x80) {
    if (control > 2 || bytes.size() < 3) return std::nullopt;
    out.stored = true;
    out.resets_dictionary = control == 1;
    out.header_bytes = 3;
    out.encoded_bytes = out.plain_bytes = big_endian(bytes.subspan(1, 2)) + 1;
    return out;
  }
  const std::uint32_t reset = (control >> 5) & 3;
  out.header_bytes = reset >= 2 ? 6 : 5;
  if (bytes.size() < out.header_bytes) return std::nullopt;
  out.plain_bytes = (std::size_t{control & 0x1fU} << 16) + big_endian(bytes.subspan(1, 2)) + 1;
  out.encoded_bytes = big_endian(bytes.subspan(3, 2)) + 1;
  out.resets_state = reset >= 1;
  out.resets_dictionary = reset == 3;
  if (reset >= 2) out.properties = bytes[5];
  return out;
}

std::optional<ModelProperties> parse_properties(std::uint8_t byte) {
  if (byte > (4 * 5 + 4) * 9 + 8) return std::nullopt;
  ModelProperties out;
  out.literal_context_bits = byte % 9;
  out.literal_position_bits = byte / 9 % 5;
  out.position_bits = byte / 45;
  if (out.literal_context_bits + out.literal_position_bits > kMostLiteralBits) return std::nullopt;
  return out;
}

std::uint8_t properties_byte(const Settings& settings) {
  return static_cast<std::uint8_t>((settings.position_bits * 5 + settings.literal_position_bits) * 9 +
                                   settings.literal_context_bits);
}

}  // namespace kin::formats::xz

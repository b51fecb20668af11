// What stands in front of a chunk of LZMA2.
#pragma once

#include "formats/xz/lzma.h"

#include <optional>

namespace kin::formats::xz {

struct ChunkHeader {
  bool is_end = false;  // of all chunks, and nothing follows
  bool stored = false;
  bool resets_dictionary = false, resets_state = false;
  std::optional<std::uint8_t> properties;  // of the model, if they are there
  std::size_t header_bytes = 1;
  std::size_t encoded_bytes = 0, plain_bytes = 0;
};
inline constexpr std::size_t kMostChunkHeader = 6;

// Of up to kMostChunkHeader bytes, or as many as there are. Nothing: there is none.
std::optional<ChunkHeader> parse_chunk_header(ByteView bytes);

// lc, lp and pb. Nothing: no encoder of LZMA2 may write these.
struct ModelProperties {
  std::uint8_t literal_context_bits = 3, literal_position_bits = 0, position_bits = 2;
};
std::optional<ModelProperties> parse_properties(std::uint8_t byte);
std::uint8_t properties_byte(const Settings& settings);

}  // namespace kin::formats::xz

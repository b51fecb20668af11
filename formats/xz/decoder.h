// Decoder: chunks of LZMA2 to plain bytes. Only for opening: a rebuild never needs it. One thread at a time.
//
// Memory: the dictionary, as far as it is filled, half as much again, and a few chunks.
#pragma once

#include "formats/xz/chunk_header.h"
#include "formats/xz/model.h"
#include "lib/base/result.h"

namespace kin::formats::xz {

class Decoder {
 public:
  explicit Decoder(std::uint32_t dictionary_bytes) : dictionary_bytes_(dictionary_bytes) {}

  // The next chunk. What it gives is good until the next call. corrupt: it is no chunk, or not the next one.
  Result<ByteView> decode(const ChunkHeader& header, ByteView encoded);

 private:
  class Bits;

  void make_room(std::size_t plain_bytes);
  bool decode_lzma(ByteView encoded, std::size_t plain_bytes);
  bool decode_symbol(Bits& bits, std::size_t end);
  void decode_literal(Bits& bits);
  std::uint32_t decode_length(Bits& bits, LengthModel& lengths, std::uint32_t position_state);
  std::uint32_t decode_distance(Bits& bits, std::uint32_t length);
  bool copy(std::uint32_t length, std::size_t end);

  const std::uint32_t dictionary_bytes_;
  bool needs_dictionary_reset_ = true, needs_properties_ = true;
  Model model_;
  LiteralContext literal_context_;
  std::uint32_t position_mask_ = 0;
  State state_ = 0;
  std::array<std::uint32_t, kReps> reps_{};
  Bytes bytes_;
  std::size_t end_ = 0;         // of what was decoded
  std::size_t known_ = 0;       // how far back the dictionary goes
  std::uint64_t position_ = 0;  // since it was reset
};

}  // namespace kin::formats::xz

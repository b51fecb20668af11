// What stands before the coded part of a reconstruction.
#pragma once

#include "formats/deflate/parameters.h"
#include "lib/base/result.h"
#include "lib/base/wire.h"

#include <cstdint>
#include <optional>

namespace kin::formats::deflate {

// Changes with anything that makes the same bytes mean another stream: predictors, models, trees.
inline constexpr std::uint8_t kVersion = 1;
// So that a few bytes cannot ask for blocks without end.
inline constexpr std::uint64_t kMostBlocks = 65536;
// What a predictor may look at beyond the last token of a piece, so it must be part of the piece: a match of
// 258 at the place after the next, and what is hashed there.
inline constexpr std::size_t kLookAhead = 512;
// Writer and reader take no more than this for a piece.
inline constexpr std::uint64_t kMostPiecePlain = std::uint64_t{40} << 20;
inline constexpr std::uint64_t kMostPieceReconstruction = std::uint64_t{64} << 20;

struct PieceHeader {
  bool last = false;
  std::uint64_t blocks = 0;
  // Where they differ from the piece before; or the same again, where the predictor has to start anew.
  std::optional<Parameters> parameters;
};

inline void encode_piece_header(WireWriter& out, const PieceHeader& header) {
  out.u8(kVersion);
  out.varint(header.blocks << 2 | (header.parameters ? 2U : 0U) | (header.last ? 1U : 0U));
  if (header.parameters) encode_parameters(out, *header.parameters);
}

inline Result<PieceHeader> decode_piece_header(WireReader& in) {
  PieceHeader out;
  if (in.left() > 0 && in.u8() != kVersion)
    return Error(ErrorCode::unsupported, "deflate: a reconstruction of another version");
  const std::uint64_t word = in.varint();
  out.last = (word & 1) != 0;
  out.blocks = word >> 2;
  if ((word & 2) != 0) out.parameters = decode_parameters(in);
  if (in.failed() || out.blocks > kMostBlocks)
    return Error(ErrorCode::corrupt, "deflate: not a reconstruction");
  return out;
}

}  // namespace kin::formats::deflate

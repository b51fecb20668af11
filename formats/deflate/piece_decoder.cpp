#include "formats/deflate/piece_decoder.h"

#include "formats/deflate/emit.h"
#include "formats/deflate/piece_header.h"

namespace kin::formats::deflate {

Result<Bytes> PieceDecoder::add(ByteView plain, ByteView reconstruction) {
  const Error corrupt(ErrorCode::corrupt, "deflate: the reconstruction does not fit the plain bytes");
  if (plain.size() > (std::size_t{1} << 30)) return corrupt;
  WireReader in(reconstruction);
  KIN_TRY_ASSIGN(const PieceHeader header, decode_piece_header(in));
  codec_.add_plain(plain);
  if (header.parameters)
    codec_.set_parameters(*header.parameters);
  else if (!started_)
    return corrupt;
  started_ = true;

  RangeDecoder decoder(in.raw(in.left()));
  bool final = false;
  for (std::uint64_t i = 0; i < header.blocks; ++i) {
    if (final) return corrupt;
    Block block;
    Frequencies used;
    const std::uint32_t start = codec_.window().position();
    if (!codec_.code_block(decoder, block, out_.bits_in_last_byte(), header.last, used)) return corrupt;
    KIN_TRY(write_block(out_, block, used, codec_.window().at(start)));
    final = block.final;
  }
  if (header.last != final) return corrupt;
  // What is left over would pile up, piece by piece.
  if (!header.last && codec_.window().left() > kLookAhead) return corrupt;
  if (!header.last) return out_.take();
  if (codec_.window().left() != 0) return corrupt;
  const std::uint32_t bits = (8 - out_.bits_in_last_byte()) % 8;
  out_.put(codec_.code_padding(decoder, bits, 0) & ((1U << bits) - 1), bits);
  finished_ = true;
  return out_.take();
}

}  // namespace kin::formats::deflate

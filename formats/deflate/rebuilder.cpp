#include "formats/deflate/rebuilder.h"

#include "formats/deflate/bit_writer.h"
#include "formats/deflate/emit.h"
#include "formats/deflate/piece_header.h"
#include "formats/deflate/stream_codec.h"

namespace kin::formats::deflate {

struct Rebuilder::State {
  StreamCodec codec;
  BitWriter out;
  bool started = false, finished = false, failed = false;

  Result<void> add(ByteView plain, ByteView reconstruction);
};

Rebuilder::Rebuilder() : state_(std::make_unique<State>()) {}
Rebuilder::~Rebuilder() = default;

bool Rebuilder::finished() const { return state_->finished; }

Result<Bytes> Rebuilder::add(ByteView plain, ByteView reconstruction) {
  if (state_->failed || state_->finished)
    return Error(ErrorCode::invalid_argument, "deflate: a piece after the last");
  auto added = state_->add(plain, reconstruction);
  state_->failed = !added;
  if (!added) return std::move(added).error();
  return state_->out.take();
}

Result<void> Rebuilder::State::add(ByteView plain, ByteView reconstruction) {
  const Error corrupt(ErrorCode::corrupt, "deflate: the reconstruction does not fit the plain bytes");
  if (plain.size() > (std::size_t{1} << 30)) return corrupt;
  WireReader in(reconstruction);
  KIN_TRY_ASSIGN(const PieceHeader header, decode_piece_header(in));
  codec.add_plain(plain);
  if (header.parameters)
    codec.set_parameters(*header.parameters);
  else if (!started)
    return corrupt;
  started = true;

  RangeDecoder decoder(in.raw(in.left()));
  bool final = false;
  for (std::uint64_t i = 0; i < header.blocks; ++i) {
    if (final) return corrupt;
    Block block;
    Frequencies used;
    const std::uint32_t start = codec.window().position();
    if (!codec.code_block(decoder, block, out.bits_in_last_byte(), header.last, used)) return corrupt;
    KIN_TRY(write_block(out, block, used, codec.window().at(start)));
    final = block.final;
  }
  if (header.last != final) return corrupt;
  if (!header.last) return {};
  if (codec.window().left() != 0) return corrupt;
  const std::uint32_t bits = (8 - out.bits_in_last_byte()) % 8;
  out.put(codec.code_padding(decoder, bits, 0) & ((1U << bits) - 1), bits);
  finished = true;
  return {};
}

}  // namespace kin::formats::deflate

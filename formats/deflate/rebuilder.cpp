#include "formats/deflate/rebuilder.h"

#include "formats/deflate/piece_decoder.h"

namespace kin::formats::deflate {

struct Rebuilder::State {
  PieceDecoder decoder;
  bool failed = false;
};

Rebuilder::Rebuilder() : state_(std::make_unique<State>()) {}
Rebuilder::~Rebuilder() = default;

bool Rebuilder::finished() const { return state_->decoder.finished(); }

Result<Bytes> Rebuilder::add(ByteView plain, ByteView reconstruction) {
  if (state_->failed || finished())
    return Error(ErrorCode::invalid_argument, "deflate: a piece after the last");
  auto bytes = state_->decoder.add(plain, reconstruction);
  state_->failed = !bytes;
  return bytes;
}

}  // namespace kin::formats::deflate

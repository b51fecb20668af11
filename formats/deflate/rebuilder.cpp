#include "formats/deflate/rebuilder.h"

#include "formats/deflate/piece_decoder.h"

namespace kin::formats::deflate {

struct Rebuilder::State {
  SearchBudget* const search;
  SearchWork work = {};
  PieceDecoder decoder{work};
  bool failed = false;
};

Rebuilder::Rebuilder(SearchBudget* search) : state_(new State{search}) {}
Rebuilder::~Rebuilder() = default;

bool Rebuilder::finished() const { return state_->decoder.finished(); }

Result<Bytes> Rebuilder::add(ByteView plain, ByteView reconstruction) {
  if (state_->failed || finished())
    return Error(ErrorCode::invalid_argument, "deflate: a piece after the last");
  SearchBudget* const search = state_->search;
  SearchWork& work = state_->work;
  const std::uint64_t before = work.steps;
  if (search != nullptr) work.most = before + search->left();
  auto bytes = state_->decoder.add(plain, reconstruction);
  if (search != nullptr) search->spend(work.steps - before);
  state_->failed = !bytes;
  if (work.is_spent()) return takes_too_long();
  return bytes;
}

}  // namespace kin::formats::deflate

// Rebuilder: the other half of Opener. The pieces in order give back the stream's bytes, in order. One thread
// at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/container/search_budget.h"

#include <memory>

namespace kin::formats::deflate {

class Rebuilder {
 public:
  // `search`, if given, is what it may take, and must outlive this; unsupported once it is spent.
  explicit Rebuilder(SearchBudget* search = nullptr);
  ~Rebuilder();

  // The stream's bytes as far as they are known now. corrupt: these are not a piece that an Opener made, or
  // not in order. Damage is not always noticed; whoever keeps pieces must know a hash of the stream. What
  // comes out is bounded by a small multiple of what goes in. unsupported: made by a later version.
  Result<Bytes> add(ByteView plain, ByteView reconstruction);
  // Whether the last piece was added.
  bool finished() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin::formats::deflate

// PieceDecoder: what Rebuilder does. An opener gives it the record of its predictions to check a piece by.
#pragma once

#include "formats/deflate/bit_writer.h"
#include "formats/deflate/recorded_predictor.h"
#include "formats/deflate/stream_codec.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace kin::formats::deflate {

class PieceDecoder {
 public:
  // What is spent of the work makes a piece corrupt. It must outlive this.
  explicit PieceDecoder(SearchWork& work) : codec_(work) {}
  PieceDecoder(SearchWork& work, PredictionRecord& replayed) : codec_(work, replayed, true) {}

  Result<Bytes> add(ByteView plain, ByteView reconstruction);
  bool finished() const { return finished_; }

  // As it was, but the next piece must have parameters.
  struct Saved {
    StreamState codec;
    BitWriter out;
  };
  Saved save() const { return {codec_.save(), out_}; }
  void restore(Saved saved) {
    codec_.restore(std::move(saved.codec));
    out_ = std::move(saved.out);
    finished_ = false;
  }

 private:
  StreamCodec codec_;
  BitWriter out_;
  bool started_ = false, finished_ = false;
};

}  // namespace kin::formats::deflate

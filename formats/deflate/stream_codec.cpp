#include "formats/deflate/stream_codec.h"

namespace kin::formats::deflate {

void StreamCodec::add_plain(ByteView plain) {
  const std::uint32_t dropped = window_.add(plain);
  if (predictor_) predictor_->set_bytes(window_.bytes(), dropped);
}

void StreamCodec::set_parameters(const Parameters& parameters) {
  Parameters same_search = parameters_;
  same_search.rule = parameters.rule;
  same_search.block_log = parameters.block_log;
  if (!predictor_ || same_search != parameters) {
    predictor_.reset();
    // Not to lean on forget(): an opener and its rebuilder must know the same.
    tables_ = SearchTables(window_.left());
    if (replays_)
      predictor_ = std::make_unique<ReplayedPredictor>(*record_);
    else
      predictor_ = Predictor::make(parameters, window_.position(), tables_);
    if (record_ != nullptr && !replays_)
      predictor_ = std::make_unique<RecordingPredictor>(std::move(predictor_), *record_);
    predictor_->set_bytes(window_.bytes(), 0);
    if (window_.position() > kFirstPosition) predictor_->restart(window_.position());
  }
  parameters_ = parameters;
}

void StreamCodec::expect_tokens(const Parameters& parameters, std::span<const Block> blocks,
                                PredictionRecord& record) {
  std::uint32_t at = window_.position();
  for (const Block& block : blocks)
    for (const Token token : block.tokens) {
      record.answers.push_back({at, token, {}});
      at += token.length;
    }
  predictor_ = std::make_unique<ReplayedPredictor>(record);
  parameters_ = parameters;
}

}  // namespace kin::formats::deflate

#include "formats/deflate/stream_codec.h"

namespace kin::formats::deflate {

void StreamCodec::add_plain(ByteView plain) {
  const std::uint32_t dropped = window_.add(plain);
  if (predictor_) predictor_->set_bytes(window_.bytes(), dropped);
}

void StreamCodec::set_parameters(const Parameters& parameters) {
  const bool goes_on = predictor_ && parameters.same_search(parameters_) && parameters != parameters_;
  parameters_ = parameters;
  if (goes_on) return;
  predictor_.reset();
  follower_.reset();
  // Not to lean on forget(): an opener and its rebuilder must know the same.
  tables_ = SearchTables(window_.left());
  if (replays_)
    predictor_ = std::make_unique<ReplayedPredictor>(*record_);
  else
    predictor_ = Predictor::make(parameters, window_.position(), tables_, work_);
  if (record_ != nullptr && !replays_)
    predictor_ = std::make_unique<RecordingPredictor>(std::move(predictor_), *record_);
  predictor_->set_bytes(window_.bytes(), 0);
  if (window_.position() > kFirstPosition) predictor_->restart(window_.position());
}

void StreamCodec::expect_tokens(const Parameters& parameters, std::span<const Block> blocks,
                                PredictionRecord& record) {
  record.clear();
  std::uint32_t at = window_.position();
  for (const Block& block : blocks)
    for (const Token token : block.tokens) {
      record.answers.push_back({at, token, {}});
      at += token.length;
    }
  if (parameters.parser == Parser::greedy) follower_ = std::move(predictor_);
  predictor_ = std::make_unique<ReplayedPredictor>(record, follower_.get());
  parameters_ = parameters;
}

void StreamCodec::stop_expecting() { predictor_ = std::move(follower_); }

}  // namespace kin::formats::deflate

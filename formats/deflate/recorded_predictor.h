// What a predictor answered, to be given once more without searching again.
//
// An opener decodes each piece and compares what comes out before it hands the piece on. A second search for
// every match takes as long as all the rest, so where a rebuilder will prove the stream later anyway, the
// answers of the first are given again: a Predictor is deterministic, and is asked the same questions about
// the same bytes in the same order, which is what ReplayedPredictor checks. All else is done for real: range
// decoder, corrections, headers, bits.
//
// Answers may also be what an encoder is expected to say, without a predictor having been asked: then a
// decoder with one of its own has to prove it (StreamCodec::expect_tokens).
#pragma once

#include "formats/deflate/predictor.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kin::formats::deflate {

struct PredictionRecord {
  struct Answer {
    std::uint32_t at = 0;
    Token predicted, instead;
  };
  std::vector<Answer> answers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hops;  // and the distance
  std::size_t next_answer = 0, next_hops = 0;

  void clear() {  // and keeps the memory for the next piece
    answers.clear();
    hops.clear();
    rewind();
  }
  void rewind() { next_answer = next_hops = 0; }
};

class RecordingPredictor final : public Predictor {
 public:
  RecordingPredictor(std::unique_ptr<Predictor> real, PredictionRecord& record)
      : real_(std::move(real)), record_(record) {}

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override {
    real_->set_bytes(bytes, dropped);
  }
  void begin_block(std::uint32_t at, std::uint32_t end, ByteView lit_len, ByteView distance) override {
    real_->begin_block(at, end, lit_len, distance);
  }
  Token predict(std::uint32_t at, std::uint32_t limit) override {
    const Token predicted = real_->predict(at, limit);
    record_.answers.push_back({at, predicted, real_->match_instead()});
    return predicted;
  }
  Token match_instead() const override { return real_->match_instead(); }
  void advance(std::uint32_t at, Token token) override { real_->advance(at, token); }
  std::optional<std::uint32_t> hops_to(std::uint32_t at, std::uint32_t length,
                                       std::uint32_t distance) override {
    const auto hops = real_->hops_to(at, length, distance);
    if (hops) record_.hops.emplace_back(*hops, distance);
    return hops;
  }
  std::optional<std::uint32_t> distance_of(std::uint32_t at, std::uint32_t length,
                                           std::uint32_t hops) override {
    return real_->distance_of(at, length, hops);
  }
  void flushed(std::uint32_t at) override { real_->flushed(at); }
  void restart(std::uint32_t at) override { real_->restart(at); }

 private:
  std::unique_ptr<Predictor> real_;
  PredictionRecord& record_;
};

// `follower`, if given, is told what happens, and not asked: so it can be later. It must outlive this.
class ReplayedPredictor final : public Predictor {
 public:
  explicit ReplayedPredictor(PredictionRecord& record, Predictor* follower = nullptr)
      : record_(record), follower_(follower) {}

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override {
    if (follower_ != nullptr) follower_->set_bytes(bytes, dropped);
  }
  void begin_block(std::uint32_t, std::uint32_t, ByteView, ByteView) override {}
  // A question that was not asked gets an answer that fits nothing.
  Token predict(std::uint32_t at, std::uint32_t) override {
    if (record_.next_answer == record_.answers.size() || record_.answers[record_.next_answer].at != at)
      return answer_ = {}, Token{0, 0};
    const PredictionRecord::Answer& answer = record_.answers[record_.next_answer++];
    answer_ = answer.instead;
    return answer.predicted;
  }
  Token match_instead() const override { return answer_; }
  void advance(std::uint32_t at, Token token) override {
    if (follower_ != nullptr) follower_->advance(at, token);
  }
  std::optional<std::uint32_t> hops_to(std::uint32_t, std::uint32_t, std::uint32_t) override {
    return std::nullopt;  // asked only where a prediction is wrong, and by an encoder
  }
  std::optional<std::uint32_t> distance_of(std::uint32_t, std::uint32_t, std::uint32_t hops) override {
    if (record_.next_hops == record_.hops.size() || record_.hops[record_.next_hops].first != hops)
      return std::nullopt;
    return record_.hops[record_.next_hops++].second;
  }
  void flushed(std::uint32_t at) override {
    if (follower_ != nullptr) follower_->flushed(at);
  }
  void restart(std::uint32_t) override {}

 private:
  PredictionRecord& record_;
  Predictor* const follower_;
  Token answer_;
};

}  // namespace kin::formats::deflate

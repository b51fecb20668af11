#include "formats/xz/block_proof.h"

#include "formats/xz/match_finder.h"
#include "formats/xz/presets.h"

#include <algorithm>

namespace kin::formats::xz {
namespace {

// Where two settings make the same of this much, they seldom differ later.
constexpr std::size_t kTrialBytes = 1U << 20;
// For a guess, which is proven later and given up if it was wrong.
constexpr std::size_t kGuessBytes = 128U << 10;
// How much is encoded between two looks at what came out: wrong settings fail early.
constexpr std::size_t kFirstTrialStep = 8U << 10, kMostTrialStep = 64U << 10;
// And between two looks at the budget.
constexpr std::size_t kSliceBytes = 32U << 10;

Error unlike_xz() { return Error(ErrorCode::unsupported, "xz: not as any known encoder writes it"); }
Error too_long() { return Error(ErrorCode::unsupported, "xz: takes too long to compress again"); }
Error too_large() { return Error(ErrorCode::unsupported, "xz: takes too much memory to compress again"); }

}  // namespace

BlockProof::BlockProof(std::uint32_t dictionary_bytes, const std::optional<Settings>& previous, bool guess,
                       std::uint64_t most_table_bytes, SearchBudget* budget)
    : guess_(guess), most_table_bytes_(most_table_bytes), budget_(budget), previous_(previous) {
  known_.dictionary_bytes = dictionary_bytes;
}

Result<void> BlockProof::add(const ChunkHeader& header, ByteView chunk, ByteView plain) {
  if (plain_bytes_ == 0) first_is_stored_ = header.stored;
  plain_bytes_ += plain.size();
  if (!settings_) {
    if (table_bytes(known_, plain_bytes_) > most_table_bytes_) return too_large();
    if (header.properties && !has_properties_) {
      has_properties_ = true;
      if (const auto properties = parse_properties(*header.properties)) {
        known_.literal_context_bits = properties->literal_context_bits;
        known_.literal_position_bits = properties->literal_position_bits;
        known_.position_bits = properties->position_bits;
      }
    }
    append(expected_, chunk);
    append(trial_, plain);
    return trial_.size() < (guess_ ? kGuessBytes : kTrialBytes) ? Result<void>() : choose(false);
  }
  if (table_bytes(*settings_, plain_bytes_) > most_table_bytes_) return too_large();
  if (encoder_ == nullptr) {
    proven_bytes_ = plain_bytes_;
    return {};
  }
  append(expected_, chunk);
  while (!plain.empty()) {
    const std::size_t size = std::min(plain.size(), kSliceBytes);
    encoder_->add(plain.first(size));
    plain = plain.subspan(size);
    KIN_TRY(spend());
  }
  KIN_TRY(compare());
  proven_bytes_ = encoder_->finished_plain_bytes();
  return {};
}

Result<void> BlockProof::finish() {
  expected_.push_back(0);
  if (!settings_) {
    KIN_TRY(choose(true));
  } else if (encoder_ != nullptr) {
    encoder_->finish();
    KIN_TRY(compare());
    KIN_TRY(spend());
    if (expected_at_ != expected_.size()) return unlike_xz();
  }
  proven_bytes_ = plain_bytes_;
  encoder_.reset();
  return {};
}

// The first settings that give what is there.
Result<void> BlockProof::choose(bool ended) {
  std::vector<Settings> candidates = likely_settings(known_);
  if (first_is_stored_) {
    Settings stored = known_;
    stored.stored = true;
    candidates.insert(candidates.begin(), stored);
  }
  if (previous_ && !previous_->stored) {
    Settings again = *previous_;
    again.dictionary_bytes = known_.dictionary_bytes;
    candidates.insert(candidates.begin(), again);
  }
  for (const Settings& candidate : candidates) {
    steps_ = 0;
    if (budget_ != nullptr) budget_->spend(kStepsOfEncoder);
    encoder_.reset();
    KIN_TRY_ASSIGN(encoder_, make_block_encoder(candidate));
    KIN_TRY_ASSIGN(const bool good, fits(candidate, ended));
    KIN_TRY(spend());
    if (!good) continue;
    settings_ = candidate;
    Bytes().swap(trial_);
    if (guess_) encoder_.reset();
    proven_bytes_ = guess_ ? plain_bytes_ : encoder_->finished_plain_bytes();
    return {};
  }
  return unlike_xz();
}

// What an encoder gives for the trial, up to the last byte that it is sure of. If it has ended, all of it.
Result<bool> BlockProof::fits(const Settings& settings, bool ended) {
  expected_at_ = 0;
  std::size_t step = kFirstTrialStep;
  const ByteView trial =
      ByteView(trial_).first(guess_ ? std::min(trial_.size(), kGuessBytes) : trial_.size());
  for (ByteView rest = trial; !rest.empty(); step = std::min(2 * step, kMostTrialStep)) {
    const std::size_t size = std::min(step, rest.size());
    encoder_->add(rest.first(size));
    rest = rest.subspan(size);
    KIN_TRY(spend());
    if (!compare()) return false;
    const ByteView expected = ByteView(expected_).subspan(expected_at_);
    const auto header = parse_chunk_header(expected.first(std::min(expected.size(), kMostChunkHeader)));
    if (!header || header->stored || settings.stored) continue;
    const ByteView sure = encoder_->unfinished();
    const ByteView payload = expected.subspan(header->header_bytes);
    if (sure.size() > payload.size() || !equal(sure, payload.first(sure.size()))) return false;
  }
  if (!ended || trial.size() < trial_.size()) return true;
  encoder_->finish();
  return compare() && expected_at_ == expected_.size();
}

// What the encoder has finished, with what stands there.
Result<void> BlockProof::compare() {
  const Bytes chunks = encoder_->take();
  const ByteView expected = ByteView(expected_).subspan(expected_at_);
  if (chunks.size() > expected.size() || !equal(chunks, expected.first(chunks.size()))) return unlike_xz();
  expected_at_ += chunks.size();
  if (settings_ && expected_at_ > expected_.size() / 2) {
    expected_.erase(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(expected_at_));
    expected_at_ = 0;
  }
  return {};
}

Result<void> BlockProof::spend() {
  if (budget_ == nullptr || encoder_ == nullptr) return {};
  budget_->spend(encoder_->steps() - std::exchange(steps_, encoder_->steps()));
  return budget_->left() == 0 ? Result<void>(too_long()) : Result<void>();
}

}  // namespace kin::formats::xz

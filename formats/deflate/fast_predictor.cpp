#include "formats/deflate/fast_predictor.h"

#include "formats/deflate/same_bytes.h"

#include <algorithm>
#include <utility>

namespace kin::formats::deflate {
namespace {

constexpr std::int32_t kNoPlace = -(1 << 30);
constexpr std::uint32_t kMargin = 15;       // bytes at a block's end where it does not look
constexpr std::uint32_t kLeastBlock = 128;  // shorter ones are written without a search
constexpr std::uint32_t kFirstSkip = 32;

}  // namespace

FastPredictor::FastPredictor(std::uint32_t hash_bits)
    : hash_(hash_bits), places_(std::size_t{1} << hash_bits, kNoPlace) {}

void FastPredictor::set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) {
  bytes_ = bytes;
  if (dropped == 0) return;
  for (std::int32_t& place : places_) place = std::max(place - static_cast<std::int32_t>(dropped), kNoPlace);
  limit_ -= std::min(limit_, dropped);
  next_ -= std::min(next_, dropped);
}

void FastPredictor::forget() { std::fill(places_.begin(), places_.end(), kNoPlace); }

std::int32_t FastPredictor::replace(std::uint32_t at) {
  return std::exchange(places_[hash_(bytes_ + at)], static_cast<std::int32_t>(at));
}

void FastPredictor::start_block(std::uint32_t at, std::uint32_t limit) {
  limit_ = limit;
  after_match_ = false;
  skip_ = kFirstSkip;
  next_ = at;
  if (limit - at >= kLeastBlock) return;
  forget();
  next_ = 0;
}

bool FastPredictor::looks_at(std::uint32_t at) {
  if (at != next_) return false;
  const std::uint32_t last = limit_ - std::min(limit_, kMargin);
  next_ = 0;
  if (std::exchange(after_match_, false)) {
    if (at >= last) return false;
    replace(at - 1);
    skip_ = kFirstSkip;
    next_ = at + 1;
    return true;
  }
  const std::uint32_t step = skip_ / kFirstSkip;
  skip_ += step;
  if (at + step > last) return false;
  next_ = at + step;
  return true;
}

Token FastPredictor::predict(std::uint32_t at, std::uint32_t limit) {
  found_ = {};
  if (at >= limit) return {};
  if (limit != limit_) start_block(at, limit);
  if (!looks_at(at)) return {};
  const std::int32_t candidate = replace(at);
  const std::int32_t distance = static_cast<std::int32_t>(at) - candidate;
  if (distance > static_cast<std::int32_t>(kMostDistance) ||
      load32(bytes_ + candidate) != load32(bytes_ + at))
    return {};
  const std::uint32_t length = same_bytes(bytes_ + at, bytes_ + candidate, std::min(kMostMatch, limit - at));
  found_ = {static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(distance)};
  return found_;
}

void FastPredictor::advance(std::uint32_t at, Token token) {
  if (token.is_literal()) return;
  after_match_ = true;
  next_ = at + token.length;
}

std::optional<std::uint32_t> FastPredictor::hops_to(std::uint32_t, std::uint32_t, std::uint32_t distance) {
  if (found_.is_literal() || found_.distance != distance) return std::nullopt;
  return 0;
}

std::optional<std::uint32_t> FastPredictor::distance_of(std::uint32_t, std::uint32_t, std::uint32_t hops) {
  if (found_.is_literal() || hops != 0) return std::nullopt;
  return found_.distance;
}

void FastPredictor::restart(std::uint32_t at) {
  forget();
  limit_ = 0;
  const std::uint32_t from = at > kMostDistance + kFirstPosition ? at - kMostDistance : kFirstPosition;
  for (std::uint32_t i = from; i < at; ++i) replace(i);
}

}  // namespace kin::formats::deflate

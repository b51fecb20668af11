#include "formats/deflate/optimal_predictor.h"

#include "formats/deflate/hash_functions.h"
#include "formats/deflate/same_bytes.h"

#include <algorithm>
#include <array>

namespace kin::formats::deflate {
namespace {

constexpr std::uint32_t kHashBits = 16;
constexpr std::int32_t kNowhere = -(1 << 30);
constexpr std::int32_t kTooFar = 0xffff;
constexpr std::uint32_t kMostSteps = 4096;
// So much of a block at a time, and some more to see where the way leads; so memory is bounded.
constexpr std::uint32_t kSegment = 256 << 10;
constexpr std::uint32_t kBeyond = 4096;
constexpr std::size_t kMostMatches = 24;   // of one place
constexpr std::uint32_t kNever = 1 << 20;  // the price of what has no code

std::uint32_t price(ByteView lengths, std::size_t symbol) {
  return symbol < lengths.size() && lengths[symbol] != 0 ? lengths[symbol] : kNever;
}

}  // namespace

OptimalPredictor::OptimalPredictor(std::uint32_t chain, std::uint32_t first, SearchWork& work)
    : chain_(chain), work_(work), heads_(std::size_t{1} << kHashBits, kNowhere), inserted_(first) {}

void OptimalPredictor::set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) {
  bytes_ = bytes;
  if (dropped == 0) return;
  for (std::int32_t& head : heads_) head = std::max(head - static_cast<std::int32_t>(dropped), kNowhere);
  steps_.erase(steps_.begin(), steps_.begin() + std::min<std::ptrdiff_t>(dropped, std::ssize(steps_)));
  inserted_ -= std::min(inserted_, dropped);
  start_ = known_ = end_ = 0;  // the next block will tell
}

void OptimalPredictor::insert_until(std::uint32_t end) {
  const MultipliedHash<false> hash(kHashBits);
  if (steps_.size() < end) steps_.resize(end);
  for (; inserted_ < end; ++inserted_) {
    std::int32_t& head = heads_[hash(bytes_ + inserted_)];
    const auto place = static_cast<std::int32_t>(inserted_);
    steps_[inserted_] = static_cast<std::uint16_t>(std::min(place - head, kTooFar));
    head = place;
  }
}

template <class Each>
void OptimalPredictor::walk(std::uint32_t at, std::uint32_t most_steps, const Each& each) const {
  std::uint32_t distance = 0, place = at, i = 0;
  for (; i < most_steps; ++i) {
    const std::uint32_t step = steps_[place];
    distance += step;
    if (distance > kMostDistance || step > place) break;
    place -= step;
    if (!each(place, distance)) break;
  }
  work_.steps += i;
}

std::uint32_t OptimalPredictor::compare(std::uint32_t at, std::uint32_t place, std::uint32_t most) const {
  const std::uint32_t length = same_bytes(bytes_ + at, bytes_ + place, most);
  work_.steps += length / 8;
  return length;
}

void OptimalPredictor::find_matches(std::uint32_t at, std::uint32_t end) {
  matches_.clear();
  first_match_.clear();
  for (; at < end; ++at) {
    first_match_.push_back(static_cast<std::uint32_t>(matches_.size()));
    const std::uint32_t most = std::min(kMostMatch, end - at);
    std::uint32_t best = kLeastMatch - 1;
    if (most < kLeastMatch || work_.is_spent()) continue;
    walk(at, chain_, [&](std::uint32_t place, std::uint32_t distance) {
      if (bytes_[place + best] != bytes_[at + best]) return true;
      const std::uint32_t length = compare(at, place, most);
      if (length > best) {
        best = length;
        if (matches_.size() - first_match_.back() == kMostMatches) matches_.pop_back();
        matches_.push_back({static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(distance)});
      }
      return best < most;
    });
    work_.steps += best;  // prices to compare
  }
  first_match_.push_back(static_cast<std::uint32_t>(matches_.size()));
}

void OptimalPredictor::begin_block(std::uint32_t at, std::uint32_t end, ByteView lit_len, ByteView distance) {
  for (std::size_t i = 0; i < literal_price_.size(); ++i) literal_price_[i] = price(lit_len, i);
  for (std::uint32_t i = kLeastMatch; i <= kMostMatch; ++i)
    length_price_[i] = price(lit_len, 257 + length_index(i)) + kLengthCodes[length_index(i)].extra_bits;
  for (std::uint32_t i = 0; i < kDistanceSymbols; ++i)
    distance_price_[i] = price(distance, i) + kDistanceCodes[i].extra_bits;
  start_ = known_ = at;
  end_ = end;
}

void OptimalPredictor::choose(std::uint32_t at) {
  const std::uint32_t end = std::min(end_, at + kSegment + kBeyond);
  insert_until(end);
  find_matches(at, end);
  const std::size_t size = end - at;
  start_ = at;
  known_ = end == end_ ? end : at + kSegment;
  choices_.assign(size, {});
  cost_.assign(size + 1, 0);
  for (std::size_t i = size; i-- > 0;) {
    std::uint64_t best_match = UINT64_MAX;
    Choice& choice = choices_[i];
    std::uint32_t length = kLeastMatch;
    for (std::uint32_t m = first_match_[i]; m < first_match_[i + 1]; ++m) {
      const Token match = matches_[m];
      const std::uint64_t far = distance_price_[distance_symbol(match.distance)];
      for (; length <= match.length; ++length) {
        const std::uint64_t total = far + length_price_[length] + cost_[i + length];
        if (total <= best_match) {  // of equal ones, the longest
          best_match = total;
          choice.match = {static_cast<std::uint16_t>(length), match.distance};
        }
      }
    }
    const std::uint64_t literal = literal_price_[bytes_[at + i]] + cost_[i + 1];
    cost_[i] = std::min(literal, best_match);
    if (best_match <= literal) choice.best = choice.match;
  }
}

Token OptimalPredictor::predict(std::uint32_t at, std::uint32_t limit) {
  instead_ = {};
  if (at >= end_ || at < start_) return {};
  if (at >= known_) choose(at);
  const Choice& choice = choices_[at - start_];
  instead_ = choice.match;
  return choice.best.length > limit - at ? Token{} : choice.best;
}

std::optional<std::uint32_t> OptimalPredictor::hops_to(std::uint32_t at, std::uint32_t length,
                                                       std::uint32_t distance) {
  std::optional<std::uint32_t> out;
  std::uint32_t hops = 0;
  if (at >= steps_.size()) return out;
  walk(at, kMostSteps, [&](std::uint32_t place, std::uint32_t here) {
    if (here == distance) out = hops;
    if (compare(at, place, length) == length) ++hops;
    return here < distance;
  });
  return out;
}

std::optional<std::uint32_t> OptimalPredictor::distance_of(std::uint32_t at, std::uint32_t length,
                                                           std::uint32_t wanted) {
  std::optional<std::uint32_t> out;
  std::uint32_t hops = 0;
  if (at >= steps_.size()) return out;
  walk(at, kMostSteps, [&](std::uint32_t place, std::uint32_t here) {
    if (compare(at, place, length) != length) return true;
    if (hops++ == wanted) out = here;
    return !out.has_value();
  });
  return out;
}

void OptimalPredictor::restart(std::uint32_t at) {
  std::fill(heads_.begin(), heads_.end(), kNowhere);
  inserted_ = at > kMostDistance + kFirstPosition ? at - kMostDistance : kFirstPosition;
  insert_until(at);
}

}  // namespace kin::formats::deflate

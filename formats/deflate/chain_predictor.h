// ChainPredictor: the parsers that look for matches along chains of places with the same hash, the newest
// first: zlib's deflate_fast and deflate_slow, and those of its many relatives.
//
// As zlib it keeps, for each place, the one before it in the chain, here as a distance of 16 bits: those do
// not change when the buffer moves (see ChainTables). What zlib does at the end of its input follows from
// `limit`. Not modelled: that the first byte of each 32 KiB of zlib's window is sometimes not found at the
// largest distance, since that depends on how the input was handed over. That costs a correction.
#pragma once

#include "formats/deflate/chain_tables.h"
#include "formats/deflate/hash_functions.h"
#include "formats/deflate/predictor.h"
#include "formats/deflate/same_bytes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace kin::formats::deflate {

template <class Hash>
class ChainPredictor final : public Predictor {
 public:
  ChainPredictor(const Parameters& parameters, std::uint32_t first, ChainTables& tables)
      : parameters_(parameters),
        hash_(parameters.hash_bits),
        tables_(tables),
        next_(parameters.zlib_window ? first + 1 : first) {
    tables_.start(parameters.hash_bits, parameters.zlib_window ? kSmallRing : 2 * kSmallRing);
    const std::int32_t window = 1 << parameters.window_bits;
    first_reach_ = parameters.zlib_window ? window - 262 : window;
    reach_ = parameters.zlib_window ? window - 263 : window;
  }

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override {
    bytes_ = bytes;
    if (dropped == 0) return;
    tables_.drop(dropped);
    next_ -= std::min(next_, dropped);
    pending_at_ -= std::min(pending_at_, dropped);
  }

  void begin_block(std::uint32_t, std::uint32_t, ByteView, ByteView) override {}

  Token predict(std::uint32_t at, std::uint32_t limit) override {
    deferred_ = false;
    if (parameters_.parser == Parser::greedy) {
      found_ = accepted(search(at, 2, parameters_.chain, limit));
      return found_;
    }
    insert_until(at);
    if (pending_at_ == at)
      found_ = pending_;
    else
      found_ = accepted(search(at, 2, parameters_.chain, limit));
    if (found_.is_literal() || found_.length >= parameters_.lazy) return found_;
    insert_until(at + 1);
    const std::uint32_t chain =
        found_.length >= parameters_.good ? parameters_.chain >> 2 : std::uint32_t{parameters_.chain};
    const Token later = accepted(search(at + 1, found_.length, chain, limit));
    if (later.is_literal()) return found_;
    deferred_ = true;
    later_ = later;
    return {};
  }

  Token match_instead() const override { return found_; }

  void advance(std::uint32_t at, Token token) override {
    if (parameters_.parser == Parser::greedy) {
      if (at >= next_) insert(at);
      if (token.length <= parameters_.insert_most)
        for (std::uint32_t i = std::max(next_, at + 1); i < at + token.length; ++i) insert(i);
      return;
    }
    pending_at_ = 0;
    if (deferred_ && token.is_literal()) {
      pending_at_ = at + 1;
      pending_ = later_;
    }
  }

  std::optional<std::uint32_t> hops_to(std::uint32_t at, std::uint32_t length,
                                       std::uint32_t distance) override {
    std::optional<std::uint32_t> out;
    walk(at, length, [&](std::uint32_t here, std::uint32_t hops) {
      if (here < distance) return true;
      if (here == distance) out = hops;
      return false;
    });
    return out;
  }

  std::optional<std::uint32_t> distance_of(std::uint32_t at, std::uint32_t length,
                                           std::uint32_t hops) override {
    std::optional<std::uint32_t> out;
    walk(at, length, [&](std::uint32_t here, std::uint32_t hop) {
      if (hop == hops) out = here;
      return hop < hops;
    });
    return out;
  }

  void flushed(std::uint32_t at) override {
    pending_at_ = 0;
    if (parameters_.flush == FlushHistory::clear) {
      tables_.forget(at);
      next_ = std::max(next_, at);
    } else if (parameters_.flush == FlushHistory::reinsert && parameters_.parser == Parser::greedy) {
      restart(at);
    }
  }

  void restart(std::uint32_t at) override {
    pending_at_ = 0;
    tables_.forget(at);
    // The buffer has nothing below kFirstPosition.
    const std::uint32_t from = at > kMostDistance + kFirstPosition ? at - kMostDistance : kFirstPosition;
    for (std::uint32_t i = from; i < at; ++i) insert(i);
    next_ = at;
  }

 private:
  // Go does with four bytes what zlib does with three.
  static constexpr std::uint32_t kShortest = std::is_same_v<Hash, MultipliedHash<true>> ? 4 : 3;
  static constexpr std::size_t kSmallRing = 32768;
  static constexpr std::uint32_t kMostSteps = 4096;  // to walk for a distance that was not predicted

  void insert(std::uint32_t at) { tables_.insert(at, hash_(bytes_ + at)); }

  void insert_until(std::uint32_t at) {
    for (; next_ < at; ++next_) insert(next_);
  }

  Token accepted(Token match) const {
    if (match.length <= 5 && (parameters_.filtered || (match.length == kShortest && match.distance > 4096 &&
                                                       parameters_.skip_far_threes)))
      return {};
    return match;
  }

  static std::uint16_t load16(const std::uint8_t* from) {
    std::uint16_t out;
    std::memcpy(&out, from, 2);
    return out;
  }

  // The first, and so nearest, of the longest matches that are longer than `best`; a literal if none is.
  Token search(std::uint32_t at, std::uint32_t best, std::uint32_t chain, std::uint32_t limit) {
    const std::uint32_t ahead = limit - at;
    if (at >= limit || ahead <= best || ahead < kLeastMatch) return {};
    const std::uint8_t* const scan = bytes_ + at;
    const auto here = static_cast<std::int32_t>(at);
    std::int32_t place = tables_.head(hash_(scan));
    if (here - place > first_reach_) return {};
    const std::uint32_t most = std::min(kMostMatch, ahead);
    if (best >= most) return {};
    const std::uint32_t nice = std::min<std::uint32_t>(parameters_.nice, ahead);
    const std::int32_t last = here - reach_;
    const std::uint16_t* const steps = tables_.steps();
    const std::uint32_t mask = tables_.ring_mask();
    const std::uint8_t* const bytes = bytes_;
    const std::uint16_t start = load16(scan);
    std::uint16_t end = load16(scan + best - 1);
    std::int32_t found = 0;
    for (;;) {
      const std::uint8_t* const match = bytes + place;
      if (load16(match + best - 1) == end && load16(match) == start) {
        const std::uint32_t length = same_bytes(scan, match, most);
        if (length > best) {
          best = length;
          found = place;
          if (length >= nice || length == most) break;
          end = load16(scan + best - 1);
        }
      }
      place -= steps[static_cast<std::uint32_t>(place) & mask];
      if (place < last || --chain == 0) break;
    }
    if (found == 0) return {};
    return {static_cast<std::uint16_t>(best), static_cast<std::uint16_t>(here - found)};
  }

  template <class Each>
  void walk(std::uint32_t at, std::uint32_t length, const Each& each) {
    if (parameters_.parser == Parser::lazy) insert_until(at);
    const auto here = static_cast<std::int32_t>(at);
    std::int32_t place = tables_.head(hash_(bytes_ + at));
    if (here - place > first_reach_) return;
    std::uint32_t hops = 0;
    for (std::uint32_t i = 0; i < kMostSteps; ++i) {
      if (same_bytes(bytes_ + at, bytes_ + place, length) == length &&
          !each(static_cast<std::uint32_t>(here - place), hops++))
        return;
      place -= tables_.steps()[static_cast<std::uint32_t>(place) & tables_.ring_mask()];
      if (here - place > reach_) return;
    }
  }

  Parameters parameters_;
  Hash hash_;
  const std::uint8_t* bytes_ = nullptr;
  ChainTables& tables_;
  std::int32_t first_reach_ = 0, reach_ = 0;  // the largest distance of a chain's first place, and of others
  std::uint32_t next_;  // lazy: all before it are inserted; greedy: none before it may be

  Token found_, later_, pending_;
  bool deferred_ = false;
  std::uint32_t pending_at_ = 0;
};

}  // namespace kin::formats::deflate

// ChainPredictor: the parsers that look for matches along chains of places with the same hash, the newest
// first: zlib's deflate_fast and deflate_slow, and those of its many relatives.
//
// As zlib it keeps, for each place, the one before it in the chain, here as a distance of 16 bits: those do
// not change when the buffer moves (see ChainTables). What zlib does at the end of its input follows from
// `limit`. Not modelled: that the first byte of each 32 KiB of zlib's window is sometimes not found at the
// largest distance, since that depends on how the input was handed over. That costs a correction.
//
// Where an encoder walks far, the walk is not made, but what it would find is found: see LongChains.
#pragma once

#include "formats/deflate/hash_functions.h"
#include "formats/deflate/long_chains.h"
#include "formats/deflate/predictor.h"
#include "formats/deflate/same_bytes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace kin::formats::deflate {

template <class Hash>
class ChainPredictor final : public Predictor {
 public:
  ChainPredictor(const Parameters& parameters, std::uint32_t first, SearchTables& tables, SearchWork& work)
      : parameters_(parameters),
        hash_(parameters.hash_bits),
        chains_(tables.chains),
        work_(work),
        next_(parameters.zlib_window ? first + 1 : first) {
    const std::size_t ring = parameters.zlib_window ? kSmallRing : 2 * kSmallRing;
    chains_.start(parameters.hash_bits, ring);
    // Only the lazy parser inserts every place.
    if (parameters.parser == Parser::lazy && parameters.chain >= kManySteps &&
        parameters.nice >= LongChains::kReads) {
      tables.longer.start(tables.bytes, ring);
      tables.longer.restart(next_, next_);
      tables.looks_far = true;
      longer_ = &tables.longer;
    }
    const std::int32_t window = 1 << parameters.window_bits;
    first_reach_ = parameters.zlib_window ? window - 262 : window;
    reach_ = parameters.zlib_window ? window - 263 : window;
  }

  void set_bytes(const std::uint8_t* bytes, std::uint32_t dropped) override {
    bytes_ = bytes;
    hashed_at_ = 0;
    if (dropped == 0) return;
    chains_.drop(dropped);
    if (longer_) longer_->drop(dropped);
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
      if (at >= next_) chains_.insert(at, at == hashed_at_ ? hash_found_ : hash_(bytes_ + at));
      if (token.length <= parameters_.insert_most)
        for (std::uint32_t i = std::max(next_, at + 1); i < at + token.length; ++i) insert_near(i);
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
      chains_.forget(at);
      next_ = std::max(next_, at);
      if (longer_) longer_->restart(next_, at);
    } else if (parameters_.flush == FlushHistory::reinsert && parameters_.parser == Parser::greedy) {
      restart(at);
    }
  }

  void restart(std::uint32_t at) override {
    pending_at_ = 0;
    chains_.forget(at);
    // The buffer has nothing below kFirstPosition.
    const std::uint32_t from = at > kMostDistance + kFirstPosition ? at - kMostDistance : kFirstPosition;
    if (longer_) longer_->restart(from, at);
    for (std::uint32_t i = from; i < at; ++i) insert(i);
    next_ = at;
  }

 private:
  // Go does with four bytes what zlib does with three.
  static constexpr std::uint32_t kShortest = std::is_same_v<Hash, MultipliedHash<true>> ? 4 : 3;
  static constexpr std::size_t kSmallRing = 32768;
  static constexpr std::uint32_t kSix = 6;
  static constexpr std::uint32_t kNear = 4;          // places of a chain that are looked at one by one
  static constexpr std::uint32_t kManySteps = 64;    // that make LongChains worth having
  static constexpr std::uint32_t kMostSteps = 4096;  // to walk for a distance that was not predicted

  // The greedy parser has no LongChains.
  std::uint16_t insert_near(std::uint32_t at) { return chains_.insert(at, hash_(bytes_ + at)); }
  void insert(std::uint32_t at) {
    const std::uint16_t step = insert_near(at);
    if (longer_) longer_->insert(at, bytes_ + at, step);
  }

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

  // What is searched for, and the best that was found of it.
  struct Goal {
    const std::uint8_t* scan;
    std::int32_t here, last;   // no place before `last`
    std::uint32_t most, nice;  // a match of `nice` ends the search
    std::uint32_t best;        // longer than this
    std::int32_t found = 0;

    Token token() const {
      if (found == 0) return {};
      return {static_cast<std::uint16_t>(best), static_cast<std::uint16_t>(here - found)};
    }
  };

  // The first, and so nearest, of the longest matches that are longer than `best`; a literal if none is.
  Token search(std::uint32_t at, std::uint32_t best, std::uint32_t chain, std::uint32_t limit) {
    const std::uint32_t ahead = limit - at;
    if (at >= limit || ahead <= best || ahead < kLeastMatch) return {};
    const std::uint8_t* const scan = bytes_ + at;
    const auto here = static_cast<std::int32_t>(at);
    hashed_at_ = at;
    hash_found_ = hash_(scan);
    std::int32_t place = chains_.head(hash_found_);
    if (here - place > first_reach_) return {};
    Goal goal{scan,
              here,
              here - reach_,
              std::min(kMostMatch, ahead),
              std::min<std::uint32_t>(parameters_.nice, ahead),
              best};
    if (best >= goal.most) return {};
    const bool far = longer_ && chain > kNear && ahead >= LongChains::kReads;
    const std::int32_t head = place;
    if (!walk_chain(goal, place, far ? kNear : chain) && far) search_far(goal, head, place, chain);
    return goal.token();
  }

  // All the places of a chain but the first kNear; `place` is the next.
  void search_far(Goal& goal, std::int32_t head, std::int32_t place, std::uint32_t chain) {
    const auto at = static_cast<std::uint32_t>(goal.here);
    longer_->insert_six(bytes_, at + goal.most - (kSix - 1));
    const Goal near = goal;
    std::uint32_t steps = 0, words = 0;
    const bool found = find_far(goal, head, place, chain, steps, words);
    work_.steps += steps + words;
    if (found) return;
    goal = near;
    walk_chain(goal, place, chain - kNear);
  }

  // Looks at so many places, from `place` on. False if there are more.
  bool walk_chain(Goal& goal, std::int32_t& place, std::uint32_t most_steps) const {
    const std::uint16_t* const steps = chains_.steps();
    const std::uint32_t mask = chains_.ring_mask();
    const std::uint8_t* const bytes = bytes_;
    const std::uint8_t* const scan = goal.scan;
    const std::int32_t last = goal.last;
    std::uint32_t best = goal.best;
    const std::uint16_t start = load16(scan);
    std::uint16_t end = load16(scan + best - 1);
    std::uint32_t steps_left = most_steps, words = 0;
    const auto counted = [&](bool ended) {
      work_.steps += most_steps - steps_left + words;
      return ended;
    };
    for (;;) {
      const std::uint8_t* const match = bytes + place;
      if (load16(match + best - 1) == end && load16(match) == start) {
        const std::uint32_t length = same_bytes(scan, match, goal.most);
        words += length / 8;
        if (length > best) {
          goal.best = best = length;
          goal.found = place;
          if (length >= goal.nice || length == goal.most) return counted(true);
          end = load16(scan + best - 1);
        }
      }
      place -= steps[static_cast<std::uint32_t>(place) & mask];
      if (place < last) return counted(true);
      if (--steps_left == 0) return counted(false);
    }
  }

  // The same without a walk. False if it would take more steps: then `goal` is of no use. `steps` are those
  // that were made, and `words` those that were compared.
  bool find_far(Goal& goal, std::int32_t head, std::int32_t place, std::uint32_t chain, std::uint32_t& steps,
                std::uint32_t& words) const {
    const auto in_chain = [&](std::int32_t to) { return longer_->steps_between(head, to) < chain; };
    const std::uint8_t* const bytes = bytes_;
    const std::uint8_t* const scan = goal.scan;
    const ByteChains<6>& six = longer_->six();
    const std::int32_t last = std::max(goal.last, longer_->floor());
    std::uint32_t best = std::max(goal.best, kSix - 1);
    std::uint16_t end = load16(scan + best - 1);
    const std::uint32_t start = load32(scan);
    bool found = false;
    // A longer match has the same six bytes at any offset up to `best`. The last tell most, unless those at
    // the start are rarer.
    auto offset = static_cast<std::int32_t>(best - (kSix - 1));
    if (six.step(goal.here) > six.step(goal.here + offset)) offset = 0;
    for (std::int32_t far = six.before(goal.here + offset) - offset; far >= last;
         far = six.before(far + offset) - offset) {
      if (++steps == chain) return false;
      if (load16(bytes + far + best - 1) != end || load32(bytes + far) != start) continue;
      const std::uint32_t length = same_bytes(scan, bytes + far, goal.most);
      words += length / 8;
      if (length <= best) continue;
      if (!in_chain(far)) break;
      found = true;
      goal.best = best = length;
      goal.found = far;
      if (length >= goal.nice || length == goal.most) break;
      end = load16(scan + best - 1);
      // This place is on the chains of all offsets that are known to be the same.
      offset = static_cast<std::int32_t>(best - kSix);
      if (six.step(far) > six.step(far + offset)) offset = 0;
    }
    if (found) return true;
    // From here on it is known that none is longer, so the first will do.
    const auto first_of = [&]<std::uint32_t kBytes>(const ByteChains<kBytes>& chains) {
      for (std::int32_t far = chains.head(scan); far >= goal.last; far = chains.before(far)) {
        if (++steps >= chain) return false;
        if (!ByteChains<kBytes>::same(scan, bytes + far)) continue;
        if (!in_chain(far)) break;
        goal.best = kBytes;
        goal.found = far;
        break;
      }
      return true;
    };
    if (goal.best < 5 && !first_of(longer_->five())) return false;
    if (goal.best < 4 && !first_of(longer_->four())) return false;
    if (goal.best >= 3) return true;
    for (std::uint32_t left = chain - kNear; left > 0 && place >= goal.last; --left, ++steps) {
      if (ByteChains<3>::same(scan, bytes + place)) {
        goal.best = 3;
        goal.found = place;
        return true;
      }
      place -= chains_.steps()[static_cast<std::uint32_t>(place) & chains_.ring_mask()];
    }
    return true;
  }

  template <class Each>
  void walk(std::uint32_t at, std::uint32_t length, const Each& each) {
    if (parameters_.parser == Parser::lazy) insert_until(at);
    const auto here = static_cast<std::int32_t>(at);
    std::int32_t place = chains_.head(hash_(bytes_ + at));
    if (here - place > first_reach_) return;
    std::uint32_t hops = 0, words = 0, i = 0;
    for (; i < kMostSteps; ++i) {
      const std::uint32_t same = same_bytes(bytes_ + at, bytes_ + place, length);
      words += same / 8;
      if (same == length && !each(static_cast<std::uint32_t>(here - place), hops++)) break;
      place -= chains_.steps()[static_cast<std::uint32_t>(place) & chains_.ring_mask()];
      if (here - place > reach_) break;
    }
    work_.steps += i + words;
  }

  Parameters parameters_;
  Hash hash_;
  const std::uint8_t* bytes_ = nullptr;
  ChainTables& chains_;
  SearchWork& work_;
  LongChains* longer_ = nullptr;              // for encoders that look far
  std::int32_t first_reach_ = 0, reach_ = 0;  // the largest distance of a chain's first place, and of others
  std::uint32_t next_;  // lazy: all before it are inserted; greedy: none before it may be

  std::uint32_t hashed_at_ = 0, hash_found_ = 0;  // of the last search; greedy: what is inserted next
  Token found_, later_, pending_;
  bool deferred_ = false;
  std::uint32_t pending_at_ = 0;
};

}  // namespace kin::formats::deflate

// LongChains: finds what a walk along a whole hash chain would find, without walking it.
//
// zlib's highest levels look at up to 4096 places with the same hash for each byte, of which nearly all match
// no more than the three bytes that brought them there. What counts is the nearest of the longest matches.
// If there is one of six bytes or more, it is on the much shorter chain of places with the same six bytes;
// else the first on that of five is it, or of four. An encoder's limit on its walk is kept by counting the
// places as they come: the numbers of two places of one chain tell how many lie between. So the answers are
// the same ones; where a walk here gets longer than the encoder's own, that is made instead.
//
// The bytes of a longer match must be the same at its end too, so it is also on the chain of the six bytes
// there; since those of a long match in repetitive data are on long chains, the rarer six are followed. For
// that, the chain of six is known some way beyond the place where the encoder is.
//
// Rejected: a suffix array or a tree finds the longest at once, but not within a number of steps that an
// encoder takes. Measured on 2,973 small files of gzip -9: rebuilding takes half the time that it took with
// the walk. One thread at a time.
#pragma once

#include "formats/deflate/chain_tables.h"
#include "formats/deflate/predictor.h"
#include "formats/deflate/token.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace kin::formats::deflate {

// The places with the same kBytes bytes, and others whose hash is the same.
template <std::uint32_t kBytes>
class ByteChains {
 public:
  void start(std::uint32_t hash_bits, std::size_t ring) {
    shift_ = 64 - hash_bits;
    tables_.start(hash_bits, ring);
  }
  void insert(std::uint32_t at, const std::uint8_t* bytes) { tables_.insert(at, hash(bytes)); }
  std::uint32_t step(std::int32_t place) const {
    return tables_.steps()[static_cast<std::uint32_t>(place) & tables_.ring_mask()];
  }
  std::int32_t head(const std::uint8_t* bytes) const { return tables_.head(hash(bytes)); }
  std::int32_t before(std::int32_t place) const { return place - static_cast<std::int32_t>(step(place)); }
  void drop(std::uint32_t count) { tables_.drop(count); }
  void forget(std::uint32_t end) { tables_.forget(end); }

  static bool same(const std::uint8_t* a, const std::uint8_t* b) { return word(a) == word(b); }

 private:
  // Only whether two are equal matters, so the order of bytes does not. May read 8.
  static std::uint64_t word(const std::uint8_t* from) {
    std::uint64_t out;
    std::memcpy(&out, from, 8);
    if constexpr (std::endian::native == std::endian::little)
      return out << (64 - 8 * kBytes);
    else
      return out >> (64 - 8 * kBytes);
  }
  std::uint32_t hash(const std::uint8_t* bytes) const {
    return static_cast<std::uint32_t>(word(bytes) * 0x9e3779b97f4a7c15U >> shift_);
  }

  ChainTables tables_;
  std::uint32_t shift_ = 0;
};

class LongChains {
 public:
  static constexpr std::uint32_t kReads = 8;  // bytes at a place, at most

  // As ChainTables::start. `bytes`: about how many there are to insert; the wrong number makes it slower.
  void start(std::size_t bytes, std::size_t ring) {
    const auto bits = std::clamp(static_cast<std::uint32_t>(std::bit_width(bytes)), 8U, 15U);
    six_.start(bits, 2 * kMostDistance);
    five_.start(bits, ring);
    four_.start(bits, ring);
    if (numbers_ == nullptr || ring_mask_ + 1 != ring)
      numbers_ = std::make_unique_for_overwrite<std::uint16_t[]>(ring);
    ring_mask_ = static_cast<std::uint32_t>(ring - 1);
  }

  // All that was inserted is before `end`, and to be forgotten; the next place to be inserted is `at`.
  void restart(std::uint32_t at, std::uint32_t end) {
    forget(std::max(end, six_next_));
    floor_ = six_next_ = at;
  }
  // All places in turn. `step` leads to the place before it in the encoder's chain.
  void insert(std::uint32_t at, const std::uint8_t* bytes, std::uint32_t step) {
    five_.insert(at, bytes);
    four_.insert(at, bytes);
    // The first of a chain has any number: none before it can be reached.
    numbers_[at & ring_mask_] = step > kMostStep
                                    ? std::uint16_t{0}
                                    : static_cast<std::uint16_t>(numbers_[(at - step) & ring_mask_] + 1);
  }

  // The chain of six is known beyond the place where the encoder is. `bytes` is the whole buffer.
  void insert_six(const std::uint8_t* bytes, std::uint32_t end) {
    for (; six_next_ < end; ++six_next_) six_.insert(six_next_, bytes + six_next_);
  }

  void drop(std::uint32_t count) {
    six_.drop(count);
    six_next_ = std::max(six_next_ - std::min(six_next_, count), kFirstPosition);
    floor_ = std::max(floor_ - std::min(floor_, count), kFirstPosition);
    five_.drop(count);
    four_.drop(count);
    std::rotate(numbers_.get(), numbers_.get() + (count & ring_mask_), numbers_.get() + ring_mask_ + 1);
  }
  void forget(std::uint32_t end) {
    six_.forget(end);
    five_.forget(end);
    four_.forget(end);
  }

  // No place before this was inserted.
  std::int32_t floor() const { return static_cast<std::int32_t>(floor_); }
  const ByteChains<6>& six() const { return six_; }
  const ByteChains<5>& five() const { return five_; }
  const ByteChains<4>& four() const { return four_; }
  // How many steps along the encoder's chain lead from one place to an earlier one on the same.
  std::uint32_t steps_between(std::int32_t from, std::int32_t to) const {
    return static_cast<std::uint16_t>(number(from) - number(to));
  }

 private:
  static constexpr std::uint32_t kMostStep = 32768;  // of those in reach

  std::uint32_t number(std::int32_t place) const {
    return numbers_[static_cast<std::uint32_t>(place) & ring_mask_];
  }

  ByteChains<6> six_;
  ByteChains<5> five_;
  ByteChains<4> four_;
  std::unique_ptr<std::uint16_t[]> numbers_;  // by place, modulo the ring
  std::uint32_t ring_mask_ = 0;
  std::uint32_t six_next_ = 0, floor_ = 0;
};

// All tables that a predictor needs, for one after the other.
struct SearchTables {
  explicit SearchTables(std::size_t bytes_expected = 0) : bytes(bytes_expected) {}

  std::size_t bytes;  // as for LongChains::start
  ChainTables chains;
  LongChains longer;  // started by those predictors that look far
  bool looks_far = false;

  void forget(std::uint32_t end) {
    chains.forget(end);
    if (looks_far) longer.forget(end);
  }
};

}  // namespace kin::formats::deflate

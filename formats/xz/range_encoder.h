// RangeEncoder: bits to bytes, by their probabilities. One thread at a time.
//
// It makes room before each bit, not after: where a chunk ends depends on how many bytes there are by then.
#pragma once

#include "formats/xz/model.h"

#include <vector>

namespace kin::formats::xz {

class RangeEncoder {
 public:
  RangeEncoder() : out_(kMostChunkBytes + kSlack) {}

  // Forgets what there was.
  void restart() {
    low_ = 0;
    range_ = UINT32_MAX;
    held_ = 1;
    first_held_ = 0;
    size_ = 0;
  }

  void bit(Probability& zero, std::uint32_t bit) {
    make_room();
    const std::uint32_t bound = (range_ >> kProbabilityBits) * zero;
    if (bit == 0) {
      range_ = bound;
      zero = static_cast<Probability>(zero + ((kProbabilityTotal - zero) >> kAdaptShift));
    } else {
      low_ += bound;
      range_ -= bound;
      zero = static_cast<Probability>(zero - (zero >> kAdaptShift));
    }
  }
  // The highest bit first, each by those above it.
  void tree(Probability* zeros, std::uint32_t bits, std::uint32_t value) {
    std::uint32_t node = 1;
    while (bits-- > 0) {
      const std::uint32_t one = (value >> bits) & 1;
      bit(zeros[node], one);
      node = 2 * node + one;
    }
  }
  // The lowest bit first.
  void reverse_tree(Probability* zeros, std::uint32_t bits, std::uint32_t value) {
    std::uint32_t node = 1;
    for (; bits > 0; --bits, value >>= 1) {
      bit(zeros[node], value & 1);
      node = 2 * node + (value & 1);
    }
  }
  // Bits of which nothing is known.
  void direct(std::uint32_t value, std::uint32_t bits) {
    while (bits-- > 0) {
      make_room();
      range_ >>= 1;
      if (((value >> bits) & 1) != 0) low_ += range_;
    }
  }
  void finish() {
    make_room();
    for (int i = 0; i < 5; ++i) shift();
  }

  // What will not change any more.
  ByteView bytes() const { return ByteView(out_).first(size_); }
  // With what a finish() would add at least.
  std::size_t size_if_finished() const { return size_ + held_ + 4; }

 private:
  static constexpr std::uint32_t kLeastRange = 1U << 24;
  // A symbol is written in full once it is begun, wherever the limit is.
  static constexpr std::size_t kSlack = 256;

  void make_room() {
    if (range_ >= kLeastRange) return;
    range_ <<= 8;
    shift();
  }
  // A carry may still run through bytes of 255; so they wait, and the one before them.
  void shift() {
    if (static_cast<std::uint32_t>(low_) < 0xff000000 || (low_ >> 32) != 0) {
      const auto carry = static_cast<std::uint8_t>(low_ >> 32);
      out_[size_++] = static_cast<std::uint8_t>(first_held_ + carry);
      while (--held_ > 0) out_[size_++] = static_cast<std::uint8_t>(0xff + carry);
      first_held_ = static_cast<std::uint8_t>(low_ >> 24);
    }
    ++held_;
    low_ = (low_ & 0x00ffffff) << 8;
  }

  Bytes out_;
  std::size_t size_ = 0;
  std::uint64_t low_ = 0;
  std::uint64_t held_ = 1;
  std::uint32_t range_ = UINT32_MAX;
  std::uint8_t first_held_ = 0;
};

}  // namespace kin::formats::xz

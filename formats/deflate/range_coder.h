// An adaptive binary range coder. RangeEncoder and RangeDecoder have one interface: bit(context, value) codes
// the value, or ignores it and gives the one that was coded. So what is coded is written once, for both.
//
// A Chance learns with a rate of 1/n at first and 1/64 at last. It can go down to 2^-16: a million decisions
// that come out as expected cost 3 bytes, which is why runs of them need no code of their own.
#pragma once

#include "lib/base/bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

namespace kin::formats::deflate {

class Chance {
 public:
  // That the bit is set, in 1/65536.
  std::uint32_t of_one() const { return std::clamp<std::uint32_t>(value_ >> 16, 1, 65535); }
  void learn(bool bit) {
    if (bit)
      value_ += static_cast<std::uint32_t>((std::uint64_t{0xffffffff} - value_) * rate() >> 16);
    else
      value_ -= static_cast<std::uint32_t>(std::uint64_t{value_} * rate() >> 16);
    if (seen_ < kMostSeen) ++seen_;
  }

 private:
  static constexpr std::uint32_t kMostSeen = 63;
  static constexpr auto kRates = [] {
    std::array<std::uint32_t, kMostSeen + 1> out{};
    for (std::uint32_t i = 0; i <= kMostSeen; ++i) out[i] = 65536 / (i + 2);
    return out;
  }();
  std::uint32_t rate() const { return kRates[seen_]; }

  std::uint32_t value_ = std::uint32_t{1} << 31;
  std::uint32_t seen_ = 0;
};

class RangeEncoder {
 public:
  static constexpr bool kDecodes = false;

  bool bit(Chance& chance, bool value) {
    const std::uint32_t bound = (range_ >> 16) * chance.of_one();
    if (value) {
      range_ = bound;
    } else {
      low_ += bound;
      range_ -= bound;
    }
    chance.learn(value);
    while (range_ < 1U << 24) shift();
    return value;
  }
  // Trailing zeros are left out: the decoder reads zeros beyond the end.
  Bytes finish() {
    // The shortest number inside the range.
    for (std::uint32_t bits = 1; bits <= 32; ++bits) {
      const std::uint64_t mask = (std::uint64_t{1} << (32 - bits)) - 1;
      const std::uint64_t rounded = (low_ + mask) & ~mask;
      if (rounded < low_ + range_) {
        low_ = rounded;
        break;
      }
    }
    for (int i = 0; i < 5; ++i) shift();
    while (!out_.empty() && out_.back() == 0) out_.pop_back();
    return std::move(out_);
  }
  bool failed() const { return false; }

 private:
  void shift() {
    if (low_ < 0xff000000U || low_ >> 32 != 0) {
      const auto carry = static_cast<std::uint8_t>(low_ >> 32);
      if (started_) out_.push_back(static_cast<std::uint8_t>(held_ + carry));
      started_ = true;
      for (; pending_ != 0; --pending_) out_.push_back(static_cast<std::uint8_t>(0xff + carry));
      held_ = static_cast<std::uint8_t>(low_ >> 24);
    } else {
      ++pending_;
    }
    low_ = (low_ & 0x00ffffff) << 8;
    range_ <<= 8;
  }

  Bytes out_;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xffffffff;
  std::uint8_t held_ = 0;
  std::uint64_t pending_ = 0;
  bool started_ = false;
};

class RangeDecoder {
 public:
  static constexpr bool kDecodes = true;

  explicit RangeDecoder(ByteView bytes) : bytes_(bytes) {
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
  }
  bool bit(Chance& chance, bool) {
    const std::uint32_t bound = (range_ >> 16) * chance.of_one();
    const bool value = code_ < bound;
    if (value) {
      range_ = bound;
    } else {
      code_ -= bound;
      range_ -= bound;
    }
    chance.learn(value);
    while (range_ < 1U << 24) {
      code_ = code_ << 8 | next();
      range_ <<= 8;
    }
    return value;
  }
  // More was asked for than was ever coded.
  bool failed() const { return beyond_ > 8; }

 private:
  std::uint32_t next() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    ++beyond_;
    return 0;
  }

  ByteView bytes_;
  std::size_t at_ = 0;
  std::size_t beyond_ = 0;
  std::uint32_t code_ = 0;
  std::uint32_t range_ = 0xffffffff;
};

// Numbers up to 2^32 - 2: how many bits, and then the bits, of which the first few are learnt.
class NumberModel {
 public:
  NumberModel() = default;
  NumberModel(NumberModel&&) = default;
  NumberModel& operator=(NumberModel&&) = default;
  NumberModel(const NumberModel& other)
      : chances_(other.chances_ ? std::make_unique<Chances>(*other.chances_) : nullptr) {}
  NumberModel& operator=(const NumberModel& other) { return *this = NumberModel(other); }

  template <class Coder>
  std::uint32_t code(Coder& coder, std::uint32_t value) {
    if (!chances_) chances_ = std::make_unique<Chances>();
    const std::uint64_t wanted = std::uint64_t{value} + 1;
    const auto wanted_bits = static_cast<std::uint32_t>(std::bit_width(wanted)) - 1;
    std::uint32_t bits = 0;
    while (bits < 31 && !coder.bit(chances_->width[bits], bits == wanted_bits)) ++bits;
    std::uint64_t out = 1;
    for (std::uint32_t i = bits; i-- > 0;) {
      const bool bit = ((wanted >> i) & 1) != 0;
      const std::uint32_t depth = bits - 1 - i;
      Chance even;
      const bool got = coder.bit(depth < kLearnt ? chances_->bits[bits][out] : even, bit);
      out = out << 1 | (got ? 1 : 0);
    }
    return static_cast<std::uint32_t>(out - 1);
  }

  // Small numbers of either sign.
  template <class Coder>
  std::int32_t code_signed(Coder& coder, std::int32_t value) {
    const auto folded = static_cast<std::uint32_t>(value >= 0 ? 2 * value : -2 * value - 1);
    const std::uint32_t got = code(coder, folded);
    return got % 2 == 0 ? static_cast<std::int32_t>(got / 2) : -static_cast<std::int32_t>(got / 2) - 1;
  }

 private:
  static constexpr std::uint32_t kLearnt = 3;
  struct Chances {
    std::array<Chance, 32> width;
    std::array<std::array<Chance, 8>, 32> bits;
  };
  std::unique_ptr<Chances> chances_;  // once needed: a stream that is predicted well needs few of 150 models
};

}  // namespace kin::formats::deflate

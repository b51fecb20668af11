// BitWriter: bzip2's bits, highest first, into bytes. One thread at a time.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <utility>

namespace kin::formats::bzip2 {

class BitWriter {
 public:
  // Up to 32 bits; those above `count` must be zero.
  void put(std::uint32_t bits, std::uint32_t count) {
    bits_ = bits_ << count | bits;
    count_ += count;
    if (count_ >= 32) spill();
  }
  void to_byte_boundary() { put(0, (8 - count_ % 8) % 8); }

  // The whole bytes since the last call.
  Bytes take() {
    spill();
    return std::exchange(out_, {});
  }
  // After take(): what does not yet fill a byte.
  std::uint32_t left_bits() const { return count_; }
  std::uint8_t left() const { return static_cast<std::uint8_t>(bits_ & ((1U << count_) - 1)); }

 private:
  void spill() {
    for (; count_ >= 8; count_ -= 8) out_.push_back(static_cast<std::uint8_t>(bits_ >> (count_ - 8)));
  }

  Bytes out_;
  std::uint64_t bits_ = 0;  // the lowest `count_` are still to be written
  std::uint32_t count_ = 0;
};

}  // namespace kin::formats::bzip2

// BitWriter: deflate's bits, lowest first, into bytes. One thread at a time.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <utility>

namespace kin::formats::deflate {

class BitWriter {
 public:
  // Up to 56 bits; those above `count` must be zero.
  void put(std::uint64_t bits, std::uint32_t count) {
    if (count_ + count > 64) spill();
    bits_ |= bits << count_;
    count_ += count;
    if (count_ >= 56) spill();
  }
  std::uint32_t bits_in_last_byte() const { return count_ & 7; }
  // On a byte boundary.
  void bytes(ByteView bytes) {
    spill();
    out_.resize(size_);
    append(out_, bytes);
    size_ = out_.size();
  }
  // The whole bytes so far.
  Bytes take() {
    spill();
    out_.resize(size_);
    size_ = 0;
    return std::exchange(out_, {});
  }

 private:
  void spill() {
    if (size_ + 8 > out_.size()) out_.resize(2 * size_ + 4096);
    for (std::size_t i = 0; i < 8; ++i) out_[size_ + i] = static_cast<std::uint8_t>(bits_ >> (8 * i));
    const std::uint32_t whole = count_ / 8;
    size_ += whole;
    bits_ = whole == 8 ? 0 : bits_ >> (8 * whole);
    count_ &= 7;
  }

  Bytes out_;
  std::size_t size_ = 0;  // of out_; there is room behind
  std::uint64_t bits_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace kin::formats::deflate

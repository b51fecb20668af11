// BitWriter: deflate's bits, lowest first, into bytes. One thread at a time.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <utility>

namespace kin::formats::deflate {

class BitWriter {
 public:
  // Up to 56 bits; those above `count` must be zero. Whole bytes are written each time: to wait until there
  // are eight takes a branch that is as often as not predicted wrongly.
  void put(std::uint64_t bits, std::uint32_t count) {
    if (size_ + 8 > out_.size()) out_.resize(2 * size_ + 4096);
    const std::uint64_t word = bits_ | bits << count_;
    std::uint8_t* const to = out_.data() + size_;
    for (std::size_t i = 0; i < 8; ++i) to[i] = static_cast<std::uint8_t>(word >> (8 * i));
    count += count_;
    size_ += count / 8;
    bits_ = word >> (count & ~7U);
    count_ = count & 7;
  }
  std::uint32_t bits_in_last_byte() const { return count_; }
  // On a byte boundary.
  void bytes(ByteView bytes) {
    out_.resize(size_);
    append(out_, bytes);
    size_ = out_.size();
  }
  // The whole bytes so far.
  Bytes take() {
    out_.resize(size_);
    size_ = 0;
    return std::exchange(out_, {});
  }

 private:
  Bytes out_;
  std::size_t size_ = 0;    // of out_; there is room behind
  std::uint64_t bits_ = 0;  // of the byte behind, `count_` of them
  std::uint32_t count_ = 0;
};

}  // namespace kin::formats::deflate

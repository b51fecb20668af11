// BitReader: deflate's bits, lowest first, from bytes that come in pieces. It keeps what was read since
// keep_from(), so that a rebuilt stream can be compared with it. Beyond the end it gives zeros, and
// overrun() tells. One thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace kin::formats::deflate {

class BitReader {
 public:
  // Fills some of the buffer and says how much; 0 is the end.
  using Read = std::function<Result<std::size_t>(std::span<std::uint8_t> into)>;

  explicit BitReader(Read read) : read_(std::move(read)) {}

  // Makes at least 56 bits ready to peek; those beyond the end are zeros.
  void refill() {
    if (at_ + 8 > end_) [[unlikely]]
      reach_end();
    std::uint64_t word;
    std::memcpy(&word, buffer_.data() + at_, 8);
    bits_ |= word << count_;
    at_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  std::uint64_t peek() const { return bits_; }
  void drop(std::uint32_t count) {
    bits_ >>= count;
    count_ -= count;
  }
  std::uint32_t take(std::uint32_t count) {  // up to 16, after refill()
    const auto out = static_cast<std::uint32_t>(bits_ & ((1U << count) - 1));
    drop(count);
    return out;
  }

  // The position in bits since keep_from() was last called, or the start.
  std::uint64_t position() const { return at_ * std::uint64_t{8} - count_; }
  bool overrun() const { return position() > end_ * std::uint64_t{8}; }
  const Result<void>& failure() const { return failure_; }

  // Copies whole bytes from a byte boundary; less than asked for means the end.
  std::size_t copy(std::uint8_t* to, std::size_t size) {
    seek(position() / 8);
    std::size_t done = 0;
    while (done < size) {
      if (at_ >= end_) {
        if (ended_) break;
        load();
        continue;
      }
      const std::size_t part = std::min(size - done, end_ - at_);
      std::memcpy(to + done, buffer_.data() + at_, part);
      at_ += part;
      done += part;
    }
    return done;
  }

  // The bytes since keep_from(), those read ahead included; valid until the next call.
  ByteView kept() const { return ByteView(buffer_).first(end_); }
  // Forgets the bytes before this one, counted like position().
  void keep_from(std::size_t byte) {
    const std::uint64_t bits = position();
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(byte));
    end_ -= byte;
    seek(bits / 8 - byte);
    refill();
    drop(static_cast<std::uint32_t>(bits % 8));
  }

 private:
  static constexpr std::size_t kRead = std::size_t{64} << 10;
  static constexpr std::size_t kPadding = 64;  // zeros that refill() may run into, many times over

  void seek(std::uint64_t byte) {
    at_ = static_cast<std::size_t>(byte);
    bits_ = 0;
    count_ = 0;
  }

  void reach_end() {
    if (!ended_) load();
    at_ = std::min(at_, end_ + kPadding - 16);  // stays beyond the end, inside the padding
  }

  void load() {
    buffer_.resize(end_ + kRead + kPadding);
    auto got = read_(std::span(buffer_).subspan(end_, kRead));
    if (!got) failure_ = std::move(got).error();
    const std::size_t size = got ? *got : 0;
    if (size == 0) ended_ = true;
    end_ += size;
    buffer_.resize(end_ + kPadding);
    std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.end(), std::uint8_t{0});
    if (!ended_ && at_ + 8 > end_) load();
  }

  Read read_;
  Bytes buffer_ = Bytes(kPadding);
  std::size_t end_ = 0;  // of what was read, in buffer_; the padding follows
  std::size_t at_ = 0;
  std::uint64_t bits_ = 0;
  std::uint32_t count_ = 0;
  bool ended_ = false;
  Result<void> failure_;
};

}  // namespace kin::formats::deflate

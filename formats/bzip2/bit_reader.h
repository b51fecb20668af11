// BitReader: bzip2's bits, highest first, from bytes that come in pieces. It keeps what was read since
// forget(), so that rebuilt bytes can be compared with it. Beyond the end it gives zeros, and overrun()
// tells. One thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace kin::formats::bzip2 {

class BitReader {
 public:
  // Fills the buffer, or less of it at the end and only there.
  using Read = std::function<Result<std::size_t>(std::span<std::uint8_t> into)>;

  explicit BitReader(Read read) : read_(std::move(read)) {}

  // The next 32 bits; those beyond the end are zeros.
  std::uint32_t peek() {
    const std::size_t byte = position_ >> 3;
    if (byte + 8 > end_ && !ended_) [[unlikely]]
      load(byte + 8);
    const std::uint8_t* const from = buffer_.data() + std::min(byte, end_);
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | from[i];
    return static_cast<std::uint32_t>(word << (position_ & 7) >> 32);
  }
  void drop(std::uint32_t count) { position_ += count; }
  std::uint32_t take(std::uint32_t count) {  // 1 to 32
    const std::uint32_t out = peek() >> (32 - count);
    drop(count);
    return out;
  }
  void to_byte_boundary() { position_ = (position_ + 7) & ~std::uint64_t{7}; }

  // On a byte boundary: the next bytes, or fewer at the end and only there. Valid until the next call.
  ByteView ahead(std::size_t size) {
    const std::size_t byte = std::min<std::size_t>(position_ >> 3, end_);
    if (byte + size > end_ && !ended_) load(byte + size);
    return ByteView(buffer_).subspan(byte, std::min(size, end_ - byte));
  }
  // All bytes that were read and not yet taken.
  ByteView unread() { return ahead(end_ - std::min<std::size_t>((position_ + 7) >> 3, end_)); }

  // In bits, since the last byte that was forgotten.
  std::uint64_t position() const { return position_; }
  bool overrun() const { return position_ > end_ * std::uint64_t{8}; }
  const Result<void>& failure() const { return failure_; }

  // The bytes since then, those read ahead included; valid until the next call.
  ByteView kept() const { return ByteView(buffer_).first(end_); }
  // Drops the first bytes of those kept, which must have been taken.
  void forget(std::size_t bytes) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
    end_ -= bytes;
    position_ -= std::uint64_t{8} * bytes;
  }

 private:
  static constexpr std::size_t kRead = std::size_t{64} << 10;
  static constexpr std::size_t kPadding = 8;  // zeros, for peek()

  void load(std::size_t wanted) {
    while (end_ < wanted && !ended_) {
      buffer_.resize(end_ + kRead + kPadding);
      auto got = read_(std::span(buffer_).subspan(end_, kRead));
      if (!got) failure_ = std::move(got).error();
      const std::size_t size = got ? *got : 0;
      ended_ = size < kRead;
      end_ += size;
      buffer_.resize(end_ + kPadding);
      std::fill(buffer_.end() - kPadding, buffer_.end(), std::uint8_t{0});
    }
  }

  Read read_;
  Bytes buffer_ = Bytes(kPadding);
  std::size_t end_ = 0;  // of what was read, in buffer_; the padding follows
  std::uint64_t position_ = 0;
  bool ended_ = false;
  Result<void> failure_;
};

}  // namespace kin::formats::bzip2

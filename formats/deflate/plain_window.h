// PlainWindow: the plain bytes that a predictor looks at: those at hand, and 32 KiB before them.
#pragma once

#include "formats/deflate/predictor.h"
#include "lib/base/bytes.h"

#include <cstdint>
#include <cstring>

namespace kin::formats::deflate {

class PlainWindow {
 public:
  // Appends, and drops what is too far before position(). Gives how many bytes were dropped: positions are
  // less by that from now on.
  std::uint32_t add(ByteView plain) {
    const std::uint32_t least = kFirstPosition + kMostDistance;
    const std::uint32_t dropped = position_ > least ? position_ - least : 0;
    bytes_.resize(end_);
    if (dropped != 0) {
      bytes_.erase(bytes_.begin() + kFirstPosition,
                   bytes_.begin() + static_cast<std::ptrdiff_t>(kFirstPosition + dropped));
      position_ -= dropped;
    }
    append(bytes_, plain);
    end_ = static_cast<std::uint32_t>(bytes_.size());
    bytes_.resize(bytes_.size() + kReadBeyond);
    return dropped;
  }

  const std::uint8_t* bytes() const { return bytes_.data(); }
  const std::uint8_t* at(std::uint32_t position) const { return bytes_.data() + position; }
  std::uint32_t position() const { return position_; }  // of the next block
  // How many bytes of the stream are there before a place: all, or 32 KiB at least.
  static std::size_t before(std::uint32_t place) { return place - kFirstPosition; }
  std::uint32_t end() const { return end_; }
  std::uint32_t left() const { return end_ - position_; }
  void advance(std::uint32_t size) { position_ += size; }

 private:
  Bytes bytes_ = Bytes(kFirstPosition + kReadBeyond);
  std::uint32_t position_ = kFirstPosition;
  std::uint32_t end_ = kFirstPosition;
};

}  // namespace kin::formats::deflate

// Window: the plain bytes around the place where an encoder is: as far back as matches reach, and what has
// come in ahead. It grows with what comes, up to a bound. One thread at a time.
#pragma once

#include "formats/xz/common_length.h"
#include "lib/base/bytes.h"

#include <cstdint>

namespace kin::formats::xz {

class Window {
 public:
  // At least `before` bytes behind the place stay.
  explicit Window(std::size_t before);

  // More plain bytes: as many as there is room for, which is how many it gives. There is some once the place
  // has come near to the end.
  std::size_t add(ByteView plain);

  // The byte at the place. Pointers are good until add().
  const std::uint8_t* data() const { return bytes_.data() + at_; }
  std::uint32_t ahead() const { return static_cast<std::uint32_t>(end_ - at_); }
  std::uint64_t position() const { return dropped_ + at_; }
  void advance() { ++at_; }

 private:
  static constexpr std::size_t kReserve = 1U << 19;

  const std::size_t before_, most_;
  Bytes bytes_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace kin::formats::xz

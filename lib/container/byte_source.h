// ByteSource: bytes in order, from wherever. One thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace kin {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `into`, or less of it at the end and only there.
  virtual Result<std::size_t> read(std::span<std::uint8_t> into) = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(std::move(bytes)) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    const std::size_t size = std::min(into.size(), bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), size, into.begin());
    at_ += size;
    return size;
  }

 private:
  const Bytes bytes_;
  std::size_t at_ = 0;
};

}  // namespace kin

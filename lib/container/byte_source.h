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

// Of bytes that someone else keeps as long as it is read.
class MemoryView : public ByteSource {
 public:
  explicit MemoryView(ByteView bytes) : left_(bytes) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override {
    const std::size_t size = std::min(into.size(), left_.size());
    std::copy_n(left_.begin(), size, into.begin());
    left_ = left_.subspan(size);
    return size;
  }

 private:
  ByteView left_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(std::move(bytes)) {}
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  Result<std::size_t> read(std::span<std::uint8_t> into) override { return view_.read(into); }

 private:
  const Bytes bytes_;
  MemoryView view_{bytes_};
};

}  // namespace kin

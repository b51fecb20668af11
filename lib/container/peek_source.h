// PeekSource: another source, with a look at what comes. It must outlive this. One thread at a time.
#pragma once

#include "lib/container/byte_source.h"

namespace kin {

class PeekSource : public ByteSource {
 public:
  explicit PeekSource(ByteSource& source) : source_(source) {}

  // The next `size` bytes, or fewer at the end and only there. Valid until the next call of anything here.
  Result<ByteView> peek(std::size_t size);
  // Past bytes that were seen.
  void skip(std::size_t size);
  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  // What was read too much comes again.
  void give_back(ByteView bytes);

  std::uint64_t position() const { return position_; }  // bytes read

 private:
  ByteView ahead() const { return ByteView(buffer_).subspan(at_); }

  ByteSource& source_;
  Bytes buffer_;
  std::size_t at_ = 0;  // in the buffer
  std::uint64_t position_ = 0;
  bool ended_ = false;  // the source
};

// At most `limit` bytes of a source.
class LimitedSource : public ByteSource {
 public:
  LimitedSource(ByteSource& source, std::uint64_t limit) : source_(source), left_(limit) {}

  Result<std::size_t> read(std::span<std::uint8_t> into) override;
  std::uint64_t left() const { return left_; }

 private:
  ByteSource& source_;
  std::uint64_t left_;
};

}  // namespace kin

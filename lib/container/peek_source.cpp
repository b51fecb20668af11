#include "lib/container/peek_source.h"

#include "lib/base/check.h"

namespace kin {
namespace {

constexpr std::size_t kExtraBytes = 64 << 10;
constexpr std::size_t kLeastStep = 8 << 10;

}  // namespace

Result<ByteView> PeekSource::peek(std::size_t size) {
  if (ahead().size() < size && !ended_) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    // More than asked for, so that many small steps do not each move the buffer; and no memory before there
    // are bytes for it.
    const std::size_t wanted = size + std::min(size, kExtraBytes);
    while (buffer_.size() < wanted && !ended_) {
      const std::size_t have = buffer_.size();
      const std::size_t step = std::min(wanted - have, std::max(have, kLeastStep));
      buffer_.resize(have + step);
      const auto got = source_.read(std::span(buffer_).subspan(have));
      buffer_.resize(have + (got ? *got : 0));
      if (!got) return got.error();
      ended_ = *got < step;
    }
  }
  return ahead().first(std::min(size, ahead().size()));
}

void PeekSource::skip(std::size_t size) {
  KIN_CHECK(size <= ahead().size());
  at_ += size;
  position_ += size;
}

Result<std::size_t> PeekSource::read(std::span<std::uint8_t> into) {
  const ByteView seen = ahead().first(std::min(into.size(), ahead().size()));
  std::copy(seen.begin(), seen.end(), into.begin());
  at_ += seen.size();
  std::size_t size = seen.size();
  if (size < into.size() && !ended_) {
    KIN_TRY_ASSIGN(const std::size_t got, source_.read(into.subspan(size)));
    size += got;
  }
  position_ += size;
  return size;
}

void PeekSource::give_back(ByteView bytes) {
  KIN_CHECK(bytes.size() <= position_);
  position_ -= bytes.size();
  const ByteView rest = ahead();
  Bytes joined(bytes.begin(), bytes.end());
  append(joined, rest);
  buffer_ = std::move(joined);
  at_ = 0;
}

Result<std::size_t> LimitedSource::read(std::span<std::uint8_t> into) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_));
  KIN_TRY_ASSIGN(const std::size_t got, source_.read(into.first(size)));
  left_ -= got;
  return got;
}

}  // namespace kin

#include "lib/base/wire.h"

#include <fmt/core.h>

namespace kin {

void WireWriter::u32(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
}

void WireWriter::u64(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
}

void WireWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    u8(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  u8(static_cast<std::uint8_t>(value));
}

void WireWriter::signed_varint(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void WireWriter::text(std::string_view value) { blob(as_bytes(value)); }

void WireWriter::blob(ByteView value) {
  varint(value.size());
  raw(value);
}

bool WireReader::take(std::size_t size) {
  if (failed_ || size > left()) {
    failed_ = true;
    return false;
  }
  at_ += size;
  return true;
}

std::uint8_t WireReader::u8() { return take(1) ? bytes_[at_ - 1] : 0; }

std::uint32_t WireReader::u32() {
  const ByteView bytes = raw(4);
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

std::uint64_t WireReader::u64() {
  const ByteView bytes = raw(8);
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    if (failed_) return 0;
    // The tenth byte has room for one bit; and one value has one encoding, so no trailing zero byte.
    if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  failed_ = true;
  return 0;
}

std::uint64_t WireReader::varint_up_to(std::uint64_t most) {
  const std::uint64_t value = varint();
  if (value <= most) return value;
  failed_ = true;
  return 0;
}

std::int64_t WireReader::signed_varint() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

ByteView WireReader::raw(std::size_t size) {
  return take(size) ? bytes_.subspan(at_ - size, size) : ByteView{};
}

std::string WireReader::text() { return std::string(as_text(blob())); }

ByteView WireReader::blob() {
  const std::uint64_t size = varint();
  if (size > left()) failed_ = true;
  return failed_ ? ByteView{} : raw(static_cast<std::size_t>(size));
}

std::size_t WireReader::count(std::size_t least_bytes) {
  const std::uint64_t value = varint();
  if (value > left() / least_bytes) failed_ = true;
  return failed_ ? 0 : static_cast<std::size_t>(value);
}

std::size_t WireReader::count(std::size_t least_bytes, std::uint64_t most) {
  const std::size_t out = count(least_bytes);
  if (out > most) failed_ = true;
  return failed_ ? 0 : out;
}

Result<void> WireReader::finish(std::string_view what) const {
  if (failed_) return Error(ErrorCode::corrupt, fmt::format("{} is cut short or malformed", what));
  if (left() != 0) return Error(ErrorCode::corrupt, fmt::format("{} has {} bytes too many", what, left()));
  return {};
}

}  // namespace kin

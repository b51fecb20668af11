#include "formats/xz/content_check.h"

namespace kin::formats::xz {
namespace {

// Eight tables, for eight bytes at a time.
constexpr std::size_t kSlices = 8;
constexpr auto kCrc64Tables = [] {
  std::array<std::array<std::uint64_t, 256>, kSlices> out{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xc96c5795d7870f42 : 0);
    out[0][i] = value;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice)
    for (std::size_t i = 0; i < 256; ++i)
      out[slice][i] = out[slice - 1][i] >> 8 ^ out[0][out[slice - 1][i] & 0xff];
  return out;
}();

void put_little_endian(Bytes& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

}  // namespace

std::optional<CheckId> parse_check(std::uint8_t id) {
  for (const CheckId known : {CheckId::none, CheckId::crc32, CheckId::crc64, CheckId::sha256})
    if (id == static_cast<std::uint8_t>(known)) return known;
  return std::nullopt;
}

std::size_t check_bytes(CheckId id) {
  switch (id) {
    case CheckId::none:
      return 0;
    case CheckId::crc32:
      return 4;
    case CheckId::crc64:
      return 8;
    case CheckId::sha256:
      return 32;
  }
  return 0;
}

void Crc64::add(ByteView bytes) {
  std::uint64_t state = state_;
  for (; bytes.size() >= kSlices; bytes = bytes.subspan(kSlices)) {
    std::uint64_t next = state;
    state = 0;
    for (std::size_t i = 0; i < kSlices; ++i, next >>= 8)
      state ^= kCrc64Tables[kSlices - 1 - i][(next ^ bytes[i]) & 0xff];
  }
  for (const std::uint8_t byte : bytes) state = state >> 8 ^ kCrc64Tables[0][(state ^ byte) & 0xff];
  state_ = state;
}

void ContentCheck::add(ByteView plain) {
  if (id_ == CheckId::crc32) crc32_.add(plain);
  if (id_ == CheckId::crc64) crc64_.add(plain);
  if (id_ == CheckId::sha256) sha256_.add(plain);
}

Bytes ContentCheck::finish() {
  Bytes out;
  if (id_ == CheckId::crc32) put_little_endian(out, crc32_.value(), 4);
  if (id_ == CheckId::crc64) put_little_endian(out, crc64_.value(), 8);
  if (id_ == CheckId::sha256) {
    const auto digest = sha256_.finish();
    out.assign(digest.begin(), digest.end());
  }
  return out;
}

}  // namespace kin::formats::xz

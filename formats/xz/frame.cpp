#include "formats/xz/frame.h"

#include "formats/fields.h"
#include "formats/xz/lzma.h"

namespace kin::formats::xz {
namespace {

constexpr std::array<std::uint8_t, 6> kMagic = {0xfd, '7', 'z', 'X', 'Z', 0};
constexpr std::uint8_t kLzma2 = 0x21;
constexpr std::uint8_t kHasEncodedBytes = 0x40, kHasPlainBytes = 0x80;
constexpr std::uint8_t kMostDictionaryCode = 40;

void put_u32(Bytes& out, std::uint64_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

void put_number(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

std::uint32_t crc32_of(ByteView bytes) {
  Crc32 crc;
  crc.add(bytes);
  return crc.value();
}

// Past a number, which has up to nine bytes.
bool skip_number(ByteView& bytes) {
  for (std::size_t i = 0; i < std::min<std::size_t>(9, bytes.size()); ++i) {
    if ((bytes[i] & 0x80) != 0) continue;
    bytes = bytes.subspan(i + 1);
    return true;
  }
  return false;
}

std::uint32_t dictionary_of(std::uint8_t code) {
  if (code == kMostDictionaryCode) return UINT32_MAX;
  return (2U | (code & 1U)) << (code / 2 + 11);
}

}  // namespace

Bytes stream_header(CheckId check) {
  Bytes out(kMagic.begin(), kMagic.end());
  out.push_back(0);
  out.push_back(static_cast<std::uint8_t>(check));
  put_u32(out, crc32_of(ByteView(out).subspan(kMagic.size())));
  return out;
}

std::optional<CheckId> parse_stream_header(ByteView bytes) {
  if (bytes.size() < kStreamHeaderBytes) return std::nullopt;
  const auto check = parse_check(bytes[kMagic.size() + 1]);
  if (!check || !equal(stream_header(*check), bytes.first(kStreamHeaderBytes))) return std::nullopt;
  return check;
}

std::optional<std::uint32_t> parse_block_header(ByteView header) {
  if (header.size() < 8 || header.size() != block_header_bytes(header[0])) return std::nullopt;
  const ByteView sum = header.last(4);
  ByteView rest = header.first(header.size() - 4);
  if (crc32_of(rest) != little_endian(sum)) return std::nullopt;
  const std::uint8_t flags = rest[1];
  if ((flags & ~(kHasEncodedBytes | kHasPlainBytes)) != 0) return std::nullopt;  // one filter
  rest = rest.subspan(2);
  if ((flags & kHasEncodedBytes) != 0 && !skip_number(rest)) return std::nullopt;
  if ((flags & kHasPlainBytes) != 0 && !skip_number(rest)) return std::nullopt;
  if (rest.size() < 3 || rest[0] != kLzma2 || rest[1] != 1 || rest[2] > kMostDictionaryCode)
    return std::nullopt;
  return dictionary_of(rest[2]);
}

bool Index::add(std::uint64_t unpadded_bytes, std::uint64_t plain_bytes) {
  put_number(records_, unpadded_bytes);
  put_number(records_, plain_bytes);
  return ++blocks_ <= kMostBlocks;
}

Bytes Index::finish(CheckId check) const {
  Bytes out = {0};
  put_number(out, blocks_);
  append(out, records_);
  out.resize(out.size() + padding_of(out.size()));
  put_u32(out, crc32_of(out));
  Bytes footer;
  put_u32(footer, out.size() / 4 - 1);
  footer.push_back(0);
  footer.push_back(static_cast<std::uint8_t>(check));
  put_u32(out, crc32_of(footer));
  append(out, footer);
  append(out, as_bytes("YZ"));
  return out;
}

}  // namespace kin::formats::xz

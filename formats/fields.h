// Numbers as they stand in the headers of containers.
#pragma once

#include "lib/base/bytes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace kin::formats {

inline std::uint64_t big_endian(ByteView field) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : field) value = value << 8 | byte;
  return value;
}

inline std::uint64_t little_endian(ByteView field) {
  std::uint64_t value = 0;
  for (std::size_t i = field.size(); i-- > 0;) value = value << 8 | field[i];
  return value;
}

// Digits of this base, and then only spaces. Nothing if it is anything else.
inline std::optional<std::uint64_t> digits(ByteView field, int base) {
  const char* const begin = as_text(field).data();
  const char* const end = begin + field.size();
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(begin, end, value, base);
  if (parsed.ec != std::errc() || !std::all_of(parsed.ptr, end, [](char c) { return c == ' '; }))
    return std::nullopt;
  return value;
}

// Up to the first zero byte.
inline std::string_view text_in(ByteView field) {
  const std::string_view text = as_text(field);
  return text.substr(0, text.find('\0'));
}

}  // namespace kin::formats

#include "lib/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <time.h>
#include <utility>

namespace kin {
namespace {

// Length of the valid UTF-8 sequence at the start of `bytes`; 0 if there is none. Overlong forms and
// surrogates are not valid.
std::size_t utf8_sequence(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  return size;
}

// Characters that make a terminal show a line in another order than it has, break it, or show nothing, so
// that two names look like one: U+061C, U+200B, U+200E/F, U+2028 to U+202E, U+2066 to U+2069, U+FEFF, and the
// tags, U+E0000 to U+E007F.
bool is_treacherous(std::string_view sequence) {
  constexpr std::pair<std::string_view, std::string_view> kRanges[] = {
      {"\xd8\x9c", "\xd8\x9c"},
      {"\xe2\x80\x8b", "\xe2\x80\x8b"},
      {"\xe2\x80\x8e", "\xe2\x80\x8f"},
      {"\xe2\x80\xa8", "\xe2\x80\xae"},
      {"\xe2\x81\xa6", "\xe2\x81\xa9"},
      {"\xef\xbb\xbf", "\xef\xbb\xbf"},
      {"\xf3\xa0\x80\x80", "\xf3\xa0\x81\xbf"},
  };
  // In UTF-8 the order of bytes is that of characters.
  return sequence.size() > 1 && std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) {
           return range.first <= sequence && sequence <= range.second;
         });
}

// A year that a date can be written with. File systems take any 64 bits for a time, and tm has room for 2^31
// years.
bool has_four_digits(const tm& parts) { return parts.tm_year >= -1900 && parts.tm_year <= 9999 - 1900; }

}  // namespace

std::string hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::optional<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char* end = text.data() + 2 * i + 2;
    // from_chars takes no sign and no space for an unsigned type, so two characters read are two digits.
    if (std::from_chars(end - 2, end, out[i], 16).ptr != end) return std::nullopt;
  }
  return out;
}

std::string printable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t size = utf8_sequence(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    // U+0080 to U+009F are control characters too: some terminals obey them.
    const bool c1_control = size == 2 && first == 0xc2 && static_cast<unsigned char>(bytes[1]) < 0xa0;
    const std::string_view sequence = bytes.substr(0, std::max<std::size_t>(size, 1));
    if (first == '\\') {
      out += "\\\\";
    } else if (size == 0 || first < 0x20 || first == 0x7f || c1_control || is_treacherous(sequence)) {
      for (const char byte : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      out += sequence;
    }
    bytes.remove_prefix(sequence.size());
  }
  return out;
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_sequence(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.9995 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.3f} {}", value, kUnits[unit]);
}

std::string human_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(0.0, std::round(seconds)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string grouped(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
  return out;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto bad = [&] {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("'{}' is not a size such as 500k, 2G or 1.5MiB", printable(text)));
  };
  double number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (status != std::errc{} || !(number >= 0)) return bad();
  if (!unit.empty() && unit != "B" && unit != "b") {
    static constexpr std::string_view kLetters = "kmgtpe";
    const std::size_t power = kLetters.find(static_cast<char>(unit[0] | 0x20));
    if (power == std::string_view::npos) return bad();
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "b" && unit != "iB" && unit != "ib") return bad();
    number = std::ldexp(number, 10 * (static_cast<int>(power) + 1));
  }
  if (number >= std::ldexp(1.0, 63)) return bad();
  return static_cast<std::uint64_t>(number);
}

Timestamp now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

std::string local_time(Timestamp time) {
  const time_t seconds = time.seconds;
  tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr || !has_four_digits(parts)) return fmt::format("@{}", seconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string iso_time(Timestamp time) {
  const time_t seconds = time.seconds;
  tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr || !has_four_digits(parts)) {
    // Nanoseconds count onwards, but what follows the point of a negative number counts backwards.
    if (seconds < 0 && time.nanoseconds > 0)
      return fmt::format("@{}.{:09}", seconds + 1, 1'000'000'000 - time.nanoseconds);
    return fmt::format("@{}.{:09}", seconds, time.nanoseconds);
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time.nanoseconds);
}

Result<Timestamp> parse_time(std::string_view text) {
  if (text == "now") return now();
  const std::string input(text);
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    tm parts{};
    const char* end = strptime(input.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const tm asked = parts;
    parts.tm_isdst = -1;
    const bool utc = std::string_view(format).ends_with('Z');
    const time_t seconds = utc ? timegm(&parts) : mktime(&parts);
    // 31 February would quietly become 3 March.
    if (parts.tm_mday != asked.tm_mday || parts.tm_mon != asked.tm_mon) break;
    return Timestamp{seconds, 0};
  }
  return Error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' is not a time such as 2026-11-16 or '2026-11-16 08:30:00'", printable(text)));
}

}  // namespace kin

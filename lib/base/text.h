// Text for people: bytes made printable, sizes, durations, times; and the same read back from what people
// type.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kin {

std::string hex(ByteView bytes);
std::optional<Bytes> from_hex(std::string_view text);

// Names on disk are bytes, and may hold escape sequences or broken UTF-8. What goes to a terminal has every
// control character and every byte outside valid UTF-8 as \xNN, and a backslash doubled, so that it is safe
// and can be told apart.
std::string printable(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

std::string human_bytes(std::uint64_t bytes);                      // "1.205 GiB"
std::string human_duration(double seconds);                        // "1:02:03"
std::string grouped(std::uint64_t number);                         // "12,345"
std::string counted(std::uint64_t number, std::string_view noun);  // "1 file", "12,345 files"

// "2G", "500k", "1.5MiB", "17": powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);

struct Timestamp {
  std::int64_t seconds = 0;  // since 1970, may be negative
  std::uint32_t nanoseconds = 0;
  auto operator<=>(const Timestamp&) const = default;
};

Timestamp now();
// Beyond the years 0 to 9999 both give "@" and the seconds since 1970, which date(1) reads.
std::string local_time(Timestamp time);  // "2026-11-16 08:30:00", for people
std::string iso_time(Timestamp time);    // "2026-11-16T08:30:00.123456789Z", for programs
Result<Timestamp> parse_time(
    std::string_view text);  // "now", "2026-11-16", "2026-11-16 08:30[:00]" local; "...Z" UTC

}  // namespace kin

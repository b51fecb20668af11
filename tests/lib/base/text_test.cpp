#include "lib/base/text.h"

#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>
#include <set>
#include <stdlib.h>
#include <time.h>

namespace kin {
namespace {

using testing::code_of;
using testing::error_of;
using testing::value_of;

// A time zone for the scope, so that the test means the same on every machine.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    if (const char* old = ::getenv("TZ")) old_ = old;
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  ~TimeZone() {
    old_ ? ::setenv("TZ", old_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> old_;
};

constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";

bool is_safe_for_a_terminal(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return false;
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return false;
  }
  return is_valid_utf8(text);
}

}  // namespace

TEST_CASE("hexadecimal reads back, in either case", "[text]") {
  const Bytes all = [] {
    Bytes out(256);
    for (std::size_t i = 0; i < 256; ++i) out[i] = static_cast<std::uint8_t>(i);
    return out;
  }();
  CHECK(hex({}).empty());
  CHECK(hex(Bytes{0x00, 0x0f, 0xf0, 0xab}) == "000ff0ab");
  CHECK(from_hex(hex(all)) == all);
  CHECK(from_hex("ABcd") == Bytes{0xab, 0xcd});
  CHECK(from_hex("") == Bytes{});
}

TEST_CASE("what is not hexadecimal is refused", "[text]") {
  const auto text = GENERATE(as<std::string>(), "0", "abc", "0g", "g0", " 1", "1 ", "+1", "-1", "0x", "1\n",
                             "a b c", "..", "ab\xff\xff");
  INFO(text);
  CHECK(from_hex(text) == std::nullopt);
  CHECK(from_hex(std::string("1\0", 2)) == std::nullopt);
}

TEST_CASE("plain text and valid UTF-8 print as they are", "[text]") {
  const auto text = GENERATE(as<std::string>(), "", "a b~", "Grüße", "日本語", "\xf0\x9f\x98\x80", "\xc2\xa0",
                             "\xf4\x8f\xbf\xbf");
  CHECK(printable(text) == text);
}

TEST_CASE("control characters, broken UTF-8 and backslashes are escaped", "[text]") {
  CHECK(printable("a\nb") == "a\\x0ab");
  CHECK(printable("\x1b[31m") == "\\x1b[31m");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\\x0a") == "\\\\x0a");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");                         // CSI, which some terminals obey
  CHECK(printable("gpj\xe2\x80\xae.exe") == "gpj\\xe2\\x80\\xae.exe");  // from right to left
  CHECK(printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");                // a line separator
  CHECK(printable("\xe2\x81\xa6") == "\\xe2\\x81\\xa6");
  CHECK(printable("\xd8\x9c") == "\\xd8\\x9c");  // the Arabic letter mark
  // What cannot be seen: a space of no width, a byte order mark, the first and the last tag.
  CHECK(printable("a\xe2\x80\x8b") == "a\\xe2\\x80\\x8b");
  CHECK(printable("\xef\xbb\xbf") == "\\xef\\xbb\\xbf");
  CHECK(printable("\xf3\xa0\x80\x80\xf3\xa0\x81\xbf") == "\\xf3\\xa0\\x80\\x80\\xf3\\xa0\\x81\\xbf");
  for (const char* harmless : {"\xe2\x80\xa6", "\xd8\x9b", "\xd8\x9d", "\xe2\x80\x8a", "\xe2\x80\xaf",
                               "\xef\xbb\xbe", "\xf3\xa0\x82\x80", "\xf3\x9f\xbf\xbf"})
    CHECK(printable(harmless) == harmless);
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("a\xc3") == "a\\xc3");                  // cut short
  CHECK(printable("\xc3(") == "\\xc3(");                  // not followed by a continuation
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // an overlong slash
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");  // and another
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("no bytes whatever reach the terminal as control characters", "[text]") {
  testing::Random random(2);
  for (int round = 0; round < 20'000; ++round) {
    const Bytes bytes = testing::random_bytes(random.next(), random.below(12));
    if (const std::string shown = printable(as_text(bytes)); !is_safe_for_a_terminal(shown))
      FAIL(hex(bytes) << " shows as " << shown);
  }
}

TEST_CASE("different names never print alike", "[text]") {
  std::set<std::string> shown;
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      shown.insert(printable(std::string{static_cast<char>(a), static_cast<char>(b)}));
  CHECK(shown.size() == 65536);
}

TEST_CASE("UTF-8 is valid at the borders of each length and not beyond", "[text]") {
  for (const char* valid : {"", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                            "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(is_valid_utf8(valid));
  for (const char* invalid :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0", "\xe0\x9f\xbf", "\xe0\xa0",
        "\xe1\x80\x7f", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xfe", "\xff", "ok\xff"}) {
    INFO(hex(as_bytes(invalid)));
    CHECK_FALSE(is_valid_utf8(invalid));
  }
}

TEST_CASE("sizes are shown in the unit that fits", "[text]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.000 KiB");
  CHECK(human_bytes(1536) == "1.500 KiB");
  CHECK(human_bytes((1 << 20) - 1) == "1023.999 KiB");
  CHECK(human_bytes(1 << 20) == "1.000 MiB");
  CHECK(human_bytes((std::uint64_t{1} << 30) - 1) == "1.000 GiB");  // never 1024.000 MiB
  CHECK(human_bytes(std::uint64_t{5} << 40) == "5.000 TiB");
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "16.000 EiB");
}

TEST_CASE("durations are shown in hours, minutes and seconds", "[text]") {
  CHECK(human_duration(0) == "0:00");
  CHECK(human_duration(-5) == "0:00");
  CHECK(human_duration(59.4) == "0:59");
  CHECK(human_duration(59.5) == "1:00");
  CHECK(human_duration(3599.6) == "1:00:00");
  CHECK(human_duration(3723) == "1:02:03");
  CHECK(human_duration(360000) == "100:00:00");
}

TEST_CASE("large numbers are grouped by thousands", "[text]") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(12345) == "12,345");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(std::numeric_limits<std::uint64_t>::max()) == "18,446,744,073,709,551,615");
}

TEST_CASE("sizes are read as people write them", "[text]") {
  CHECK(value_of(parse_size("0")) == 0);
  CHECK(value_of(parse_size("17")) == 17);
  CHECK(value_of(parse_size("17B")) == 17);
  CHECK(value_of(parse_size("500k")) == 500 << 10);
  CHECK(value_of(parse_size("500K")) == 500 << 10);
  CHECK(value_of(parse_size("2G")) == std::uint64_t{2} << 30);
  CHECK(value_of(parse_size("2GB")) == std::uint64_t{2} << 30);
  CHECK(value_of(parse_size("1.5MiB")) == 3 << 19);
  CHECK(value_of(parse_size("3T")) == std::uint64_t{3} << 40);
  CHECK(value_of(parse_size("7E")) == std::uint64_t{7} << 60);
}

TEST_CASE("what is not a size is refused, and named", "[text]") {
  const auto text = GENERATE(as<std::string>(), "", "k", "-1", "+1", "1x", "1kk", "1kBx", "1.2.3", "1e3",
                             "0x10", " 1", "1 k", "inf", "nan", "8E", "99999999999999999999", "1e999", "1\n");
  INFO(text);
  const Error error = error_of(parse_size(text));
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_THAT(error.message(), Catch::Contains("'" + printable(text) + "'"));
}

TEST_CASE("times are shown in UTC for programs and in local time for people", "[text]") {
  const TimeZone zone(kBerlin);
  CHECK(iso_time({0, 0}) == "1970-01-01T00:00:00.000000000Z");
  CHECK(iso_time({-1, 5}) == "1969-12-31T23:59:59.000000005Z");
  CHECK(iso_time({1794817800, 123456789}) == "2026-11-16T08:30:00.123456789Z");
  CHECK(local_time({1794817800, 123456789}) == "2026-11-16 09:30:00");
  CHECK(local_time({1782894600, 0}) == "2026-07-01 10:30:00");  // summer time
}

TEST_CASE("a time beyond four digits of a year is shown in seconds", "[text]") {
  const TimeZone zone("UTC");
  CHECK(local_time({253402300799, 0}) == "9999-12-31 23:59:59");
  CHECK(local_time({253402300800, 0}) == "@253402300800");
  CHECK(local_time({-62167219200, 0}) == "0000-01-01 00:00:00");
  CHECK(local_time({-62167219201, 0}) == "@-62167219201");
  CHECK(iso_time({253402300800, 5}) == "@253402300800.000000005");
  // A quarter of a second after that one, as date(1) reads it.
  CHECK(iso_time({-62167219202, 250'000'000}) == "@-62167219201.750000000");
  CHECK(iso_time({-62167219202, 0}) == "@-62167219202.000000000");
  for (const std::int64_t seconds :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
        std::int64_t{67768036191676799}, std::int64_t{-67768040609740800}}) {
    CHECK(local_time({seconds, 0}) == "@" + std::to_string(seconds));
    CHECK(iso_time({seconds, 0}) == "@" + std::to_string(seconds) + ".000000000");
  }
}

TEST_CASE("times are read as local, or with a Z as UTC", "[text]") {
  const TimeZone zone(kBerlin);
  CHECK(value_of(parse_time("2026-11-16T08:30:00Z")) == Timestamp{1794817800, 0});
  CHECK(value_of(parse_time("2026-11-16 09:30:00")) == Timestamp{1794817800, 0});
  CHECK(value_of(parse_time("2026-11-16T09:30:00")) == Timestamp{1794817800, 0});
  CHECK(value_of(parse_time("2026-11-16 09:30")) == Timestamp{1794817800, 0});
  CHECK(value_of(parse_time("2026-07-01 10:30")) == Timestamp{1782894600, 0});
  CHECK(value_of(parse_time("2026-11-16")) == Timestamp{1794817800 - 8 * 3600 - 1800 - 3600, 0});
  CHECK(value_of(parse_time("1969-12-31T23:59:59Z")) == Timestamp{-1, 0});
  CHECK(value_of(parse_time("2024-02-29T00:00:00Z")).seconds == 1709164800);
}

TEST_CASE("a local time that is shown reads back as the same second", "[text]") {
  const TimeZone zone(kBerlin);
  for (const std::int64_t seconds :
       {std::int64_t{0}, std::int64_t{1794817800}, std::int64_t{1782894600}, std::int64_t{4102444799}})
    CHECK(value_of(parse_time(local_time({seconds, 0}))).seconds == seconds);
}

TEST_CASE("now lies between two readings of the clock", "[text]") {
  const std::int64_t before = ::time(nullptr);
  const Timestamp reading = value_of(parse_time("now"));
  // time() may lag behind the fine clock by a tick.
  CHECK(reading.seconds >= before);
  CHECK(reading.seconds <= ::time(nullptr) + 1);
  CHECK(reading.nanoseconds < 1'000'000'000);
}

TEST_CASE("what is not a time is refused: a day that there is not, and anything after it", "[text]") {
  const auto text =
      GENERATE(as<std::string>(), "", "yesterday", "2026", "2026-13-01", "2026-02-31", "2026-02-29",
               "2026-11-31 10:00", "2026-11-16x", "2026-11-16 25:00", "2026-11-16 10:61",
               "2026-11-16 10:00:00 ", "2026-11-16T10:00:00ZZ", "-1", "now ");
  INFO(text);
  CHECK(code_of(parse_time(text)) == ErrorCode::invalid_argument);
}

}  // namespace kin

#include "lib/sync/mbox_file.h"

#include "lib/base/wire.h"
#include "lib/sync/mbox_sender.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <time.h>
#include <unordered_map>

namespace kin::sync::mbox {
namespace {

constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::size_t kMostEnvelopeWords = 64;
constexpr std::size_t kNumberBytes = 8;  // of a digest, in a message's name

// Which of the names of three letters it is.
std::optional<int> place_among(std::string_view word, std::string_view names) {
  const std::size_t at = word.size() == 3 ? names.find(word) : std::string_view::npos;
  if (at == std::string_view::npos || at % 3 != 0) return std::nullopt;
  return static_cast<int>(at / 3);
}

std::optional<int> number_of(std::string_view text, std::size_t least, std::size_t most) {
  if (text.size() < least || text.size() > most) return std::nullopt;
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

bool read_clock(std::string_view word, tm& date) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view rest = word.substr(colon + 1);
  const auto hour = number_of(word.substr(0, colon), 1, 2), minute = number_of(rest.substr(0, 2), 2, 2);
  const auto second = rest.size() == 2 ? std::optional(0)
                                       : number_of(rest.substr(std::min<std::size_t>(rest.size(), 3)), 2, 2);
  if (!hour || !minute || !second || (rest.size() > 2 && rest[2] != ':')) return false;
  date.tm_hour = *hour;
  date.tm_min = *minute;
  date.tm_sec = *second;
  return true;
}

struct Envelope {
  std::string sender;
  tm date{};
};

// "From ", who, and a date as asctime() writes it, perhaps with a time zone before or behind the year.
std::optional<Envelope> read_envelope(std::string_view line) {
  if (!line.starts_with(kEnvelopeStart) || line.size() > kMostEnvelope) return std::nullopt;
  const std::vector<std::string_view> words = split_words(line, kMostEnvelopeWords);
  for (std::size_t i = 2; i + 4 < words.size(); ++i) {
    tm date{};
    const auto month = place_among(words[i + 1], kMonths), day = number_of(words[i + 2], 1, 2);
    if (!place_among(words[i], kDays) || !month || !day || !read_clock(words[i + 3], date)) continue;
    std::optional<int> year = number_of(words[i + 4], 4, 4);
    if (!year && i + 5 < words.size()) year = number_of(words[i + 5], 4, 4);
    if (!year) continue;
    date.tm_mon = *month;
    date.tm_mday = *day;
    date.tm_year = *year - 1900;
    std::string sender;
    for (std::size_t k = 1; k < i; ++k) sender.append(k > 1 ? " " : "").append(words[k]);
    return Envelope{std::move(sender), date};
  }
  return std::nullopt;
}

// With its end; nothing if it is too long for an envelope.
std::string_view first_line(std::string_view text) {
  const std::size_t end = text.substr(0, kMostEnvelope).find('\n');
  if (end != std::string_view::npos) return text.substr(0, end + 1);
  return text.size() < kMostEnvelope ? text : std::string_view();
}

// Where the empty line begins that ends at `end`; `text` begins at the beginning of a line.
std::optional<std::size_t> empty_line_before(std::string_view text, std::size_t end) {
  if (end == 0 || text[end - 1] != '\n') return std::nullopt;
  std::size_t begin = end - 1;
  if (begin > 0 && text[begin - 1] == '\r') --begin;
  return begin == 0 || text[begin - 1] == '\n' ? std::optional(begin) : std::nullopt;
}

}  // namespace

bool begins_as_mbox(std::string_view head) { return read_envelope(first_line(head)).has_value(); }

std::vector<Range> find_messages(ByteView file) {
  constexpr std::string_view kNext = "\nFrom ";
  std::vector<Range> out;
  for (std::size_t begin = 0; begin < file.size();) {
    const std::size_t header = begin + first_line(as_text(file.subspan(begin))).size();
    const std::string_view text = as_text(file.subspan(header));
    std::size_t end = empty_line_before(text, text.size()).value_or(text.size()), next = text.size();
    for (std::size_t at = text.find(kNext); at != std::string_view::npos; at = text.find(kNext, at + 1)) {
      const std::optional<std::size_t> empty = empty_line_before(text, at + 1);
      if (!empty || !read_envelope(first_line(text.substr(at + 1)))) continue;
      end = *empty;
      next = at + 1;
      break;
    }
    out.push_back({begin, header, header + end});
    begin = header + next;
  }
  return out;
}

std::string_view line_end_of(std::string_view head) {
  return first_line(head).ends_with("\r\n") ? "\r\n" : "\n";
}

std::int64_t envelope_time(std::string_view envelope) {
  std::optional<Envelope> read = read_envelope(envelope);
  return read ? static_cast<std::int64_t>(::timegm(&read->date)) : 0;
}

std::string envelope_sender(std::string_view envelope) {
  std::optional<Envelope> read = read_envelope(envelope);
  return read ? std::move(read->sender) : "";
}

std::string make_envelope(std::string_view sender, Timestamp time, std::string_view line_end) {
  constexpr std::int64_t kYear1970 = 0, kYear9999 = 253'402'300'799;
  // Beyond four digits of year it would be no envelope.
  const time_t seconds =
      time.seconds < kYear1970 || time.seconds > kYear9999 ? 0 : static_cast<time_t>(time.seconds);
  tm date{};
  ::gmtime_r(&seconds, &date);
  const auto name = [](std::string_view names, int at) {
    return names.substr(static_cast<std::size_t>(at) * 3, 3);
  };
  return fmt::format("From {} {} {} {:2} {:02}:{:02}:{:02} {:04}{}", sender,
                     name(kDays, (date.tm_wday + 6) % 7), name(kMonths, date.tm_mon), date.tm_mday,
                     date.tm_hour, date.tm_min, date.tm_sec, date.tm_year + 1900, line_end);
}

std::uint64_t Row::number() const { return WireReader(digest).u64(); }

std::string Row::local() const {
  return fmt::format("{}-{:02}", hex(ByteView(digest).first(kNumberBytes)), ordinal);
}

Row make_row(ByteView file, const Range& range) {
  const Bytes content = content_of(file.subspan(range.header, range.end - range.header));
  Row row{range, hash(content), content.size(), 0, 0, {}};
  const std::string_view envelope = as_text(file.subspan(range.begin, range.header - range.begin));
  row.time = envelope_time(envelope);
  row.sender = envelope_sender(envelope);
  if (row.sender == guess_sender(content)) row.sender.clear();
  return row;
}

Table Table::of(ByteView file) {
  std::vector<Row> rows;
  for (const Range& range : find_messages(file)) rows.push_back(make_row(file, range));
  Table table;
  table.add(std::move(rows));
  return table;
}

void Table::add(std::vector<Row> rows) {
  std::unordered_map<std::uint64_t, std::uint32_t> counts;
  for (Row& row : rows) {
    const auto [count, is_first] = counts.try_emplace(row.number(), 0);
    if (is_first) {
      const auto [begin, end] = alike(row.digest);
      count->second = static_cast<std::uint32_t>(end - begin);
    }
    row.ordinal = count->second++;
  }
  const auto had = static_cast<std::ptrdiff_t>(rows_.size());
  for (Row& row : rows) {
    order_.push_back(static_cast<std::uint32_t>(rows_.size()));
    rows_.push_back(row);
  }
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    const int compared = std::memcmp(rows_[a].digest.data(), rows_[b].digest.data(), kNumberBytes);
    return compared != 0 ? compared < 0 : rows_[a].local() < rows_[b].local();
  };
  std::sort(order_.begin() + had, order_.end(), less);
  std::inplace_merge(order_.begin(), order_.begin() + had, order_.end(), less);
}

void Table::drop_last() {
  rows_.pop_back();
  std::erase(order_, static_cast<std::uint32_t>(rows_.size()));
}

const Row* Table::find(const std::string& local) const {
  const auto by_local = [&](std::uint32_t at, const std::string& wanted) {
    return rows_[at].local() < wanted;
  };
  const auto found = std::lower_bound(order_.begin(), order_.end(), local, by_local);
  return found != order_.end() && rows_[*found].local() == local ? &rows_[*found] : nullptr;
}

Table::Rows Table::alike(const Digest& digest) const {
  const auto before = [&](std::uint32_t at) {
    return std::memcmp(rows_[at].digest.data(), digest.data(), kNumberBytes) < 0;
  };
  const auto not_behind = [&](std::uint32_t at) {
    return std::memcmp(rows_[at].digest.data(), digest.data(), kNumberBytes) <= 0;
  };
  const auto begin = std::partition_point(order_.begin(), order_.end(), before);
  return {begin, std::partition_point(begin, order_.end(), not_behind)};
}

std::vector<const Row*> Table::equal_to(const Digest& digest) const {
  std::vector<const Row*> out;
  const auto [begin, end] = alike(digest);
  for (auto at = begin; at != end; ++at)
    if (rows_[*at].digest == digest) out.push_back(&rows_[*at]);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kin::sync::mbox

#include "lib/engine/retention.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <optional>
#include <tuple>

namespace kin {
namespace {

std::tm local_calendar(const Timestamp& time) {
  const std::time_t seconds = time.seconds;
  std::tm out{};
  if (::localtime_r(&seconds, &out) == nullptr) out = {};  // a year that does not fit
  return out;
}

// The same for all snapshots of one hour, day, ...; they come in the order of time, so only neighbours are
// ever compared. An hour that a clock goes through twice is two: the offset tells them apart.
std::string hour_of(const std::tm& t) {
  return fmt::format("{}-{}-{} {} {}", t.tm_year, t.tm_mon, t.tm_mday, t.tm_hour, t.tm_gmtoff);
}
std::string day_of(const std::tm& t) { return fmt::format("{}-{}-{}", t.tm_year, t.tm_mon, t.tm_mday); }
std::string week_of(const std::tm& t) {
  std::tm thursday = t;  // of its week: the year that the week belongs to, as ISO 8601 has it
  thursday.tm_mday += 3 - (t.tm_wday + 6) % 7;
  thursday.tm_hour = 12;
  thursday.tm_min = thursday.tm_sec = 0;
  thursday.tm_isdst = -1;
  std::mktime(&thursday);
  return fmt::format("{}-{}", thursday.tm_year, thursday.tm_yday / 7);
}
std::string month_of(const std::tm& t) { return fmt::format("{}-{}", t.tm_year, t.tm_mon); }
std::string year_of(const std::tm& t) { return fmt::format("{}", t.tm_year); }
std::string itself(const std::tm&) { return {}; }

Timestamp before(const Timestamp& time, const CalendarSpan& span) {
  std::tm t = local_calendar(time);
  const auto minus = [](int value, unsigned by) {
    constexpr unsigned kMost = 1'000'000;  // as parse_calendar_span() lets through
    return value - static_cast<int>(std::min(by, kMost));
  };
  t.tm_year = minus(t.tm_year, span.years);
  t.tm_mon = minus(t.tm_mon, span.months);
  t.tm_mday = minus(t.tm_mday, span.days);
  t.tm_hour = minus(t.tm_hour, span.hours);
  t.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&t);
  // -1 is a second before 1970 as well as an error; neither keeps less than it should.
  return {seconds, time.nanoseconds};
}

struct Rule {
  const char* reason;
  std::string (*bucket)(const std::tm&);
  std::uint32_t RetentionPolicy::*count;
  CalendarSpan RetentionPolicy::*within;
};

constexpr Rule kRules[] = {
    {"last", itself, &RetentionPolicy::last, &RetentionPolicy::within},
    {"hourly", hour_of, &RetentionPolicy::hourly, &RetentionPolicy::within_hourly},
    {"daily", day_of, &RetentionPolicy::daily, &RetentionPolicy::within_daily},
    {"weekly", week_of, &RetentionPolicy::weekly, &RetentionPolicy::within_weekly},
    {"monthly", month_of, &RetentionPolicy::monthly, &RetentionPolicy::within_monthly},
    {"yearly", year_of, &RetentionPolicy::yearly, &RetentionPolicy::within_yearly},
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

}  // namespace

Result<CalendarSpan> parse_calendar_span(std::string_view text) {
  const Error bad(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a time such as 1y6m, 14d or 3h (years, months, days, hours)",
                              printable(text)));
  CalendarSpan out;
  if (text.empty()) return bad;
  constexpr std::uint32_t kMost = 1'000'000;
  std::string_view units = "ymdh";  // each at most once, in this order
  while (!text.empty()) {
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto used = static_cast<std::size_t>(parsed.ptr - text.data());
    if (parsed.ec != std::errc() || used == text.size() || value > kMost) return bad;
    const std::size_t unit = units.find(text[used]);
    if (unit == std::string_view::npos) return bad;
    switch (units[unit]) {
      case 'y':
        out.years = value;
        break;
      case 'm':
        out.months = value;
        break;
      case 'd':
        out.days = value;
        break;
      default:
        out.hours = value;
    }
    units.remove_prefix(unit + 1);
    text.remove_prefix(used + 1);
  }
  if (out.is_zero()) return bad;
  return out;
}

bool RetentionPolicy::is_empty() const {
  return tags.empty() && std::all_of(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
           return this->*rule.count == 0 && (this->*rule.within).is_zero();
         });
}

Result<SnapshotGrouping> parse_snapshot_grouping(std::string_view text) {
  SnapshotGrouping out{false, false, false};
  for (const std::string& word : split(text)) {
    if (word == "host" || word == "hosts")
      out.host = true;
    else if (word == "path" || word == "paths")
      out.paths = true;
    else if (word == "tag" || word == "tags")
      out.tags = true;
    else
      return Error(
          ErrorCode::invalid_argument,
          fmt::format("snapshots are grouped by host, paths and tags, not by '{}'", printable(word)));
  }
  return out;
}

std::vector<SnapshotGroup> group_snapshots(const std::vector<const Snapshot*>& snapshots,
                                           const SnapshotGrouping& grouping) {
  using GroupKey = std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>;
  std::map<GroupKey, SnapshotGroup> groups;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const Snapshot& snapshot = *snapshots[i];
    SnapshotGroup group;
    if (grouping.host) group.host = snapshot.host;
    if (grouping.paths) group.paths = snapshot.paths;
    if (grouping.tags) group.tags = snapshot.tags;
    std::sort(group.paths.begin(), group.paths.end());
    GroupKey key(group.host, group.paths, group.tags);
    groups.try_emplace(std::move(key), std::move(group)).first->second.members.push_back(i);
  }
  std::vector<SnapshotGroup> out;
  for (auto& [key, group] : groups) {
    std::stable_sort(group.members.begin(), group.members.end(),
                     [&](std::size_t a, std::size_t b) { return snapshots[a]->time > snapshots[b]->time; });
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<std::vector<std::string>> apply_policy(const std::vector<const Snapshot*>& snapshots,
                                                   const RetentionPolicy& policy, const Timestamp& now) {
  constexpr std::int64_t kSlackSeconds = 86'400;  // who knows whose clock is right
  std::vector<std::vector<std::string>> reasons(snapshots.size());
  std::size_t first = 0;
  for (; first < snapshots.size() && snapshots[first]->time.seconds > now.seconds + kSlackSeconds; ++first)
    reasons[first].emplace_back("yet to come");
  if (first == snapshots.size()) return reasons;
  for (const Rule& rule : kRules) {
    std::uint32_t left = policy.*rule.count;
    const CalendarSpan& span = policy.*rule.within;
    const bool is_within = !span.is_zero();
    const Timestamp since = is_within ? before(snapshots[first]->time, span) : Timestamp();
    std::optional<std::string> last;
    for (std::size_t i = first; i < snapshots.size(); ++i) {
      std::string bucket = rule.bucket(local_calendar(snapshots[i]->time));
      if (rule.bucket != itself && last == bucket) continue;
      last = std::move(bucket);
      if (left > 0) {
        reasons[i].emplace_back(rule.reason);
        if (left != RetentionPolicy::kAll) --left;
      } else if (is_within && snapshots[i]->time > since) {
        reasons[i].push_back(rule.bucket == itself ? "within" : std::string("within ") + rule.reason);
      }
    }
  }
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const std::vector<std::string>& has = snapshots[i]->tags;
    for (const std::string& list : policy.tags) {
      const std::vector<std::string> wanted = split(list);
      if (std::all_of(wanted.begin(), wanted.end(), [&](const std::string& tag) {
            return std::find(has.begin(), has.end(), tag) != has.end();
          }))
        reasons[i].push_back("tag " + list);
    }
  }
  return reasons;
}

}  // namespace kin

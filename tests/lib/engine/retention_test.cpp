#include "lib/engine/retention.h"

#include "tests/support/expect.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <ctime>
#include <set>

namespace kin {
namespace {

using testing::value_of;

constexpr std::int64_t kHour = 3600, kDay = 24 * kHour;
constexpr std::int64_t kMonday = 1'762'128'000;  // 2025-11-03 00:00:00 UTC

// Hours and days are those of a zone; which, tests must know.
struct Zone {
  explicit Zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    ::unsetenv("TZ");
    ::tzset();
  }
};

struct History {
  std::vector<Snapshot> snapshots;
  Timestamp now{kMonday + 10'000 * kDay, 0};

  void add(std::int64_t seconds, std::vector<std::string> tags = {}) {
    Snapshot snapshot;
    snapshot.time = {seconds, 0};
    snapshot.tags = std::move(tags);
    snapshots.push_back(std::move(snapshot));
  }
  // The times of those that are kept.
  std::set<std::int64_t> kept(const RetentionPolicy& policy) const {
    std::vector<const Snapshot*> newest_first;
    for (const Snapshot& snapshot : snapshots) newest_first.insert(newest_first.begin(), &snapshot);
    const auto reasons = apply_policy(newest_first, policy, now);
    std::set<std::int64_t> out;
    for (std::size_t i = 0; i < reasons.size(); ++i)
      if (!reasons[i].empty()) out.insert(newest_first[i]->time.seconds);
    return out;
  }
};

TEST_CASE("of each day the newest snapshot is kept, of as many days as have one", "[retention]") {
  const Zone zone("UTC");
  History history;
  for (int day = 0; day < 10; ++day) {
    if (day == 7) continue;  // the machine was off
    history.add(kMonday + day * kDay + kHour);
    history.add(kMonday + day * kDay + 20 * kHour);
  }
  RetentionPolicy policy;
  policy.daily = 3;
  CHECK(history.kept(policy) == std::set<std::int64_t>{kMonday + 6 * kDay + 20 * kHour,
                                                       kMonday + 8 * kDay + 20 * kHour,
                                                       kMonday + 9 * kDay + 20 * kHour});
  policy = {};
  policy.last = 2;
  CHECK(history.kept(policy).size() == 2);
  policy.last = RetentionPolicy::kAll;
  CHECK(history.kept(policy).size() == history.snapshots.size());
}

TEST_CASE("rules add up, and none takes from another", "[retention]") {
  const Zone zone("UTC");
  History history;
  for (int day = 0; day < 800; ++day) history.add(kMonday + day * kDay);
  RetentionPolicy policy;
  policy.daily = 7;
  policy.weekly = 4;
  policy.monthly = 12;
  policy.yearly = 2;
  const auto all = history.kept(policy);
  std::set<std::int64_t> each;
  for (const auto rule : {&RetentionPolicy::daily, &RetentionPolicy::weekly, &RetentionPolicy::monthly,
                          &RetentionPolicy::yearly}) {
    RetentionPolicy one;
    one.*rule = policy.*rule;
    const auto kept = history.kept(one);
    CHECK(kept.size() == policy.*rule);
    each.insert(kept.begin(), kept.end());
  }
  CHECK(all == each);
}

TEST_CASE("a week begins on Monday, also across a year's end", "[retention]") {
  const Zone zone("UTC");
  History history;
  const std::int64_t december_29 = kMonday + 56 * kDay;  // a Monday of 2025; its week ends in 2026
  for (int day = 0; day < 7; ++day) history.add(december_29 + day * kDay);
  RetentionPolicy policy;
  policy.weekly = 5;
  CHECK(history.kept(policy) == std::set<std::int64_t>{december_29 + 6 * kDay});
  history.add(december_29 + 7 * kDay);
  CHECK(history.kept(policy).size() == 2);
}

TEST_CASE("days are those of the place, and an hour that comes twice is two", "[retention]") {
  const Zone zone("Europe/Berlin");
  History history;
  history.add(kMonday + 22 * kHour);  // 23:00 in Berlin
  history.add(kMonday + 23 * kHour);  // the next day there
  RetentionPolicy policy;
  policy.daily = 5;
  CHECK(history.kept(policy).size() == 2);
  History change;
  const std::int64_t clocks_go_back = 1'761'440'400;  // 2025-10-26 01:00 UTC
  change.add(clocks_go_back - kHour / 2);             // 02:30, summer time
  change.add(clocks_go_back + kHour / 2);             // 02:30 again
  policy = {};
  policy.hourly = 5;
  CHECK(change.kept(policy).size() == 2);
}

TEST_CASE("within counts back from the newest snapshot, by the calendar", "[retention]") {
  const Zone zone("UTC");
  History history;
  for (int day = 0; day < 90; ++day) history.add(kMonday + day * kDay);
  RetentionPolicy policy;
  policy.within = value_of(parse_calendar_span("14d"));
  CHECK(history.kept(policy).size() == 14);
  policy.within = value_of(parse_calendar_span("1m"));  // the newest is of the last day of January
  CHECK(history.kept(policy).size() == 31);
  policy = {};
  policy.within_weekly = value_of(parse_calendar_span("1m"));
  CHECK(history.kept(policy).size() == 5);
}

TEST_CASE("tags keep what has all of a list", "[retention]") {
  History history;
  history.add(1, {"a"});
  history.add(2, {"a", "b"});
  history.add(3);
  RetentionPolicy policy;
  policy.tags = {"a,b"};
  CHECK(history.kept(policy) == std::set<std::int64_t>{2});
  policy.tags = {"a"};
  CHECK(history.kept(policy) == std::set<std::int64_t>{1, 2});
}

TEST_CASE("a policy that says nothing is empty", "[retention]") {
  RetentionPolicy policy;
  CHECK(policy.is_empty());
  policy.within_yearly.years = 1;
  CHECK_FALSE(policy.is_empty());
  policy = {};
  policy.tags = {"a"};
  CHECK_FALSE(policy.is_empty());
}

TEST_CASE("a time of the calendar is years, months, days and hours, in this order", "[retention]") {
  const CalendarSpan span = value_of(parse_calendar_span("2y5m7d3h"));
  CHECK(span.years == 2);
  CHECK(span.months == 5);
  CHECK(span.days == 7);
  CHECK(span.hours == 3);
  for (const char* const bad :
       {"", "0d", "d", "7", "7w", "3h7d", "1d1d", "-1d", "1.5d", "99999999d", " 1d"}) {
    INFO(bad);
    CHECK(parse_calendar_span(bad).error().code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("snapshots are grouped by what is asked for", "[retention]") {
  std::vector<Snapshot> snapshots(4);
  snapshots[0].host = snapshots[1].host = "a";
  snapshots[2].host = snapshots[3].host = "b";
  for (int i = 0; i < 4; ++i) {
    snapshots[i].time = {i, 0};
    snapshots[i].paths = i == 3 ? std::vector<std::string>{"/y", "/x"} : std::vector<std::string>{"/x", "/y"};
  }
  snapshots[1].paths = {"/z"};
  std::vector<const Snapshot*> pointers;
  for (const Snapshot& snapshot : snapshots) pointers.push_back(&snapshot);
  const auto sizes = [&](const char* by) {
    std::vector<std::size_t> out;
    for (const SnapshotGroup& group : group_snapshots(pointers, value_of(parse_snapshot_grouping(by))))
      out.push_back(group.members.size());
    return out;
  };
  CHECK(sizes("") == std::vector<std::size_t>{4});
  CHECK(sizes("host") == std::vector<std::size_t>{2, 2});
  CHECK(sizes("host,paths") == std::vector<std::size_t>{1, 1, 2});  // whatever the order of paths
  CHECK(sizes("paths") == std::vector<std::size_t>{3, 1});
  CHECK(group_snapshots(pointers, {}).back().members == std::vector<std::size_t>{3, 2});
  CHECK_FALSE(parse_snapshot_grouping("host,colour"));
}

TEST_CASE("snapshots of a clock that was ahead are kept, and take no other's place", "[retention]") {
  const Zone zone("UTC");
  History history;
  for (int day = 0; day < 6; ++day) history.add(kMonday + day * kDay);
  const std::int64_t newest = kMonday + 5 * kDay, ahead = kMonday + 4000 * kDay;
  history.add(ahead);
  history.add(ahead + kDay);
  history.now = {newest + kHour, 0};
  RetentionPolicy policy;
  policy.last = 1;
  CHECK(history.kept(policy) == std::set<std::int64_t>{newest, ahead, ahead + kDay});
  policy = {};
  policy.daily = 2;
  CHECK(history.kept(policy) == std::set<std::int64_t>{newest - kDay, newest, ahead, ahead + kDay});
  policy = {};
  policy.within.days = 2;
  CHECK(history.kept(policy) == std::set<std::int64_t>{newest - kDay, newest, ahead, ahead + kDay});
  // Another machine's clock, or a zone, may be a day off.
  history.now = {newest - kDay, 0};
  CHECK(history.kept(policy) == std::set<std::int64_t>{newest - kDay, newest, ahead, ahead + kDay});
  // The clock of who forgets stands at 1970: it is not for that one to say which are old.
  history.now = {0, 0};
  CHECK(history.kept(policy).size() == history.snapshots.size());
}

}  // namespace
}  // namespace kin

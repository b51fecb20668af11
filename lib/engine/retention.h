// Which snapshots a policy keeps: the newest of each of the last hours, days, weeks, months and years that
// have one, and whatever else it names. Pure: it looks at no repository, and is told the time. "Within"
// counts back from the newest snapshot, not from now, so that a machine which was off for a year does not
// lose all it has.
#pragma once

#include "lib/object/snapshot.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kin {

// A time of the calendar: "1y5m7d2h". Months and years have the length that they have.
struct CalendarSpan {
  unsigned years = 0, months = 0, days = 0, hours = 0;
  bool is_zero() const { return years == 0 && months == 0 && days == 0 && hours == 0; }
};
Result<CalendarSpan> parse_calendar_span(std::string_view text);

struct RetentionPolicy {
  static constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();

  // How many; 0: none for this reason.
  std::uint32_t last = 0, hourly = 0, daily = 0, weekly = 0, monthly = 0, yearly = 0;
  // All of that time, or one of each hour, day, ... of it; zero: none for this reason.
  CalendarSpan within, within_hourly, within_daily, within_weekly, within_monthly, within_yearly;
  std::vector<std::string> tags;  // each a list "a,b" of which a snapshot must have all

  bool is_empty() const;
};

// By which snapshots a policy is applied on its own.
struct SnapshotGrouping {
  bool host = true, paths = true, tags = false;
};
// "host,paths"; empty: all are one group. invalid_argument for other words.
Result<SnapshotGrouping> parse_snapshot_grouping(std::string_view text);

struct SnapshotGroup {
  std::string host;  // of all in it, as far as they are grouped by it
  std::vector<std::string> paths, tags;
  std::vector<std::size_t> members;  // positions, the newest first
};
// In the order of host, paths and tags.
std::vector<SnapshotGroup> group_snapshots(const std::vector<const Snapshot*>& snapshots,
                                           const SnapshotGrouping& grouping);

// Of the snapshots of one group, the newest first: why each is kept; no reason: it goes. Hours and days are
// those of the local time zone, weeks begin on Monday. Those that are later than `now` by more than a day, as
// a wrong clock makes them, are kept and are to no rule the newest: else they would take the places of those
// to come.
std::vector<std::vector<std::string>> apply_policy(const std::vector<const Snapshot*>& snapshots,
                                                   const RetentionPolicy& policy, const Timestamp& now);

}  // namespace kin

#include "lib/sync/version_set.h"

#include <algorithm>

namespace kin::sync {
namespace {

constexpr std::size_t kMostReplicas = 10'000;
constexpr std::size_t kMostRuns = 2'000'000;

}  // namespace

bool VersionSet::contains(const Stamp& stamp) const {
  const auto runs = runs_.find(stamp.replica);
  if (runs == runs_.end()) return false;
  auto run = runs->second.upper_bound(stamp.sequence);
  return run != runs->second.begin() && (--run)->second >= stamp.sequence;
}

bool VersionSet::fits() const {
  std::size_t total = 0;
  for (const auto& [replica, runs] : runs_) total += runs.size();
  return runs_.size() <= kMostReplicas / 2 && total <= kMostRuns / 2;
}

void VersionSet::add(ReplicaId replica, std::uint64_t first, std::uint64_t last) {
  if (first == 0 || first > last) return;
  Runs& runs = runs_[replica];
  auto run = runs.upper_bound(first);
  if (run != runs.begin() && std::prev(run)->second >= first - 1) {
    --run;
    first = run->first;
    last = std::max(last, run->second);
  }
  while (run != runs.end() && run->first - 1 <= last) {
    last = std::max(last, run->second);
    run = runs.erase(run);
  }
  runs.emplace(first, last);
}

void VersionSet::add(const VersionSet& other) {
  for (const auto& [replica, runs] : other.runs_)
    for (const auto& [first, last] : runs) add(replica, first, last);
}

void VersionSet::remove(const Stamp& stamp) {
  if (!contains(stamp)) return;
  Runs& runs = runs_[stamp.replica];
  const auto run = std::prev(runs.upper_bound(stamp.sequence));
  const auto [first, last] = *run;
  runs.erase(run);
  if (first < stamp.sequence) runs.emplace(first, stamp.sequence - 1);
  if (stamp.sequence < last) runs.emplace(stamp.sequence + 1, last);
  if (runs.empty()) runs_.erase(stamp.replica);
}

std::uint64_t VersionSet::last(ReplicaId replica) const {
  const auto runs = runs_.find(replica);
  return runs == runs_.end() ? 0 : runs->second.rbegin()->second;
}

void VersionSet::for_each_missing_in(const VersionSet& other, const OnRun& on_run) const {
  static const Runs kNone;
  for (const auto& [replica, runs] : runs_) {
    const auto found = other.runs_.find(replica);
    const Runs& theirs = found == other.runs_.end() ? kNone : found->second;
    for (const auto& [first, last] : runs) {
      std::uint64_t at = first;
      auto their = theirs.upper_bound(first);
      if (their != theirs.begin()) --their;
      for (; their != theirs.end() && their->first <= last && at <= last; ++their) {
        if (their->second < at) continue;
        if (their->first > at) on_run(replica, at, their->first - 1);
        at = their->second + 1;
      }
      if (at <= last) on_run(replica, at, last);
    }
  }
}

bool VersionSet::is_within(const VersionSet& other) const {
  bool all = true;
  for_each_missing_in(other, [&](ReplicaId, std::uint64_t, std::uint64_t) { all = false; });
  return all;
}

// Of each replica its id, and for each run how much it begins behind the least that it could, and how much
// longer than one it is.
void VersionSet::encode(WireWriter& out) const {
  out.varint(runs_.size());
  for (const auto& [replica, runs] : runs_) {
    out.u64(replica);
    out.varint(runs.size());
    std::uint64_t at = 1;
    for (const auto& [first, last] : runs) {
      out.varint(first - at);
      out.varint(last - first);
      at = last + 2;  // a gap is at least one number
    }
  }
}

VersionSet VersionSet::decode(WireReader& in) {
  VersionSet out;
  std::size_t total = 0;
  const std::size_t replicas = in.count(11);
  if (replicas > kMostReplicas) in.fail();
  for (std::size_t i = 0; i < replicas && !in.failed(); ++i) {
    const ReplicaId replica = in.u64();
    const std::size_t runs = in.count(2);
    total += runs;
    if (replica == 0 || (!out.runs_.empty() && out.runs_.rbegin()->first >= replica) || runs == 0 ||
        total > kMostRuns)
      in.fail();
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    std::uint64_t at = 1;
    for (std::size_t run = 0; run < runs && !in.failed(); ++run) {
      const std::uint64_t first = at + in.varint_up_to(kMost);
      const std::uint64_t last = first + in.varint_up_to(kMost);
      if (last > kMost) in.fail();
      out.runs_[replica].emplace(first, last);
      at = last + 2;
    }
  }
  return in.failed() ? VersionSet() : out;
}

}  // namespace kin::sync

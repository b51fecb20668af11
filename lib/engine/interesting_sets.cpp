// sif's interesting sets: all members have enough fingerprints in common, and no larger set does.
//
// To find all of them is NP-complete (Manber says so, and gives no algorithm). What is done here: for every
// value, the set of files that have it; equal sets become one with a counter. These sets, and the
// intersections of those that overlap, are the candidates: what many files have in common is nearly always
// seen as such a set itself. A candidate's common values are the counters of all sets that contain it. Those
// with enough are kept, and then those that lie in another are dropped.
//
// Bounds, so that time stays near linear: values of more than 64 files are left out, each set is intersected
// with at most 16 others, and one round of intersections is made. So a set that shows only as the
// intersection of three is missed.
#include "lib/engine/similar_groups.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace kin {
namespace {

constexpr std::size_t kMostSetFiles = 64, kMostIntersections = 16, kMostLookedAtSets = 1024;

using FileNumbers = std::vector<std::uint32_t>;

class InterestingSearch {
 public:
  InterestingSearch(std::map<FileNumbers, std::size_t> counters, std::vector<std::size_t> values)
      : counters_(std::move(counters)), values_(std::move(values)) {
    for (const auto& [set, count] : counters_)
      for (const std::uint32_t file : set) sets_of_[file].push_back(&*counters_.find(set));
  }

  std::vector<InterestingSet> run(double least_part) {
    std::map<FileNumbers, std::size_t> kept;
    const auto consider = [&](const FileNumbers& set) {
      if (set.size() < 2 || kept.contains(set)) return;
      std::size_t fewest = SIZE_MAX;
      for (const std::uint32_t file : set) fewest = std::min(fewest, values_[file]);
      const std::size_t shared = shared_by(set);
      if (shared >= 2 && static_cast<double>(shared) >= least_part * static_cast<double>(fewest))
        kept.emplace(set, shared);
    };
    for (const auto& [set, count] : counters_) {
      consider(set);
      std::size_t left = kMostIntersections;
      for (const Entry* other : sets_of_[set.front()]) {
        if (left-- == 0) break;
        FileNumbers both;
        std::set_intersection(set.begin(), set.end(), other->first.begin(), other->first.end(),
                              std::back_inserter(both));
        consider(both);
      }
    }
    return largest(kept);
  }

 private:
  using Entry = std::pair<const FileNumbers, std::size_t>;

  std::size_t shared_by(const FileNumbers& set) {
    const std::vector<const Entry*>* fewest = nullptr;
    for (const std::uint32_t file : set)
      if (fewest == nullptr || sets_of_[file].size() < fewest->size()) fewest = &sets_of_[file];
    std::size_t out = 0, left = kMostLookedAtSets;
    for (const Entry* entry : *fewest) {
      if (left-- == 0) break;
      if (std::includes(entry->first.begin(), entry->first.end(), set.begin(), set.end()))
        out += entry->second;
    }
    return out;
  }

  // Without those that lie in another.
  static std::vector<InterestingSet> largest(const std::map<FileNumbers, std::size_t>& kept) {
    std::vector<InterestingSet> all;
    all.reserve(kept.size());
    for (const auto& [set, shared] : kept) all.push_back({set, shared});
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.files.size() > b.files.size(); });
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> places;  // of a file, in `out`
    std::vector<InterestingSet> out;
    for (InterestingSet& set : all) {
      const auto& larger = places[set.files.front()];
      if (std::any_of(larger.begin(), larger.end(), [&](std::size_t at) {
            return std::includes(out[at].files.begin(), out[at].files.end(), set.files.begin(),
                                 set.files.end());
          }))
        continue;
      for (const std::uint32_t file : set.files) places[file].push_back(out.size());
      out.push_back(std::move(set));
    }
    return out;
  }

  const std::map<FileNumbers, std::size_t> counters_;
  const std::vector<std::size_t> values_;  // that a file has, each once
  std::unordered_map<std::uint32_t, std::vector<const Entry*>> sets_of_;
};

}  // namespace

std::vector<InterestingSet> interesting_sets(const PrintedFiles& files,
                                             const std::vector<std::vector<std::uint32_t>>& equal,
                                             double least_part) {
  std::vector<bool> is_copy(files.files.size());
  for (const auto& set : equal)
    for (std::size_t i = 1; i < set.size(); ++i) is_copy[set[i]] = true;
  struct Entry {
    std::uint64_t value;
    std::uint32_t file, kind;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries;
  std::vector<std::size_t> values(files.files.size());
  for (std::uint32_t at = 0; at < files.files.size(); ++at) {
    if (is_copy[at]) continue;
    std::vector<std::uint64_t> own = files.prints[at].values;
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    values[at] = own.size();
    for (const std::uint64_t value : own) entries.push_back({value, at, files.prints[at].kind});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.kind, a.value, a.file) < std::tie(b.kind, b.value, b.file);
  });
  std::map<FileNumbers, std::size_t> counters;
  for (std::size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    FileNumbers set;
    for (; end < entries.size() && entries[end].value == entries[begin].value &&
           entries[end].kind == entries[begin].kind;
         ++end)
      set.push_back(entries[end].file);
    if (set.size() >= 2 && set.size() <= kMostSetFiles) ++counters[std::move(set)];
  }
  return InterestingSearch(std::move(counters), std::move(values)).run(least_part);
}

}  // namespace kin

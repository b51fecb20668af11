#include "lib/engine/similar_groups.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kin {
namespace {

void sort_members(std::vector<SimilarGroup::Member>& members) {
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.file < b.file;
  });
}

// Each pair from both sides, as far as it is similar enough there.
std::vector<std::vector<SimilarGroup::Member>> neighbours_of(const std::vector<SimilarPair>& pairs,
                                                             std::size_t files, double least) {
  std::vector<std::vector<SimilarGroup::Member>> out(files);
  for (const SimilarPair& pair : pairs) {
    if (pair.a_in_b >= least) out[pair.a].push_back({pair.b, pair.a_in_b});
    if (pair.b_in_a >= least) out[pair.b].push_back({pair.a, pair.b_in_a});
  }
  for (auto& members : out) sort_members(members);
  return out;
}

bool sizes_fit(const ComparedFile& a, const ComparedFile& b, double ratio) {
  const auto [less, more] = std::minmax(a.size, b.size);
  return ratio == 0 || static_cast<double>(more) <= ratio * static_cast<double>(less);
}

bool may_pair(const ComparedFile& a, const ComparedFile& b, const PairRules& rules) {
  if (rules.same_suffix && file_suffix(a.path) != file_suffix(b.path)) return false;
  return sizes_fit(a, b, rules.most_size_ratio);
}

// All files of `group` as members of one whose first file is `first`; nothing if some cannot be.
std::optional<std::vector<SimilarGroup::Member>> as_members_of(std::uint32_t first, const SimilarGroup& group,
                                                               const PrintedFiles& files,
                                                               const PairRules& rules,
                                                               const PrintIndex& index) {
  std::vector<SimilarGroup::Member> out;
  const auto add = [&](std::uint32_t file) {
    const double similarity = index.compare(files.prints[first], files.prints[file]).similarity;
    if (similarity < rules.least_similarity || !may_pair(files.files[first], files.files[file], rules))
      return false;
    out.push_back({file, similarity});
    return true;
  };
  if (!add(group.first)) return std::nullopt;
  for (const auto& member : group.members)
    if (!add(member.file)) return std::nullopt;
  return out;
}

}  // namespace

Result<std::vector<SimilarPair>> similar_pairs(const PrintedFiles& files,
                                               const std::vector<std::vector<std::uint32_t>>& equal,
                                               const PairRules& rules, PrintIndex& index,
                                               const std::stop_token& stop) {
  std::vector<bool> is_copy(files.files.size());
  for (const auto& set : equal)
    for (std::size_t i = 1; i < set.size(); ++i) is_copy[set[i]] = true;
  FindLimits limits;
  limits.least_similarity = rules.least_similarity;
  limits.most_looked_at = rules.most_looked_at;
  std::vector<SimilarPair> out;
  for (std::uint32_t at = 0; at < files.files.size(); ++at) {
    if (is_copy[at]) continue;
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::vector<Match> matches, index.find(files.prints[at], limits));
    for (const Match& match : matches) {
      if (!may_pair(files.files[at], files.files[match.file], rules)) continue;
      out.push_back({match.file, at, match.reverse, match.similarity});
    }
    KIN_TRY(index.add(at, files.prints[at]));
  }
  return out;
}

std::vector<SimilarGroup> star_groups(const std::vector<SimilarPair>& pairs, std::size_t files,
                                      double least_similarity) {
  const auto neighbours = neighbours_of(pairs, files, least_similarity);
  std::vector<std::uint32_t> order(files);
  for (std::uint32_t at = 0; at < files; ++at) order[at] = at;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return neighbours[a].size() > neighbours[b].size();
  });
  std::vector<bool> taken(files);
  std::vector<SimilarGroup> out;
  for (const std::uint32_t first : order) {
    if (taken[first]) continue;
    SimilarGroup group{first, {}};
    for (const auto& member : neighbours[first])
      if (!taken[member.file]) group.members.push_back(member);
    if (group.members.empty()) continue;
    taken[first] = true;
    for (const auto& member : group.members) taken[member.file] = true;
    out.push_back(std::move(group));
  }
  return out;
}

Result<void> merge_groups(std::vector<SimilarGroup>& groups, const PrintedFiles& files,
                          const PairRules& rules, PrintIndex& index, const std::stop_token& stop) {
  FindLimits limits;
  limits.least_similarity = rules.least_similarity;
  limits.most_looked_at = rules.most_looked_at;
  for (std::uint32_t at = 0; at < groups.size(); ++at) {
    if (stop.stop_requested()) return interrupted();
    SimilarGroup& group = groups[at];
    KIN_TRY_ASSIGN(const std::vector<Match> matches, index.find(files.prints[group.first], limits));
    bool merged = false;
    for (const Match& match : matches) {
      SimilarGroup& other = groups[match.file];
      const auto members = as_members_of(other.first, group, files, rules, index);
      if (!members) continue;
      other.members.insert(other.members.end(), members->begin(), members->end());
      group.members.clear();
      merged = true;
      break;
    }
    if (!merged) KIN_TRY(index.add(at, files.prints[group.first]));
  }
  std::erase_if(groups, [](const SimilarGroup& group) { return group.members.empty(); });
  for (SimilarGroup& group : groups) sort_members(group.members);
  std::stable_sort(groups.begin(), groups.end(), [](const SimilarGroup& a, const SimilarGroup& b) {
    return a.members.size() > b.members.size();
  });
  return {};
}

std::vector<SimilarGroup> sif_lists(const std::vector<SimilarPair>& pairs, std::size_t files,
                                    double least_similarity) {
  const auto neighbours = neighbours_of(pairs, files, least_similarity);
  std::set<std::vector<std::uint32_t>> told;
  std::vector<SimilarGroup> out;
  for (std::uint32_t first = 0; first < files; ++first) {
    SimilarGroup group{first, {}};
    std::vector<std::uint32_t> set{first};
    for (const auto& member : neighbours[first]) {
      group.members.push_back(member);
      set.push_back(member.file);
    }
    std::sort(set.begin(), set.end());
    if (!group.members.empty() && told.insert(std::move(set)).second) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace kin

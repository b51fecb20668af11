#include "lib/engine/similar_groups.h"

#include <algorithm>
#include <set>

namespace kin {
namespace {

// Each pair from both sides, as far as it is similar enough there.
std::vector<std::vector<SimilarGroup::Member>> neighbours_of(const std::vector<SimilarPair>& pairs,
                                                             std::size_t files, double least) {
  std::vector<std::vector<SimilarGroup::Member>> out(files);
  for (const SimilarPair& pair : pairs) {
    if (pair.a_in_b >= least) out[pair.a].push_back({pair.b, pair.a_in_b});
    if (pair.b_in_a >= least) out[pair.b].push_back({pair.a, pair.b_in_a});
  }
  for (auto& members : out)
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return a.similarity != b.similarity ? a.similarity > b.similarity : a.file < b.file;
    });
  return out;
}

bool sizes_fit(const ComparedFile& a, const ComparedFile& b, double ratio) {
  const auto [less, more] = std::minmax(a.size, b.size);
  return ratio == 0 || static_cast<double>(more) <= ratio * static_cast<double>(less);
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
      const ComparedFile &mine = files.files[at], &other = files.files[match.file];
      if (rules.same_suffix && file_suffix(mine.path) != file_suffix(other.path)) continue;
      if (!sizes_fit(mine, other, rules.most_size_ratio)) continue;
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

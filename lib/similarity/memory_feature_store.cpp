#include "lib/similarity/memory_feature_store.h"

#include <algorithm>
#include <bit>

namespace kin {

Result<void> MemoryFeatureStore::add(const ObjectId& id, const Sketch& sketch) {
  const auto number = static_cast<std::uint32_t>(objects_.size());
  objects_.push_back(id);
  for (const Feature feature : sketch) {
    Postings& postings = postings_[feature];
    ++postings.frequency;
    if (postings.newest.size() == kMostPostings) postings.newest.erase(postings.newest.begin());
    postings.newest.push_back(number);
  }
  return {};
}

Result<std::vector<Candidate>> MemoryFeatureStore::candidates(const Sketch& sketch, std::size_t most) {
  struct Score {
    unsigned matches = 0;
    unsigned rarity = 0;
  };
  std::unordered_map<std::uint32_t, Score> scores;
  for (const Feature feature : sketch) {
    const auto at = postings_.find(feature);
    if (at == postings_.end()) continue;
    for (const std::uint32_t number : at->second.newest) {
      Score& score = scores[number];
      ++score.matches;
      score.rarity += 1024 / static_cast<unsigned>(std::bit_width(at->second.frequency));
    }
  }
  std::vector<std::pair<std::uint32_t, Score>> ranked(scores.begin(), scores.end());
  const auto better = [](const auto& a, const auto& b) {
    return std::tuple(a.second.matches, a.second.rarity, a.first) >
           std::tuple(b.second.matches, b.second.rarity, b.first);
  };
  std::sort(ranked.begin(), ranked.end(), better);
  std::vector<Candidate> out;
  for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i)
    out.push_back({objects_[ranked[i].first], ranked[i].second.matches});
  return out;
}

}  // namespace kin

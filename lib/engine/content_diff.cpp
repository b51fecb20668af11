// First by name, then by bytes, then by likeness: each step takes what it pairs out of the next one. So a
// file that was changed in place stays itself, though another may resemble it more; and of several copies
// each finds one.
#include "lib/engine/content_diff.h"

#include "lib/engine/equal_files.h"

#include <algorithm>
#include <map>

namespace kin {
namespace {

class ContentDiff {
 public:
  ContentDiff(const PrintedFiles& a, const PrintedFiles& b)
      : a_(a),
        b_(b),
        pair_of_a_(a.files.size()),
        taken_b_(b.files.size()),
        unknown_b_(b.files.size()),
        set_of_a_(a.files.size(), kNoSet),
        set_of_b_(b.files.size(), kNoSet) {}

  Result<void> find_equal(const OnSkippedFile& on_skipped, const std::stop_token& stop) {
    PrintedFiles both = a_;
    both.files.insert(both.files.end(), b_.files.begin(), b_.files.end());
    both.prints.insert(both.prints.end(), b_.prints.begin(), b_.prints.end());
    KIN_TRY_ASSIGN(const auto sets, equal_files(both, on_skipped, stop));
    for (std::size_t set = 0; set < sets.size(); ++set)
      for (const std::uint32_t at : sets[set])
        (at < a_.files.size() ? set_of_a_[at] : set_of_b_[at - a_.files.size()]) = set;
    return {};
  }

  void pair_names(const std::vector<std::string>& names_a, const std::vector<std::string>& names_b,
                  const std::function<bool(const std::string& name)>& is_unknown) {
    using Kind = ContentChange::Kind;
    std::map<std::string_view, std::uint32_t> places;
    for (std::uint32_t b = 0; b < names_b.size(); ++b) places.emplace(names_b[b], b);
    for (std::uint32_t a = 0; a < names_a.size(); ++a) {
      const auto b = places.find(names_a[a]);
      const bool is_paired = b != places.end();
      if (is_paired && is_equal(a, b->second))
        pair(a, b->second, Kind::equal);
      else if (is_unknown(names_a[a]))
        pair(a, is_paired ? std::optional(b->second) : std::nullopt, Kind::unknown);
      else if (is_paired)
        pair(a, b->second, Kind::changed);
    }
    for (std::uint32_t b = 0; b < names_b.size(); ++b)
      if (!taken_b_[b] && is_unknown(names_b[b])) taken_b_[b] = unknown_b_[b] = true;
  }

  void pair_bytes() {
    std::map<std::size_t, std::vector<std::uint32_t>> copies;
    for (std::uint32_t b = 0; b < b_.files.size(); ++b)
      if (!taken_b_[b] && set_of_b_[b] != kNoSet) copies[set_of_b_[b]].push_back(b);
    for (auto& [set, left] : copies) std::reverse(left.begin(), left.end());
    for (std::uint32_t a = 0; a < a_.files.size(); ++a) {
      if (pair_of_a_[a] || set_of_a_[a] == kNoSet) continue;
      auto& left = copies[set_of_a_[a]];
      if (left.empty()) continue;
      pair(a, left.back(), ContentChange::Kind::renamed);
      left.pop_back();
    }
  }

  // A changed file is compared with what has its name, and with nothing else.
  void score_changed(const PrintIndex& index) {
    for (std::uint32_t a = 0; a < a_.files.size(); ++a)
      if (pair_of_a_[a] && pair_of_a_[a]->kind == ContentChange::Kind::changed)
        pair_of_a_[a]->similarity = index.compare(a_.prints[a], b_.prints[*pair_of_a_[a]->b]).similarity;
  }

  // Among what is left of b.
  Result<void> pair_similar(double least, PrintIndex& index, const std::stop_token& stop) {
    for (std::uint32_t b = 0; b < b_.files.size(); ++b)
      if (!taken_b_[b]) KIN_TRY(index.add(b, b_.prints[b]));
    FindLimits limits;
    limits.least_similarity = least;
    limits.most_looked_at = kMostLookedAt;
    for (std::uint32_t a = 0; a < a_.files.size(); ++a) {
      if (stop.stop_requested()) return interrupted();
      if (pair_of_a_[a]) continue;
      KIN_TRY_ASSIGN(const std::vector<Match> matches, index.find(a_.prints[a], limits));
      for (const Match& match : matches) {
        if (taken_b_[match.file]) continue;
        pair(a, match.file, ContentChange::Kind::similar);
        pair_of_a_[a]->similarity = match.similarity;
        break;
      }
    }
    return {};
  }

  std::vector<ContentChange> result() const {
    std::vector<ContentChange> out;
    for (std::uint32_t a = 0; a < a_.files.size(); ++a)
      out.push_back(pair_of_a_[a] ? *pair_of_a_[a]
                                  : ContentChange{ContentChange::Kind::only_a, a, std::nullopt, 0});
    for (std::uint32_t b = 0; b < b_.files.size(); ++b) {
      if (unknown_b_[b]) out.push_back({ContentChange::Kind::unknown, std::nullopt, b, 0});
      if (!taken_b_[b]) out.push_back({ContentChange::Kind::only_b, std::nullopt, b, 0});
    }
    return out;
  }

 private:
  static constexpr std::size_t kNoSet = SIZE_MAX;
  // For each value, of the newest files that have it. More than groups needs: here each is paired once.
  static constexpr std::size_t kMostLookedAt = 1024;

  bool is_equal(std::uint32_t a, std::uint32_t b) const {
    return set_of_a_[a] != kNoSet && set_of_a_[a] == set_of_b_[b];
  }
  void pair(std::uint32_t a, std::optional<std::uint32_t> b, ContentChange::Kind kind) {
    pair_of_a_[a] = ContentChange{kind, a, b, 0};
    if (b) taken_b_[*b] = true;
  }

  const PrintedFiles& a_;
  const PrintedFiles& b_;
  std::vector<std::optional<ContentChange>> pair_of_a_;
  std::vector<bool> taken_b_, unknown_b_;
  std::vector<std::size_t> set_of_a_, set_of_b_;  // of equal files
};

}  // namespace

Result<std::vector<ContentChange>> compare_by_content(
    const PrintedFiles& a, const std::vector<std::string>& names_a, const PrintedFiles& b,
    const std::vector<std::string>& names_b, double least_similarity, PrintIndex& index,
    const std::function<bool(const std::string& name)>& is_unknown, const OnSkippedFile& on_skipped,
    const std::stop_token& stop) {
  ContentDiff diff(a, b);
  KIN_TRY(diff.find_equal(on_skipped, stop));
  diff.pair_names(names_a, names_b, is_unknown);
  diff.pair_bytes();
  diff.score_changed(index);
  KIN_TRY(diff.pair_similar(least_similarity, index, stop));
  return diff.result();
}

}  // namespace kin

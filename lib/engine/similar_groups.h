// All against all: which of many files are similar, and what groups they make.
//
// Similarity is not transitive, and with sif not even symmetric, so that "the groups" are a choice. There are
// three: stars, in which every file is in one group at most and like the group's first file; the lists of
// sif, one for each file with all that are like it, equal sets once; and sif's interesting sets, whose
// members all have enough in common, as large as can be.
#pragma once

#include "lib/engine/file_set.h"

namespace kin {

struct PairRules {
  double least_similarity = 0.25;
  bool same_suffix = false;
  double most_size_ratio = 0;  // 0: sizes may differ as they like
  // Of the newest files that share a value with a file: see FindLimits.
  std::size_t most_looked_at = 64;
};

struct SimilarPair {
  std::uint32_t a = 0, b = 0;     // places of files; a < b
  double a_in_b = 0, b_in_a = 0;  // how much of the one the other has
};

// Of equal files, only the first of each set is compared with others.
Result<std::vector<SimilarPair>> similar_pairs(const PrintedFiles& files,
                                               const std::vector<std::vector<std::uint32_t>>& equal,
                                               const PairRules& rules, PrintIndex& index,
                                               const std::stop_token& stop);

struct SimilarGroup {
  struct Member {
    std::uint32_t file = 0;
    double similarity = 0;  // how much of the first file it has
  };
  std::uint32_t first = 0;      // R: the file that all others are compared with
  std::vector<Member> members;  // the others, most similar first
};

// Each file in one group at most. The file of which the most others have at least `least_similarity` takes
// these, and so on.
std::vector<SimilarGroup> star_groups(const std::vector<SimilarPair>& pairs, std::size_t files,
                                      double least_similarity);
// Puts groups together where all files of the one have `rules.least_similarity` of the other's first file,
// and may by the rules: similar_pairs() looks at some files that share a value only, so that the groups of
// very many files that are all alike come in parts. `index` is empty.
Result<void> merge_groups(std::vector<SimilarGroup>& groups, const PrintedFiles& files,
                          const PairRules& rules, PrintIndex& index, const std::stop_token& stop);
// A list for each file of all that have at least `least_similarity` of it; the same set of files once.
std::vector<SimilarGroup> sif_lists(const std::vector<SimilarPair>& pairs, std::size_t files,
                                    double least_similarity);

struct InterestingSet {
  std::vector<std::uint32_t> files;  // ascending
  std::size_t shared = 0;            // values that all of them have
};
// Sets in which all members share at least `least_part` of the values of the member that has fewest, and at
// least two values, and that are in no larger such set. Those with the most files first.
std::vector<InterestingSet> interesting_sets(const PrintedFiles& files,
                                             const std::vector<std::vector<std::uint32_t>>& equal,
                                             double least_part);

}  // namespace kin

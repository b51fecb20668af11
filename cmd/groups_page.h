// What kin groups has found, and how it is told.
#pragma once

#include "cmd/context.h"
#include "lib/engine/similar_groups.h"

#include <string>
#include <vector>

namespace kin::cmd {

struct GroupsResult {
  std::string method;
  double least_similarity = 0;  // as a part of 1
  PrintedFiles files;
  std::vector<std::vector<std::uint32_t>> equal;
  std::vector<SimilarGroup> similar;
  std::vector<InterestingSet> interesting;
  PrintIndex::Counts counts;

  const ComparedFile& file(std::uint32_t at) const { return files.files[at]; }
  std::uint64_t equal_bytes() const;  // that copies take
};

void print_groups(Context& context, const GroupsResult& result);
// A line per group, and a summary.
Result<void> write_groups_json(Context& context, const GroupsResult& result, std::uint64_t skipped);
std::string groups_page(const GroupsResult& result);

}  // namespace kin::cmd

// EstimateResult: what kin estimate has found out, and the forms in which it tells it.
#pragma once

#include "cmd/content_costs.h"
#include "cmd/context.h"
#include "cmd/estimate_study.h"
#include "lib/engine/container_counts.h"
#include "lib/engine/savings.h"

#include <optional>
#include <string>
#include <vector>

namespace kin::cmd {

struct EstimateResult {
  // A way to store the files, and what it takes.
  struct Method {
    const char* name;  // for programs
    const char* text;  // for people
    std::uint64_t bytes;
    std::uint64_t low, high;  // of a sample: it is between these, with a chance of 95 %
  };
  // What was looked at, if not all.
  struct OfSample {
    std::uint64_t files = 0, bytes = 0, families = 0, seed = 0;
  };
  // A file that takes much less as a delta against another.
  struct Pair {
    Savings::Pair sizes;
    std::string path, base_path;
  };

  std::vector<std::string> paths;  // that were looked at
  std::uint64_t files = 0, bytes = 0, skipped = 0;
  std::string changed;  // a sentence, if they were not the same at each look
  std::vector<Method> methods;
  std::optional<OfSample> sample;          // then all below is of it
  Savings savings;                         // of files as they are, no container opened
  ContainerCounts containers;              // when they were
  std::vector<Pair> pairs;                 // best first
  std::vector<ContentCosts::Named> parts;  // directories, by what kin stores of them
  std::optional<EstimateStudy> study;
};

void print_estimate(Context& context, const EstimateResult& result);
void print_estimate_csv(Context& context, const EstimateResult& result);
Json estimate_json(const EstimateResult& result);
std::string estimate_page(const EstimateResult& result);

}  // namespace kin::cmd

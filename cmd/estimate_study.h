// EstimateStudy: the questions of Douglis and Iyengar's study, asked of the user's own data.
#pragma once

#include "cmd/context.h"
#include "cmd/html_page.h"
#include "lib/engine/savings.h"

#include <cstdint>
#include <vector>

namespace kin::cmd {

struct EstimateStudy {
  // What other sketches find: of at most so many features, or of windows of so many bytes.
  struct Sketches {
    std::size_t value = 0;
    std::uint64_t deltas = 0, delta_objects = 0, kin = 0;  // as the methods of an estimate
  };

  Savings savings;                           // with several bases tried, and by both programs
  std::uint64_t compressed = 0, deltas = 0;  // of each file; as the methods of an estimate
  std::vector<Sketches> features, windows;   // ascending
};

// `bytes`: of all files.
void print_study(Context& context, const EstimateStudy& study, std::uint64_t bytes);
Json study_json(const EstimateStudy& study);
void add_study(HtmlPage& page, const EstimateStudy& study, std::uint64_t bytes);

}  // namespace kin::cmd

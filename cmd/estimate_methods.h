// The ways to store files that an estimate compares.
#pragma once

#include "cmd/estimate_result.h"
#include "cmd/sample_costs.h"
#include "lib/engine/sample_survey.h"

namespace kin::cmd {

struct EstimatedMethod {
  const char* name;  // for programs
  const char* text;  // for people
};
inline constexpr EstimatedMethod kIdenticalFiles{"identical_files", "identical files once"};
inline constexpr EstimatedMethod kCompression{"compression", "each file compressed (zstd -3)"};
inline constexpr EstimatedMethod kChunks{"chunks", "chunks once, compressed: as restic does, computed"};
inline constexpr EstimatedMethod kDeltas{"deltas", "each file a delta or compressed"};
inline constexpr EstimatedMethod kDeltasOpened{"deltas_opened", "the same, with containers opened"};
inline constexpr EstimatedMethod kKinClosed{"kin_closed", "kin --no-unpack, with trees, index and all"};
inline constexpr EstimatedMethod kKin{"kin", "kin, with trees, index and all"};

// What the families of a sample take: as they are, with containers opened, if any was, and those of half the
// sample, without the rest.
struct SampleMeasured {
  SampleCosts closed;
  std::optional<SampleCosts> opened;
  SampleCosts half;
};

// What all files take then.
std::vector<EstimateResult::Method> sampled_methods(const FileSample& sample, const SampleSurvey& survey,
                                                    const SampleMeasured& measured);

}  // namespace kin::cmd

// SampleCosts: what the families of a FileSample take in a repository that a backup of it has made.
#pragma once

#include "cmd/context.h"
#include "lib/engine/file_sample.h"
#include "lib/engine/savings.h"

#include <cstdint>
#include <vector>

namespace kin::cmd {

struct SampleCosts {
  // By family; as the methods of an estimate. Of files that are drawn in stretches, none are identical.
  std::vector<double> identical, compressed, chunks, deltas, kin;
  std::vector<double> objects;       // by family, too: how many
  std::uint64_t distinct_bytes = 0;  // of files that are all drawn, identical ones once
  std::uint64_t beside = 0;          // bytes of the repository that are no content: trees, index and all
  std::uint64_t entries = 0;         // files, directories and others
};

// `stored_bytes`: of the whole repository.
Result<SampleCosts> sample_costs(store::Repository& repository, const Snapshot& snapshot,
                                 const FileSample& sample, const SavingsMeter& meter,
                                 std::uint64_t stored_bytes, const std::stop_token& stop);

}  // namespace kin::cmd

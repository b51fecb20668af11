// What a backup would read, counted ahead for a progress bar.
#pragma once

#include "lib/engine/walker.h"

#include <atomic>
#include <cstdint>
#include <stop_token>

namespace kin {

struct BackupTotals {
  std::atomic<std::uint64_t> files{0}, bytes{0};
  std::atomic<bool> complete{false};
};

void count_totals(const WalkOptions& options, BackupTotals& totals, std::stop_token stop);

}  // namespace kin

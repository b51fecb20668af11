// Detectors side by side: what each costs, what it finds, and the bytes that result when it chooses the
// bases.
#pragma once

#include "lib/engine/file_set.h"

namespace kin {

struct StudyOptions {
  std::vector<const DetectorEntry*> detectors;
  std::size_t sample = 200;  // files, of which every pair is tried
  unsigned jobs = 1;         // for deltas; detectors are timed on one thread
};

struct DetectorStudy {
  const DetectorEntry* detector = nullptr;
  double print_seconds = 0, find_seconds = 0;  // of CPU
  std::uint64_t index_bytes = 0;               // of memory
  std::uint64_t candidates = 0;                // files that were looked at, for all files together
  std::uint64_t with_base = 0;                 // files for which it found one
  std::uint64_t useful = 0;                    // those for which the delta is below half of the file alone
  std::uint64_t bytes = 0;                     // all files, each as a delta or alone, whichever is less
  // Of the sampled files with kin among the others: those for which its choice is about as good as the best.
  std::uint64_t recalled = 0;
};

struct StudyResult {
  std::uint64_t files = 0, bytes = 0, left_out = 0;  // too large to be tried
  std::uint64_t alone_bytes = 0;                     // each compressed alone
  std::uint64_t sampled = 0, with_kin = 0;
  std::vector<DetectorStudy> detectors;
};

// Each file's base is the one that the detector likes best among those before it. `progress` is told what is
// done.
Result<StudyResult> study_detectors(const std::vector<ComparedFile>& files, const StudyOptions& options,
                                    const MakeKeyStore& make_keys, const OnSkippedFile& on_skipped,
                                    const std::function<void(const std::string&)>& progress,
                                    const std::stop_token& stop);

}  // namespace kin

// A look at the front of every file, to draw a FileSample of them.
#pragma once

#include "lib/container/container_format.h"
#include "lib/engine/file_sample.h"
#include "lib/engine/walker.h"

#include <functional>
#include <stop_token>
#include <string>
#include <unordered_map>

namespace kin {

// Larger files are units of kStretchBytes each, but for containers up to the second size: to open one takes
// all of it.
inline constexpr std::uint64_t kMostWholeBytes = 8 << 20;
inline constexpr std::uint64_t kMostContainerBytes = 256 << 20;

struct SampleSurvey {
  std::vector<SampleUnit> units;     // 64 bytes each
  std::vector<std::uint64_t> empty;  // files that no unit is of: sample_file_id()
  std::uint64_t files = 0;           // that could be looked at
  std::uint64_t bytes = 0;           // of those
  std::uint64_t hole_bytes = 0;      // of large files: in no unit
  // Files that are drawn in stretches. Their sizes, by all that was seen of each: those of which the same was
  // seen are taken to be the same.
  std::unordered_map<std::uint64_t, std::uint64_t> large;
  std::uint64_t large_bytes = 0;  // of all of these

  void add(const SampleSurvey& other);
};

struct SurveyRequest {
  WalkOptions walk;
  Formats formats;         // of containers that will be opened
  std::uint64_t seed = 0;  // another one, another sample
  unsigned jobs = 2;
  // Both must be there, and are called from several threads.
  std::function<void(const std::string& path)> on_file;
  std::function<void(const std::string& path, const Error& error)> on_skipped;
};

Result<SampleSurvey> survey_files(const SurveyRequest& request, const std::stop_token& stop);

}  // namespace kin

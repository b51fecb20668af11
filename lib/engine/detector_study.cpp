// What a detector is good for shows in bytes: all files in their order, each against the one file that the
// detector likes best among those before it, by zstd at the level of a backup's first try; or alone, where
// that is less. No groups and no chains of several candidates: what differs is the choice alone.
//
// Detectors mostly agree, so that all choices are gathered first and each pair is encoded once.
//
// Recall: of a sample, every file is encoded against every other. A file has kin if the best of these deltas
// is below half of what the file takes alone. The detector, which sees the sample only, has recalled it if
// its choice is at most half again as large as the best, or within 5 % of what the file takes alone.
#include "lib/engine/detector_study.h"

#include "lib/base/mutex.h"
#include "lib/base/worker_pool.h"
#include "lib/engine/delta_cost.h"

#include <algorithm>
#include <ctime>
#include <map>

namespace kin {
namespace {

constexpr std::uint64_t kMostStudiedBytes = 16 << 20;  // larger files are left out
constexpr std::uint64_t kMostSampledBytes = 1 << 20;
constexpr std::size_t kStudyLookedAt = 64;
constexpr std::uint32_t kNoBase = UINT32_MAX;

double cpu_now() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Encoded sizes of pairs of files, (base, target), each once; a file alone has the base kNoBase.
class PairCosts {
 public:
  PairCosts(const std::vector<ComparedFile>& files, unsigned jobs) : files_(files), jobs_(jobs) {}

  void want(std::uint32_t base, std::uint32_t target) { wanted_[target].emplace(base, 0); }
  std::uint64_t of(std::uint32_t base, std::uint32_t target) const { return wanted_.at(target).at(base); }

  Result<void> compute(const std::stop_token& stop) {
    // A few targets to a task: an encoder is costly to make.
    constexpr std::size_t kTargetsPerTask = 16;
    WorkerPool pool(jobs_, 4 * jobs_);
    std::vector<std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>>::iterator> targets;
    for (auto at = wanted_.begin(); at != wanted_.end(); ++at) targets.push_back(at);
    for (std::size_t first = 0; first < targets.size(); first += kTargetsPerTask)
      pool.submit(
          [&, first]() -> Result<void> {
            DeltaCost cost;
            for (std::size_t i = first; i < std::min(first + kTargetsPerTask, targets.size()); ++i) {
              if (stop.stop_requested()) return interrupted();
              // A file that cannot be read any more counts for its size.
              const auto content = read_file(files_[targets[i]->first].path, 2 * kMostStudiedBytes);
              for (auto& [base, bytes] : targets[i]->second) {
                bytes = files_[targets[i]->first].size;
                if (!content) continue;
                auto from = base == kNoBase ? Result<Bytes>(Bytes())
                                            : read_file(files_[base].path, 2 * kMostStudiedBytes);
                if (!from) continue;
                KIN_TRY_ASSIGN(bytes, cost.of(*from, *content));
              }
            }
            return {};
          },
          1);
    return pool.wait();
  }

 private:
  const std::vector<ComparedFile>& files_;
  const unsigned jobs_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> wanted_;
};

// What one detector chose, before it is known what that costs.
struct Choices {
  DetectorStudy study;
  std::vector<std::uint32_t> bases;         // one per file
  std::vector<std::uint32_t> sample_bases;  // one per sampled file, among the sample
};

Result<std::uint32_t> first_match(PrintIndex& index, const Print& print, std::size_t skip_file = SIZE_MAX) {
  FindLimits limits;
  limits.most_looked_at = kStudyLookedAt;
  limits.most_matches = skip_file == SIZE_MAX ? 1 : 2;
  KIN_TRY_ASSIGN(const std::vector<Match> matches, index.find(print, limits));
  for (const Match& match : matches)
    if (match.file != skip_file) return match.file;
  return kNoBase;
}

Result<Choices> choose_bases(const PrintedFiles& files, const Detector& detector,
                             const std::vector<std::uint32_t>& sample, const MakeKeyStore& make_keys,
                             const std::stop_token& stop) {
  Choices out;
  KIN_TRY_ASSIGN(const auto index, detector.make_index(make_keys));
  const double began = cpu_now();
  for (std::uint32_t at = 0; at < files.prints.size(); ++at) {
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::uint32_t base, first_match(*index, files.prints[at]));
    out.bases.push_back(base);
    KIN_TRY(index->add(at, files.prints[at]));
  }
  out.study.find_seconds = cpu_now() - began;
  out.study.candidates = index->counts().candidates;
  out.study.index_bytes = index->bytes();
  KIN_TRY_ASSIGN(const auto sample_index, detector.make_index(make_keys));
  for (const std::uint32_t at : sample) KIN_TRY(sample_index->add(at, files.prints[at]));
  for (const std::uint32_t at : sample) {
    KIN_TRY_ASSIGN(const std::uint32_t base, first_match(*sample_index, files.prints[at], at));
    out.sample_bases.push_back(base);
  }
  return out;
}

std::vector<std::uint32_t> take_sample(const std::vector<ComparedFile>& files, std::size_t most) {
  std::vector<std::uint32_t> small, out;
  for (std::uint32_t at = 0; at < files.size(); ++at)
    if (files[at].size <= kMostSampledBytes) small.push_back(at);
  const std::size_t take = std::min(most, small.size());
  for (std::size_t i = 0; i < take; ++i) out.push_back(small[i * small.size() / take]);
  return out;
}

struct TimedPrints {
  PrintedFiles printed;
  double seconds = 0;  // of CPU
};

// By each detector. What one of them cannot read is taken out for all, `files` included, so that they are
// tried on the same files.
Result<std::vector<TimedPrints>> print_by_all(std::vector<ComparedFile>& files,
                                              const std::vector<const DetectorEntry*>& detectors,
                                              const OnSkippedFile& on_skipped,
                                              const std::function<void(const std::string&)>& progress,
                                              const std::stop_token& stop) {
  std::vector<TimedPrints> out;
  for (const DetectorEntry* entry : detectors) {
    progress(std::string("files by ") + entry->name);
    const double began = cpu_now();
    KIN_TRY_ASSIGN(PrintedFiles printed, print_files(files, *entry->make(), 1, on_skipped, stop));
    const double seconds = cpu_now() - began;
    files = printed.files;
    out.push_back({std::move(printed), seconds});
  }
  for (TimedPrints& prints : out) {
    if (prints.printed.files.size() == files.size()) continue;
    PrintedFiles left;
    for (std::size_t i = 0; i < prints.printed.files.size() && left.files.size() < files.size(); ++i) {
      if (prints.printed.files[i].path != files[left.files.size()].path) continue;
      left.files.push_back(std::move(prints.printed.files[i]));
      left.prints.push_back(std::move(prints.printed.prints[i]));
    }
    prints.printed = std::move(left);
  }
  return out;
}

}  // namespace

Result<StudyResult> study_detectors(const std::vector<ComparedFile>& all, const StudyOptions& options,
                                    const MakeKeyStore& make_keys, const OnSkippedFile& on_skipped,
                                    const std::function<void(const std::string&)>& progress,
                                    const std::stop_token& stop) {
  StudyResult out;
  std::vector<ComparedFile> files;
  for (const ComparedFile& file : all)
    if (file.size <= kMostStudiedBytes)
      files.push_back(file);
    else
      ++out.left_out;
  KIN_TRY_ASSIGN(const std::vector<TimedPrints> all_prints,
                 print_by_all(files, options.detectors, on_skipped, progress, stop));
  const std::vector<std::uint32_t> sample = take_sample(files, options.sample);
  PairCosts costs(files, options.jobs);
  for (std::uint32_t at = 0; at < files.size(); ++at) costs.want(kNoBase, at);
  for (const std::uint32_t target : sample)
    for (const std::uint32_t base : sample)
      if (base != target) costs.want(base, target);
  std::vector<Choices> choices;
  for (std::size_t i = 0; i < options.detectors.size(); ++i) {
    const DetectorEntry* const entry = options.detectors[i];
    progress(std::string("kin by ") + entry->name);
    KIN_TRY_ASSIGN(Choices chosen,
                   choose_bases(all_prints[i].printed, *entry->make(), sample, make_keys, stop));
    chosen.study.detector = entry;
    chosen.study.print_seconds = all_prints[i].seconds;
    for (std::uint32_t at = 0; at < files.size(); ++at)
      if (chosen.bases[at] != kNoBase) costs.want(chosen.bases[at], at);
    choices.push_back(std::move(chosen));
  }
  progress("deltas");
  KIN_TRY(costs.compute(stop));
  out.files = files.size();
  for (const ComparedFile& file : files) out.bytes += file.size;
  for (std::uint32_t at = 0; at < files.size(); ++at) out.alone_bytes += costs.of(kNoBase, at);
  out.sampled = sample.size();
  std::vector<std::uint64_t> best(sample.size(), UINT64_MAX);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    for (const std::uint32_t base : sample)
      if (base != sample[i]) best[i] = std::min(best[i], costs.of(base, sample[i]));
    if (best[i] <= costs.of(kNoBase, sample[i]) / 2) ++out.with_kin;
  }
  for (Choices& chosen : choices) {
    for (std::uint32_t at = 0; at < files.size(); ++at) {
      const std::uint64_t alone = costs.of(kNoBase, at);
      if (chosen.bases[at] == kNoBase) {
        chosen.study.bytes += alone;
        continue;
      }
      ++chosen.study.with_base;
      const std::uint64_t delta = costs.of(chosen.bases[at], at);
      if (delta <= alone / 2) ++chosen.study.useful;
      chosen.study.bytes += std::min(alone, delta);
    }
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const std::uint64_t alone = costs.of(kNoBase, sample[i]);
      if (best[i] > alone / 2 || chosen.sample_bases[i] == kNoBase) continue;
      const std::uint64_t delta = costs.of(chosen.sample_bases[i], sample[i]);
      if (delta <= std::max(best[i] + best[i] / 2, best[i] + alone / 20)) ++chosen.study.recalled;
    }
    out.detectors.push_back(chosen.study);
  }
  return out;
}

}  // namespace kin

#include "cmd/estimate_methods.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kin::cmd {
namespace {

using By = FileSample::By;

// The kin that a sample has lost. What its half takes more without the other half tells what one more halving
// costs. Those that have made it cost at least as much each, if the kin that everything has are many, and
// rise with the part that is lost if each has few: what is true was found between the two, nearer to the
// first.
class LostKin {
 public:
  LostKin(const FileSample& sample, const std::vector<double>& taken,
          const std::vector<double>& taken_in_half) {
    const FileSample half = sample.half();
    const double before = half.weighted(taken), after = half.weighted(taken_in_half);
    const double more = before > 0 ? std::clamp(after / before - 1, 0.0, 1.0) : 0;
    const double share = std::clamp(sample.share(), 1e-9, 1.0);
    least_ = std::min(std::pow(1 + more, std::log2(1 / share)), kMostLost);
    most_ = std::clamp(1 + more * 2 * (1 - share) / share, least_, kMostLost);
  }
  Estimated without(const Estimated& found) const {
    return {found.value / (std::pow(least_, 2.0 / 3) * std::pow(most_, 1.0 / 3)), found.low / most_,
            found.high / std::sqrt(least_)};
  }

 private:
  static constexpr double kMostLost = 2;
  double least_ = 1, most_ = 1;
};

double objects_of(const SampleCosts& costs) {
  return std::accumulate(costs.objects.begin(), costs.objects.end(), 0.0);
}

// Entries and objects, which trees, index and all grow with.
double things_counted(const SampleCosts& costs) {
  return static_cast<double>(costs.entries) + objects_of(costs);
}

double beside_each(const SampleCosts& costs) {
  return static_cast<double>(costs.beside) / std::max(things_counted(costs), 1.0);
}

// What trees, index and all take. Directories and empty files are all in the sample and in its half: so it is
// the difference between these that tells what one more file costs. With more of them it costs less, since
// those in a directory are compressed together. By 1.5 % for each doubling, of 100,000 tiny files; elsewhere
// it may be nothing or twice as much.
Estimated beside(const SampleCosts& costs, const SampleMeasured& measured, const FileSample& sample,
                 const SampleSurvey& survey) {
  constexpr double kInBulk = 0.985, kAtBest = 0.97, kLeast = 0.7;
  const double here = things_counted(costs), average = beside_each(costs);
  // Of a stratum that too little is known of, as many objects as bytes would be thought possible.
  constexpr double kMostTimes = 4;
  Estimated objects = sample.estimate(costs.objects, By::objects);
  objects.high = std::min(objects.high, kMostTimes * objects.value);
  const double files = static_cast<double>(survey.files) - static_cast<double>(sample.files());
  const auto more = [&](double all_objects) {
    return std::max(files + all_objects - objects_of(costs), 0.0);
  };
  const double added = things_counted(measured.closed) - things_counted(measured.half);
  double each = average;
  if (added > 0 && measured.closed.beside > measured.half.beside)
    each = static_cast<double>(measured.closed.beside - measured.half.beside) / added * average /
           beside_each(measured.closed);
  const auto all = [&](double count, double one, double doubled) {
    const double doublings = std::log2((std::max(here, 1.0) + count) / std::max(here, 1.0));
    return static_cast<double>(costs.beside) + count * one * std::max(std::pow(doubled, doublings), kLeast);
  };
  return {all(more(objects.value), each, kInBulk), all(more(objects.low), std::min(each, average), kAtBest),
          all(more(objects.high), std::max(each, average), 1)};
}

Estimated sum(const Estimated& a, const Estimated& b) {
  return {a.value + b.value, a.low + b.low, a.high + b.high};
}

// Small objects are compressed in groups, and the more there are, the more alike are those of a group: of
// 100,000 tiny files 4.5 % less than a sample said, be it of 5 or 30 %.
Estimated in_groups(Estimated stored, const FileSample& sample) {
  constexpr double kEachHalving = 1.025, kMost = 1.06;
  const double halvings = std::log2(1 / std::clamp(sample.share(), 1e-9, 1.0));
  stored.low /= std::min(std::pow(kEachHalving, halvings), kMost);
  return stored;
}

// Which features count depends on a repository's secret key, and what is in a group with what on all files:
// so two backups of the same files differ, by a percent or so.
Estimated by_any_key(Estimated found, const FileSample& sample) {
  constexpr double kDiffer = 1.02;
  if (sample.share() >= 1) return found;
  return {found.value, found.low / kDiffer, found.high * kDiffer};
}

// Large files are known of all, as far as they were looked at: those that seem to be the same may differ
// elsewhere.
Estimated identical_files(const SampleCosts& costs, const FileSample& sample, const SampleSurvey& survey) {
  if (sample.drawn_families() == sample.families()) {
    const auto exactly = static_cast<double>(costs.distinct_bytes);
    return {exactly, exactly, exactly};
  }
  Estimated out = sample.estimate(costs.identical, By::size);
  out.high = std::min(out.high, std::max(out.value, static_cast<double>(survey.bytes - survey.large_bytes)));
  double large = 0;
  for (const auto& [seen, bytes] : survey.large) large += static_cast<double>(bytes);
  out += large;
  out.high += std::max(static_cast<double>(survey.large_bytes) - large, 0.0);
  return out;
}

EstimateResult::Method method(const EstimatedMethod& method, const Estimated& found) {
  const auto bytes = [](double value) {
    constexpr double kMost = 0x1.fffffffffffffp63;  // the largest below 2^64
    return static_cast<std::uint64_t>(std::clamp(std::round(value), 0.0, kMost));
  };
  return {method.name, method.text, bytes(found.value), bytes(found.low), bytes(found.high)};
}

}  // namespace

std::vector<EstimateResult::Method> sampled_methods(const FileSample& sample, const SampleSurvey& survey,
                                                    const SampleMeasured& measured) {
  const SampleCosts& closed = measured.closed;
  const SampleCosts& as_backup = measured.opened ? *measured.opened : closed;
  // Told by deltas alone: in which group a small file is stored changes what it takes there, kin or no kin.
  const LostKin lost(sample, closed.deltas, measured.half.deltas);
  // No content takes more than it is.
  const auto content = [&](const std::vector<double>& taken, By by) {
    Estimated found = sample.estimate(taken, by);
    found.high =
        std::min(found.high, std::max(found.value, static_cast<double>(survey.bytes - survey.hole_bytes)));
    return found;
  };
  const auto deltas = [&](const SampleCosts& costs) {
    return by_any_key(lost.without(content(costs.deltas, By::kin)), sample);
  };
  const auto kin = [&](const SampleCosts& costs) {
    const Estimated stored = lost.without(content(costs.kin, By::kin));
    return by_any_key(sum(in_groups(stored, sample), beside(costs, measured, sample, survey)), sample);
  };
  const Estimated identical = identical_files(closed, sample, survey);
  // What is there twice is as uncertain here as it is of whole files.
  Estimated chunks = content(closed.chunks, By::expected);
  if (identical.value > 0) {
    chunks.low = std::min(chunks.low, chunks.value * identical.low / identical.value);
    chunks.high = std::max(chunks.high, chunks.value * identical.high / identical.value);
  }
  std::vector<std::pair<EstimatedMethod, Estimated>> all{
      {kIdenticalFiles, identical},
      {kCompression, content(closed.compressed, By::expected)},
      {kChunks, chunks},
      {kDeltas, deltas(closed)},
  };
  if (measured.opened) {
    all.emplace_back(kDeltasOpened, deltas(as_backup));
    all.emplace_back(kKinClosed, kin(closed));
  }
  all.emplace_back(kKin, kin(as_backup));

  std::vector<EstimateResult::Method> out;
  for (const auto& [name, found] : all) out.push_back(method(name, found));
  return out;
}

}  // namespace kin::cmd

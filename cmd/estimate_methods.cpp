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

// Trees, index and all grow with the number of entries and of objects.
Estimated with_beside(Estimated content, const SampleCosts& costs, const FileSample& sample,
                      const SampleSurvey& survey) {
  const double objects = std::accumulate(costs.objects.begin(), costs.objects.end(), 0.0);
  const double counted = static_cast<double>(costs.entries) + objects;
  const double more = static_cast<double>(survey.files) - static_cast<double>(sample.files()) +
                      sample.estimate(costs.objects, By::objects).value - objects;
  content += counted > 0 ? static_cast<double>(costs.beside) * (counted + more) / counted : 0;
  return content;
}

// Which features count depends on a repository's secret key, and what is in a group with what on all files:
// so two backups of the same files differ, by a percent or so.
Estimated by_any_key(Estimated found, const FileSample& sample) {
  constexpr double kDiffer = 1.02;
  if (sample.share() >= 1) return found;
  return {found.value, found.low / kDiffer, found.high * kDiffer};
}

EstimateResult::Method method(const EstimatedMethod& method, const Estimated& found) {
  const auto bytes = [](double value) {
    return static_cast<std::uint64_t>(std::llround(std::max(value, 0.0)));
  };
  return {method.name, method.text, bytes(found.value), bytes(found.low), bytes(found.high)};
}

}  // namespace

std::vector<EstimateResult::Method> sampled_methods(const FileSample& sample, const SampleSurvey& survey,
                                                    const SampleMeasured& measured) {
  const SampleCosts& closed = measured.closed;
  const SampleCosts& as_backup = measured.opened ? *measured.opened : closed;
  // Told by deltas alone: in which group a small file is stored changes what it takes there, kin or no kin.
  const LostKin lost(sample, closed.deltas, measured.half_deltas);
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
    return by_any_key(with_beside(stored, costs, sample, survey), sample);
  };
  Estimated identical = content(closed.identical, By::size);
  identical += static_cast<double>(survey.hole_bytes);
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

#include "cmd/estimate_methods.h"

#include <algorithm>
#include <cmath>

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
    least_ = std::pow(1 + more, std::log2(1 / share));
    most_ = std::clamp(1 + more * 2 * (1 - share) / share, least_, std::max(least_, kMostLost));
  }
  Estimated without(const Estimated& found) const {
    return {found.value / (std::pow(least_, 2.0 / 3) * std::pow(most_, 1.0 / 3)), found.low / most_,
            found.high / std::sqrt(least_)};
  }

 private:
  static constexpr double kMostLost = 2;
  double least_ = 1, most_ = 1;
};

// Trees, index and all grow with the number of entries.
Estimated with_beside(Estimated content, const SampleCosts& costs, const FileSample& sample,
                      const SampleSurvey& survey) {
  const auto entries = static_cast<double>(costs.entries);
  const double more = static_cast<double>(survey.files) - static_cast<double>(sample.files());
  content += entries > 0 ? static_cast<double>(costs.beside) * (entries + more) / entries : 0;
  return content;
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
  const auto deltas = [&](const SampleCosts& costs) {
    return lost.without(sample.estimate(costs.deltas, By::kin));
  };
  const auto kin = [&](const SampleCosts& costs) {
    return with_beside(lost.without(sample.estimate(costs.kin, By::kin)), costs, sample, survey);
  };
  Estimated identical = sample.estimate(closed.identical, By::size);
  identical += static_cast<double>(survey.hole_bytes);
  std::vector<std::pair<EstimatedMethod, Estimated>> all{
      {kIdenticalFiles, identical},
      {kCompression, sample.estimate(closed.compressed, By::expected)},
      {kChunks, sample.estimate(closed.chunks, By::expected)},
      {kDeltas, deltas(closed)},
  };
  if (measured.opened) {
    all.emplace_back(kDeltasOpened, deltas(as_backup));
    all.emplace_back(kKinClosed, kin(closed));
  }
  all.emplace_back(kKin, kin(as_backup));

  std::vector<EstimateResult::Method> out;
  for (auto& [name, found] : all) {
    // No way takes more than the files are.
    found.high = std::min(found.high, std::max(found.value, static_cast<double>(survey.bytes)));
    out.push_back(method(name, found));
  }
  return out;
}

}  // namespace kin::cmd

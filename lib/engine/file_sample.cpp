#include "lib/engine/file_sample.h"

#include "lib/base/hash.h"
#include "lib/engine/sample_families.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace kin {
namespace {

constexpr std::uint32_t kLargeBytes = 64 << 10;
constexpr double kContainerEffort = 8;  // to open one, for each byte, beside others
constexpr double kLeastChance = 0.5;    // of what all would have alike
constexpr double kDeltaPart = 0.1;      // of what it is a delta of
constexpr double kTails = 1.3;          // families differ more than Student's distribution allows for
constexpr unsigned kLeastDrawn = 30;    // families of a stratum, to have a ratio of their own
constexpr unsigned kFewestDrawn = 5;    // of one where more are too much to read
constexpr unsigned kSeenDrawn = 2;      // fewer say nothing
constexpr double kNotable = 0.02;       // of all: a stratum that so little is drawn of is drawn more of
constexpr double kMoreEffort = 1.2;     // than was asked for
// Large content is an object in so many bytes; of a container, it is its members that are.
constexpr double kObjectBytes = 1 << 20, kMemberBytes = 16 << 10;

std::uint8_t stratum_of(const SampleUnit& unit) {
  return static_cast<std::uint8_t>((unit.is_container ? 2 : 0) + (unit.bytes >= kLargeBytes ? 1 : 0));
}

double as_part(std::uint64_t number) { return std::ldexp(static_cast<double>(number), -64); }

// Beyond which one in forty lies: Student's distribution, within 2 % of the tables.
double student(double freedom) {
  constexpr double kFew[] = {12.71, 4.30, 3.18, 2.78};
  if (freedom < 5) {
    const double from = std::clamp(freedom, 1.0, 4.0);
    const auto low = static_cast<std::size_t>(from) - 1;
    const std::size_t high = std::min<std::size_t>(low + 1, 3);
    return kFew[low] + (kFew[high] - kFew[low]) * (from - std::floor(from));
  }
  return 1.96 + 2.37 / freedom + 2.8 / (freedom * freedom);
}

}  // namespace

std::uint64_t sample_file_id(std::string_view tree_path) {
  const Digest digest = hash(as_bytes(tree_path));
  std::uint64_t out;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

std::span<const FileSample::Drawn> FileSample::drawn_of(std::string_view tree_path) const {
  const auto found = drawn_.find(sample_file_id(tree_path));
  return found == drawn_.end() ? std::span<const Drawn>() : found->second;
}

FileSample::FileSample(const std::vector<SampleUnit>& units, double part,
                       std::span<const std::uint64_t> empty) {
  const std::vector<std::uint64_t> numbers = family_numbers(units);
  std::vector<std::uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return numbers[a] < numbers[b]; });
  for (const std::uint32_t i : order) {
    const SampleUnit& unit = units[i];
    if (families_.empty() || families_.back().number != numbers[i]) {
      families_.emplace_back();
      families_.back().number = numbers[i];
    }
    Family& family = families_.back();
    ++family.units;
    family.bytes += unit.bytes;
    if (!unit.is_stretch) family.file_bytes += unit.bytes;
    family.objects += 1 + unit.bytes / (unit.is_container ? kMemberBytes : kObjectBytes);
    family.expected += static_cast<double>(unit.expected);
    family.effort += (unit.is_container ? kContainerEffort : 1) * unit.bytes;
    family.stratum = std::max(family.stratum, stratum_of(unit));
  }
  // Of few families nothing can be said: then it is a larger part, or all.
  for (set_chances(part); part < 1 && drawn_families() < kLeastDrawn; set_chances(part)) part *= 2;
  for (std::uint8_t stratum = 0; stratum < kStrata; ++stratum) draw_enough_of(stratum, part);
  settle_complete();
  std::uint32_t family = 0;
  for (const std::uint32_t i : order) {
    while (families_[family].number != numbers[i]) ++family;
    if (!families_[family].is_drawn) continue;
    const std::uint64_t begin = units[i].stretch * kStretchBytes;
    drawn_[units[i].file].push_back({begin, begin + units[i].bytes, family});
    bytes_ += units[i].bytes;
  }
  for (auto& [file, stretches] : drawn_)
    std::sort(stretches.begin(), stretches.end(),
              [](const Drawn& a, const Drawn& b) { return a.begin < b.begin; });
  for (const std::uint64_t file : empty) drawn_.try_emplace(file, 1);
  join_strata();
}

// The factor that all chances have in common is found by halving. By what most is asked for first: what kin
// takes.
void FileSample::set_chances(double part) {
  std::array<double, 3> all{};
  double all_effort = 0;
  for (const Family& family : families_) {
    for (const By by : {By::size, By::expected, By::kin})
      all[static_cast<std::size_t>(by)] += family.size(by);
    all_effort += family.effort;
  }
  const auto weight = [&](const Family& family, By by) {
    const double whole = all[static_cast<std::size_t>(by)];
    return whole > 0 ? family.size(by) / whole : 0;
  };
  const auto chance = [&](const Family& family, double factor) {
    const double brings =
        weight(family, By::kin) + weight(family, By::expected) / 2 + weight(family, By::size) / 4;
    return part >= 1 ? 1
                     : std::clamp(factor * brings / std::sqrt(std::max(family.effort, 1.0)),
                                  kLeastChance * part, 1.0);
  };
  double low = -20, high = 100;  // as powers of two
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double effort = 0;
    for (const Family& family : families_) effort += chance(family, std::exp2(middle)) * family.effort;
    (effort > part * all_effort ? high : low) = middle;
  }
  for (Family& family : families_) {
    family.chance = chance(family, std::exp2(low));
    family.is_drawn = as_part(family.number) < family.chance;
  }
}

// Where few families hold much of the data, chances that suit their effort may draw none of them: and what
// others take says nothing of these. Then their chances are doubled until enough are drawn.
void FileSample::draw_enough_of(std::uint8_t stratum, double part) {
  double bytes = 0, expected = 0, all_bytes = 0, all_expected = 0, all_effort = 0;
  for (const Family& family : families_) {
    all_bytes += static_cast<double>(family.bytes);
    all_expected += family.expected;
    all_effort += family.effort;
    if (family.stratum != stratum) continue;
    bytes += static_cast<double>(family.bytes);
    expected += family.expected;
  }
  if (bytes < kNotable * all_bytes && expected < kNotable * all_expected) return;
  const double most_effort = kMoreEffort * part * all_effort;
  for (double least = part; least < 2; least *= 2) {
    double effort = 0;
    unsigned drawn = 0;
    for (const Family& family : families_) {
      const bool is_of_it = family.stratum == stratum;
      drawn += is_of_it && family.is_drawn;
      effort += std::max(family.chance, is_of_it ? std::min(least, 1.0) : 0.0) * family.effort;
    }
    if (drawn >= (effort > most_effort ? kFewestDrawn : kLeastDrawn)) return;
    for (Family& family : families_) {
      if (family.stratum != stratum) continue;
      family.chance = std::max(family.chance, std::min(least, 1.0));
      family.is_drawn = as_part(family.number) < family.chance;
    }
  }
}

// A stratum that all families were drawn of is known, whatever their chances were.
void FileSample::settle_complete() {
  std::array<bool, kStrata> is_complete;
  is_complete.fill(true);
  for (const Family& family : families_)
    if (!family.is_drawn) is_complete[family.stratum] = false;
  for (Family& family : families_)
    if (is_complete[family.stratum]) family.chance = 1;
}

FileSample FileSample::half() const {
  FileSample out;
  out.families_ = families_;
  out.joined_ = joined_;
  for (Family& family : out.families_) family.is_drawn = as_part(family.number) < family.chance / 2;
  for (const auto& [file, drawn] : drawn_)
    for (const Drawn& each : drawn) {
      if (each.is_empty()) {
        out.drawn_.try_emplace(file, 1);
        continue;
      }
      if (!out.families_[each.family].is_drawn) continue;
      out.drawn_[file].push_back(each);
      out.bytes_ += each.end - each.begin;
    }
  return out;
}

double FileSample::weighted(std::span<const double> taken) const {
  double out = 0;
  for (std::size_t i = 0; i < families_.size(); ++i)
    if (families_[i].is_drawn) out += taken[i] / families_[i].chance;
  return out;
}

void FileSample::join_strata() {
  std::array<unsigned, kStrata> drawn{};
  for (const Family& family : families_) drawn[family.stratum] += family.is_drawn && !family.is_sure();
  std::uint8_t into = 0;
  unsigned so_far = 0;
  for (std::uint8_t i = 0; i < kStrata; ++i) {
    joined_[i] = into;
    so_far += drawn[i];
    if (so_far < kLeastDrawn) continue;
    into = static_cast<std::uint8_t>(i + 1);
    so_far = 0;
  }
  // What is left at the end is too little, and goes to the one before.
  if (into == 0 || into == kStrata) return;
  const std::uint8_t last_whole = joined_[into - 1];
  for (std::uint8_t i = into; i < kStrata; ++i) joined_[i] = last_whole;
}

std::uint64_t FileSample::drawn_families() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(families_, &Family::is_drawn));
}

double FileSample::Family::size(By by) const {
  if (by == By::size) return static_cast<double>(file_bytes);
  if (by == By::expected) return expected;
  if (by == By::objects) return objects;
  const auto count = static_cast<double>(units);
  return expected / count * (1 + kDeltaPart * (count - 1));
}

double FileSample::share() const {
  double drawn = 0, all = 0;
  for (const Family& family : families_) {
    all += family.size(By::kin);
    if (family.is_drawn) drawn += family.size(By::kin);
  }
  return all > 0 ? drawn / all : 1;
}

Estimated FileSample::estimate(std::span<const double> taken, By by) const {
  struct Stratum {
    double all = 0;              // sizes of all that were not sure to be drawn, exactly
    double size = 0, taken = 0;  // as the drawn tell it
    double error = 0;            // the sum of squares, of those off the ratio
    double size_error = 0;       // the same for sizes, as the drawn tell it,
    double all_size_error = 0;   // and exactly
    double ratio() const { return size > 0 ? taken / size : 0; }
  };
  // What was too little to be drawn of, though it is taken to be as another stratum.
  struct Unseen {
    unsigned drawn = 0;
    double size = 0, bytes = 0;
  };
  std::array<Stratum, kStrata> strata{};
  std::array<Unseen, kStrata> unseen{};
  double known = 0;  // of those that were sure to be drawn, which speak for themselves alone
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const Family& family = families_[i];
    if (family.is_sure()) {
      known += taken[i];
      continue;
    }
    Stratum& stratum = strata[joined_[family.stratum]];
    Unseen& own = unseen[family.stratum];
    const double size = family.size(by);
    stratum.all += size;
    stratum.all_size_error += (1 - family.chance) / family.chance * size * size;
    own.size += size;
    own.bytes += by == By::size ? size : static_cast<double>(family.bytes);
    if (!family.is_drawn) continue;
    ++own.drawn;
    stratum.size += size / family.chance;
    stratum.taken += taken[i] / family.chance;
  }
  double squares = 0, fourths = 0;
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const Family& family = families_[i];
    if (!family.is_drawn || family.is_sure()) continue;
    Stratum& stratum = strata[joined_[family.stratum]];
    const double off = taken[i] - stratum.ratio() * family.size(by);
    const double weight = (1 - family.chance) / (family.chance * family.chance);
    const double size = weight * family.size(by) * family.size(by);
    stratum.error += weight * off * off;
    stratum.size_error += size;
    squares += size;
    fourths += size * size;
  }
  double told = 0, error = 0;
  for (const Stratum& stratum : strata) {
    told += stratum.ratio() * stratum.all;
    if (stratum.size_error > 0)
      error += stratum.error * std::max(1.0, stratum.all_size_error / stratum.size_error);
  }
  // As if so many had the same part in it. The ratio is made to fit one.
  const double equals = fourths > 0 ? squares * squares / fourths : 1;
  const double freedom = std::max(equals - 1, 1.0);
  error *= 1 + 1 / freedom;
  // Files that are there twice are few and large: what none of n shows, one in n / 3 may still have.
  const double twice = by == By::size ? 3 * told / std::max(equals, 3.0) : 0;
  const double off = std::max(kTails * student(freedom) * std::sqrt(error), twice);
  Estimated out;
  out.value = known + told;
  // In powers: an estimate may be off by a factor, and nothing takes less than nothing.
  const double factor = out.value > 0 ? std::exp(std::min(10.0, off / out.value)) : 1;
  out.low = std::max(known, out.value / factor);
  out.high = out.value * factor;
  // Of what nothing was seen of, all that is known is that it takes between nothing and all.
  for (std::size_t i = 0; i < kStrata; ++i) {
    if (unseen[i].drawn >= kSeenDrawn) continue;
    const double taken_to_be = strata[joined_[i]].ratio() * unseen[i].size;
    out.low = std::max(known, out.low - taken_to_be);
    if (by != By::objects) out.high += std::max(unseen[i].bytes - taken_to_be, 0.0);
  }
  return out;
}

}  // namespace kin

#include "lib/engine/sample_families.h"

#include "lib/base/hash.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <unordered_set>

namespace kin {
namespace {

struct Carrier {
  std::uint64_t feature;
  std::uint32_t unit;
};

// Units as trees that point to their root; the smaller one is hung below the larger.
class Families {
 public:
  explicit Families(std::size_t units) : parents_(units), sizes_(units, 1) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  std::uint32_t root(std::uint32_t unit) {
    while (parents_[unit] != unit) unit = parents_[unit] = parents_[parents_[unit]];
    return unit;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = root(a);
    b = root(b);
    if (a == b || sizes_[a] + sizes_[b] > kMostFamily) return;
    if (sizes_[a] < sizes_[b]) std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
  }

 private:
  std::vector<std::uint32_t> parents_, sizes_;
};

std::uint64_t mixed(std::uint64_t number) {
  std::array<std::uint8_t, 8> bytes;
  std::memcpy(bytes.data(), &number, bytes.size());
  const Digest digest = hash(bytes);
  std::memcpy(&number, digest.data(), sizeof number);
  return number;
}

// Stretches at another place are no kin, or a large file that resembles itself would be one family, and be
// drawn as a whole or not at all. Another version of the file has its stretches at the same places.
std::uint64_t placed(std::uint64_t feature, const SampleUnit& unit) {
  return feature ^ (unit.stretch * 0x9e3779b97f4a7c15);
}

}  // namespace

std::vector<std::uint64_t> family_numbers(std::span<const SampleUnit> units) {
  std::vector<Carrier> carriers;
  for (std::uint32_t i = 0; i < units.size(); ++i)
    for (const std::uint64_t feature : units[i].features)
      if (feature != 0) carriers.push_back({placed(feature, units[i]), i});
  // Units by name, not by place: files are met in another order each time.
  std::sort(carriers.begin(), carriers.end(), [&](const Carrier& a, const Carrier& b) {
    if (a.feature != b.feature) return a.feature < b.feature;
    const SampleUnit &left = units[a.unit], &right = units[b.unit];
    return std::pair(left.file, left.stretch) < std::pair(right.file, right.stretch);
  });
  std::vector<std::span<const Carrier>> shared;
  std::unordered_set<std::uint64_t> common;
  for (std::size_t at = 0; at < carriers.size();) {
    std::size_t end = at + 1;
    while (end < carriers.size() && carriers[end].feature == carriers[at].feature) ++end;
    if (end - at > kMostCarriers)
      common.insert(carriers[at].feature);
    else if (end - at > 1)
      shared.push_back(std::span(carriers).subspan(at, end - at));
    at = end;
  }
  std::stable_sort(shared.begin(), shared.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  Families families(units.size());
  for (const auto& group : shared)
    for (const Carrier& carrier : group.subspan(1)) families.join(group.front().unit, carrier.unit);

  // By the smallest feature that is theirs; of units that have none, by the smallest of all.
  std::vector<std::uint64_t> out(units.size(), UINT64_MAX);
  for (std::uint32_t i = 0; i < units.size(); ++i) {
    std::uint64_t& least = out[families.root(i)];
    for (const std::uint64_t feature : units[i].features)
      if (const std::uint64_t at_place = placed(feature, units[i]);
          feature != 0 && !common.contains(at_place))
        least = std::min(least, at_place);
    if (least == UINT64_MAX) least = placed(units[i].features.front(), units[i]);
  }
  for (std::uint32_t i = 0; i < units.size(); ++i) out[i] = out[families.root(i)];
  // Several may have the same: empty stretches, say. The first 256 are a family, the next are the next.
  std::vector<std::uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(out[a], units[a].file, units[a].stretch) <
           std::tuple(out[b], units[b].file, units[b].stretch);
  });
  std::uint64_t before = 0, count = 0;
  for (const std::uint32_t i : order) {
    count = out[i] == before ? count + 1 : 0;
    before = out[i];
    out[i] = mixed(out[i] + count / kMostFamily);
  }
  return out;
}

}  // namespace kin

// simihash: similar files have similar keys (Sadowski and Levin, 2011).
//
// The problem: to compare with all others is quadratic. The idea: one number per file, so that similar files
// have numbers close to each other, and sorted numbers are searched by range. The number is a linear
// combination of the sum table (simihash_tags.h), which counts 16 bit patterns. It says little: files of one
// size have close keys whatever is in them. So what is found by key has to pass the size, and then the sum
// table itself, which is kept beside: the distance of two tables is the sum of the differences of their
// entries.
//
// Keys: "uniform" gives all tags the same weight; "skew" weights four of them unevenly, 0x00 most, and gives
// fewer false hits on real files. With the extension, a hash of the first three characters of the file's
// suffix is put in front, so that files of different suffixes are never close. (The paper adds it to a key of
// 32 bits, where keys of large files wrap; 64 bits have room for both.)
//
// The tolerance is a part of the file's size, since keys grow with it. What it finds is what has the same
// counts, and not what has the same content: large files of one kind are all alike to it. docs/detectors.md
// has what that means for bases.
#include "lib/similarity/detector.h"
#include "lib/similarity/simihash_tags.h"

#include <algorithm>
#include <optional>

namespace kin {
namespace {

constexpr double kSimihashTolerance = 0.01;     // of a file's size, for keys and for sum tables
constexpr double kSimihashSizeTolerance = 0.1;  // by which sizes may differ

using SimihashWeights = std::array<std::uint32_t, kSimihashTags>;
constexpr SimihashWeights kUniformWeights = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr SimihashWeights kSkewWeights = {8, 4, 2, 1};

std::uint64_t extension_part(std::string_view name) {
  const std::string_view base = name.substr(name.find_last_of('/') + 1);  // npos + 1 is 0
  const std::size_t dot = base.find_last_of('.');
  const std::string_view extension =
      dot == std::string_view::npos || dot == 0 ? std::string_view() : base.substr(dot + 1, 3);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : extension) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return (hash ^ hash >> 32) & 0xffffff;
}

class SimihashIndex : public PrintIndex {
 public:
  explicit SimihashIndex(std::unique_ptr<KeyStore> keys) : keys_(std::move(keys)) {}

  Result<void> add(std::uint32_t file, const Print& print) override {
    if (print.values.empty()) return {};
    KIN_TRY(keys_->add(print.key, static_cast<std::uint32_t>(known_.size())));
    known_.push_back({file, print.file_bytes, {}});
    std::copy(print.values.begin(), print.values.end(), known_.back().sums.begin());
    return {};
  }

  Result<std::vector<Match>> find(const Print& print, const FindLimits& limits) override {
    std::vector<Match> out;
    if (print.values.empty()) return out;
    const std::uint64_t tolerance = tolerance_of(print);
    const std::size_t most = limits.most_looked_at == 0 ? SIZE_MAX : limits.most_looked_at * kSimihashTags;
    KIN_TRY_ASSIGN(const std::vector<std::uint32_t> near, keys_->find_nearest(print.key, tolerance, most));
    counts_.candidates += near.size();
    for (const std::uint32_t place : near) {
      const Known& other = known_[place];
      const std::optional<double> similarity = table_similarity(print, other.bytes, other.sums);
      if (!similarity) continue;
      ++counts_.matches;
      if (*similarity >= limits.least_similarity) out.push_back({other.file, *similarity, *similarity});
    }
    std::sort(out.begin(), out.end(), [](const Match& a, const Match& b) {
      return a.similarity != b.similarity ? a.similarity > b.similarity : a.file > b.file;
    });
    if (out.size() > limits.most_matches) out.resize(limits.most_matches);
    return out;
  }

  Match compare(const Print& print, const Print& other) const override {
    if (print.values.empty() || other.values.empty()) return {};
    if (std::max(print.key, other.key) - std::min(print.key, other.key) > tolerance_of(print)) return {};
    const double similarity = table_similarity(print, other.file_bytes, other.values).value_or(0);
    return {0, similarity, similarity};
  }

  std::uint64_t bytes() const override { return known_.capacity() * sizeof(Known) + keys_->bytes(); }

 private:
  static std::uint64_t tolerance_of(const Print& print) {
    return static_cast<std::uint64_t>(kSimihashTolerance * static_cast<double>(print.file_bytes));
  }

  // None: the sizes or the tables are too far apart.
  static std::optional<double> table_similarity(const Print& print, std::uint64_t other_size,
                                                std::span<const std::uint64_t> other_sums) {
    const double bytes = static_cast<double>(print.file_bytes), other_bytes = static_cast<double>(other_size);
    if (std::max(bytes, other_bytes) - std::min(bytes, other_bytes) > kSimihashSizeTolerance * bytes)
      return std::nullopt;
    std::uint64_t distance = 0, total = 0;
    for (std::size_t i = 0; i < kSimihashTags; ++i) {
      distance += std::max(print.values[i], other_sums[i]) - std::min(print.values[i], other_sums[i]);
      total += print.values[i] + other_sums[i];
    }
    if (distance > tolerance_of(print)) return std::nullopt;
    return total == 0 ? 0 : 1 - static_cast<double>(distance) / static_cast<double>(total);
  }

  struct Known {
    std::uint32_t file = 0;
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, kSimihashTags> sums{};
  };
  const std::unique_ptr<KeyStore> keys_;
  std::vector<Known> known_;
};

class SimihashDetector : public Detector {
 public:
  SimihashDetector(const SimihashWeights& weights, bool extension)
      : weights_(weights), extension_(extension) {}

  Result<Print> print(ContentReader& content, std::string_view name) const override {
    TagCounter counter;
    KIN_TRY(for_each_piece(content, 0, [&](ByteView bytes, std::uint64_t) { counter.add(bytes); }));
    Print out;
    out.file_bytes = counter.bytes();
    if (out.file_bytes == 0) return out;
    out.values.assign(counter.sums().begin(), counter.sums().end());
    for (std::size_t i = 0; i < kSimihashTags; ++i) out.key += weights_[i] * counter.sums()[i];
    out.key = clamped_simihash_key(out.key);
    if (extension_) out.key += extension_part(name) << kSimihashKeyBits;
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore& make_keys) const override {
    KIN_TRY_ASSIGN(auto keys, make_keys());
    return std::unique_ptr<PrintIndex>(std::make_unique<SimihashIndex>(std::move(keys)));
  }

  double usual_similarity() const override { return 0.9; }
  bool values_are_a_set() const override { return false; }  // they are counts

 private:
  const SimihashWeights weights_;
  const bool extension_;
};

}  // namespace

std::unique_ptr<Detector> make_simihash_detector() {
  return std::make_unique<SimihashDetector>(kSkewWeights, true);
}
std::unique_ptr<Detector> make_simihash_skew_detector() {
  return std::make_unique<SimihashDetector>(kSkewWeights, false);
}
std::unique_ptr<Detector> make_simihash_uniform_detector() {
  return std::make_unique<SimihashDetector>(kUniformWeights, false);
}
std::unique_ptr<Detector> make_simihash_uniform_extension_detector() {
  return std::make_unique<SimihashDetector>(kUniformWeights, true);
}

}  // namespace kin

#include "lib/engine/savings.h"

#include "lib/base/hash.h"
#include "lib/base/wire.h"

#include <algorithm>
#include <cstring>

namespace kin {
namespace {

constexpr std::size_t kSkewPoints = 100;
constexpr std::uint64_t kBlocks[] = {1, 1 << 10, 4 << 10, 32 << 10};
constexpr unsigned kThresholds[] = {100, 90, 75, 50, 25, 10};
constexpr std::uint64_t kMinimums[] = {0, 128, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};

// Ids and digests are as good as random: of 2^64, a billion have one chance in forty to share any.
std::uint64_t start_of(const Digest& bytes) {
  std::uint64_t out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

std::uint64_t saved(const Savings::Pair& pair) { return pair.compressed - pair.delta; }

double part(std::uint64_t of, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(of) / static_cast<double>(all);
}

}  // namespace

std::uint64_t SavingsMeter::name_of(const ObjectId& id) { return start_of(id.bytes); }

void SavingsMeter::on_met(const ObjectId& id, bool is_new) {
  if (!is_new) ++repeats_[name_of(id)];
}

void SavingsMeter::on_tried(const MeasuredObject& object) {
  const std::uint64_t compressed = object.alone_bytes;
  const bool pays = object.delta_bytes && *object.delta_bytes < compressed;
  const std::uint64_t best = pays ? *object.delta_bytes : compressed;
  // No object is larger than a segment or a recipe's piece.
  measured_.push_back({name_of(object.id), static_cast<std::uint32_t>(object.size),
                       static_cast<std::uint32_t>(compressed), static_cast<std::uint32_t>(best)});
  Savings& out = of_objects_;
  out.objects_compressed += compressed;
  out.deltas += best;
  if (pays) ++out.delta_objects;
  const unsigned matches = object.delta_bytes ? object.matches : 0;
  if (out.by_matches.size() <= matches) out.by_matches.resize(matches + 1);
  Savings::Matches& row = out.by_matches[matches];
  ++row.objects;
  row.bytes += object.size;
  row.compressed += compressed;
  row.deltas += best;
  if (pays) keep_pair(object);
  if (compares_ && object.delta_bytes) compare(object);
}

void SavingsMeter::compare(const MeasuredObject& object) {
  Savings::Programs& programs = of_objects_.programs;
  ++programs.objects;
  programs.bytes += object.size;
  programs.compressed += object.alone_bytes;
  programs.zstd += object.zstd_bytes;
  programs.xdelta3 += object.xdelta3_bytes;
  programs.better += std::min(object.zstd_bytes, object.xdelta3_bytes);
  if (object.equal_deltas.size() < 2) return;
  Savings::EqualBases& equal = of_objects_.equal_bases;
  ++equal.objects;
  equal.bytes += object.size;
  equal.first += object.equal_deltas.front();
  std::uint64_t best = UINT64_MAX, sum = 0;
  for (const std::uint64_t bytes : object.equal_deltas) {
    best = std::min(best, bytes);
    sum += bytes;
  }
  equal.best += best;
  equal.average += static_cast<double>(sum) / static_cast<double>(object.equal_deltas.size());
}

void SavingsMeter::keep_pair(const MeasuredObject& object) {
  std::vector<Savings::Pair>& pairs = of_objects_.pairs;
  Savings::Pair pair{object.id,          object.base,         object.size,
                     object.alone_bytes, *object.delta_bytes, object.matches};
  if (pairs.size() == kMostPairs && saved(pairs.back()) >= saved(pair)) return;
  // After those that save as much, so that the first to come stays the first.
  const auto place =
      std::upper_bound(pairs.begin(), pairs.end(), pair,
                       [](const Savings::Pair& a, const Savings::Pair& b) { return saved(a) > saved(b); });
  pairs.insert(place, std::move(pair));
  if (pairs.size() > kMostPairs) pairs.pop_back();
}

void SavingsMeter::on_file(std::uint64_t size, const std::vector<Extent>& content) {
  WireWriter out;
  for (const Extent& extent : content) encode_extent(extent, out);
  if (files_.insert(start_of(hash(out.bytes()))).second) distinct_file_bytes_ += size;
}

// Sorts what was measured.
std::vector<Savings::Skew> SavingsMeter::skew() {
  std::sort(measured_.begin(), measured_.end(), [](const Measured& a, const Measured& b) {
    return a.saved() != b.saved() ? a.saved() > b.saved() : a.id < b.id;
  });
  std::uint64_t all_bytes = 0, all_saved = 0;
  for (const Measured& object : measured_) {
    all_bytes += object.size;
    all_saved += object.saved();
  }
  std::vector<Savings::Skew> out;
  if (all_saved == 0) return out;
  out.emplace_back();
  std::uint64_t bytes = 0, saved = 0;
  for (std::size_t i = 0, next = 1; i < measured_.size(); ++i) {
    bytes += measured_[i].size;
    saved += measured_[i].saved();
    if ((i + 1) * kSkewPoints < next * measured_.size()) continue;
    out.push_back({part(i + 1, measured_.size()), part(bytes, all_bytes), part(saved, all_saved)});
    while ((i + 1) * kSkewPoints >= next * measured_.size()) ++next;
  }
  return out;
}

void SavingsMeter::sweep(Savings& out) const {
  for (const std::uint64_t block : kBlocks) {
    const auto up = [&](std::uint64_t bytes) { return (bytes + block - 1) / block * block; };
    Savings::Rounding row{block};
    for (const Measured& object : measured_) {
      row.original += up(object.size);
      row.compressed += up(object.compressed);
      row.deltas += up(object.best);
    }
    out.roundings.push_back(row);
  }
  for (const unsigned percent : kThresholds) {
    Savings::Threshold row{percent};
    for (const Measured& object : measured_) {
      const bool kept = object.best < object.compressed &&
                        std::uint64_t{object.best} * 100 <= std::uint64_t{object.compressed} * percent;
      row.deltas += kept ? object.best : object.compressed;
      row.delta_objects += kept;
    }
    out.thresholds.push_back(row);
  }
  for (const std::uint64_t size : kMinimums) {
    Savings::Minimum row{size};
    for (const Measured& object : measured_) {
      if (object.size < size) continue;
      ++row.objects;
      row.bytes += object.size;
      row.compressed += object.compressed;
      row.deltas += object.best;
    }
    out.minimums.push_back(row);
  }
}

Savings SavingsMeter::result() {
  Savings out = std::move(of_objects_);
  out.distinct_files = files_.size();
  out.distinct_file_bytes = distinct_file_bytes_;
  for (const Measured& object : measured_) {
    const auto again = repeats_.find(object.id);
    out.files_compressed += object.compressed * (1 + (again == repeats_.end() ? 0 : again->second));
  }
  out.skew = skew();
  sweep(out);
  return out;
}

}  // namespace kin

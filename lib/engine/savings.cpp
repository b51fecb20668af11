#include "lib/engine/savings.h"

#include "lib/base/hash.h"
#include "lib/base/wire.h"

#include <algorithm>
#include <cstring>

namespace kin {
namespace {

constexpr std::size_t kSkewPoints = 100;

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

void SavingsMeter::on_met(const ObjectId& id, bool is_new) {
  if (!is_new) ++repeats_[start_of(id.bytes)];
}

void SavingsMeter::on_tried(const MeasuredObject& object) {
  const std::uint64_t compressed = object.alone_bytes;
  const bool pays = object.delta_bytes && *object.delta_bytes < compressed;
  const std::uint64_t best = pays ? *object.delta_bytes : compressed;
  // No object is larger than a segment or a recipe's piece.
  measured_.push_back({start_of(object.id.bytes), static_cast<std::uint32_t>(object.size),
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

Savings SavingsMeter::result() {
  Savings out = std::move(of_objects_);
  out.distinct_files = files_.size();
  out.distinct_file_bytes = distinct_file_bytes_;
  for (const Measured& object : measured_) {
    const auto again = repeats_.find(object.id);
    out.files_compressed += object.compressed * (1 + (again == repeats_.end() ? 0 : again->second));
  }
  out.skew = skew();
  return out;
}

}  // namespace kin

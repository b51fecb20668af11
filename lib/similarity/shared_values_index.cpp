// Which files share values with this one?
//
// The idea: from value to the files that have it, newest first. A hash table of values, and one long array of
// postings in which each points to the next older one of its value: adding moves nothing. A question walks
// the rows of its values and counts per file in an array that has a place for each; those that were touched
// are cleared again.
//
// Rejected: sif's own way, which writes all pairs of value and file, sorts them, and then sorts the sets. It
// answers all against all only, when all is read; and a value that half of the files have makes a set of half
// of the files for each of them. Here a caller may bound how many files per value are looked at. So the time
// per value is bounded, and the whole is linear in the values.
//
// Rejected as well: to leave out values that very many files have. Of many copies of a file, none would be
// like another.
// 32 to 64 bytes per value, and 12 per file that has it.
#include "lib/similarity/shared_values_index.h"

#include <algorithm>

namespace kin {
namespace {

constexpr std::uint32_t kNoPosting = UINT32_MAX;

class SharedValuesIndex : public PrintIndex {
 public:
  explicit SharedValuesIndex(Measure measure) : measure_(measure), slots_(1024) {}

  Result<void> add(std::uint32_t file, const Print& print) override;
  Result<std::vector<Match>> find(const Print& print, const FindLimits& limits) override;
  Match compare(const Print& print, const Print& other) const override;
  std::uint64_t bytes() const override {
    return slots_.capacity() * sizeof(Slot) + postings_.capacity() * sizeof(Posting) +
           files_.capacity() * sizeof(Known) + tallies_.capacity() * sizeof(Tally);
  }

 private:
  struct Slot {
    std::uint64_t value = 0;
    std::uint32_t newest = kNoPosting;  // none: the slot is free
    std::uint32_t files = 0;
  };
  struct Posting {
    std::uint32_t place;  // in files_
    std::uint32_t times;  // that the file has the value
    std::uint32_t older;
  };
  struct Known {
    std::uint32_t file = 0, kind = 0;
    std::size_t values = 0;
  };
  struct Tally {
    std::uint32_t query_shared = 0, other_shared = 0, distinct_shared = 0;
    float rarity = 0;
  };
  struct Counted {
    std::uint64_t value;
    std::uint32_t times;
  };

  static std::vector<Counted> counted(const Print& print);
  Slot& slot_of(std::uint64_t value);
  void grow();
  void tally(const Counted& value, std::uint32_t kind, std::size_t most);

  const Measure measure_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  std::size_t used_ = 0;
  std::vector<Posting> postings_;
  std::vector<Known> files_;
  std::vector<Tally> tallies_;          // one per file; all zero between calls
  std::vector<std::uint32_t> touched_;  // those that are not
};

std::vector<SharedValuesIndex::Counted> SharedValuesIndex::counted(const Print& print) {
  std::vector<std::uint64_t> sorted = print.values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Counted> out;
  for (const std::uint64_t value : sorted) {
    if (out.empty() || out.back().value != value) out.push_back({value, 0});
    ++out.back().times;
  }
  return out;
}

SharedValuesIndex::Slot& SharedValuesIndex::slot_of(std::uint64_t value) {
  std::uint64_t mixed = value * 0x9e3779b97f4a7c15;
  mixed ^= mixed >> 32;
  for (std::size_t at = static_cast<std::size_t>(mixed);; ++at) {
    Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.newest == kNoPosting || slot.value == value) return slot;
  }
}

void SharedValuesIndex::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.newest != kNoPosting) slot_of(slot.value) = slot;
}

Result<void> SharedValuesIndex::add(std::uint32_t file, const Print& print) {
  const std::uint32_t place = static_cast<std::uint32_t>(files_.size());
  for (const Counted& value : counted(print)) {
    if (postings_.size() >= kNoPosting - 1)
      return Error(ErrorCode::unsupported, "too many files at once: their prints have 4 billion values");
    Slot& slot = slot_of(value.value);
    if (slot.newest == kNoPosting) {
      slot.value = value.value;
      ++used_;
    }
    postings_.push_back({place, value.times, slot.newest});
    slot.newest = static_cast<std::uint32_t>(postings_.size() - 1);
    ++slot.files;
    if (used_ * 2 > slots_.size()) grow();
  }
  files_.push_back({file, print.kind, print.values.size()});
  tallies_.emplace_back();
  return {};
}

void SharedValuesIndex::tally(const Counted& value, std::uint32_t kind, std::size_t most) {
  const Slot& slot = slot_of(value.value);
  std::size_t left = most == 0 ? SIZE_MAX : most;
  for (std::uint32_t at = slot.newest; at != kNoPosting && left > 0; at = postings_[at].older, --left) {
    const Posting& posting = postings_[at];
    if (files_[posting.place].kind != kind) continue;
    Tally& tally = tallies_[posting.place];
    if (tally.distinct_shared == 0) touched_.push_back(posting.place);
    ++tally.distinct_shared;
    tally.query_shared += value.times;
    tally.other_shared += posting.times;
    tally.rarity += 1.0F / static_cast<float>(slot.files);
  }
}

Result<std::vector<Match>> SharedValuesIndex::find(const Print& print, const FindLimits& limits) {
  for (const Counted& value : counted(print)) tally(value, print.kind, limits.most_looked_at);
  struct Ranked {
    Match match;
    float rarity;
  };
  std::vector<Ranked> ranked;
  for (const std::uint32_t place : touched_) {
    Tally& tally = tallies_[place];
    const SharedValues shared{print.values.size(), files_[place].values, tally.query_shared,
                              tally.other_shared, tally.distinct_shared};
    const Match match{files_[place].file, measure_(shared), measure_(shared.reversed())};
    ++counts_.candidates;
    if (std::max(match.similarity, match.reverse) >= limits.least_similarity) {
      ++counts_.matches;
      ranked.push_back({match, tally.rarity});
    }
    tally = {};
  }
  touched_.clear();
  const auto better = [](const Ranked& a, const Ranked& b) {
    if (a.match.similarity != b.match.similarity) return a.match.similarity > b.match.similarity;
    return a.rarity != b.rarity ? a.rarity > b.rarity : a.match.file > b.match.file;
  };
  const std::size_t most = std::min(limits.most_matches, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(most), ranked.end(), better);
  std::vector<Match> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(ranked[i].match);
  return out;
}

Match SharedValuesIndex::compare(const Print& print, const Print& other) const {
  if (print.kind != other.kind) return {};
  SharedValues shared{print.values.size(), other.values.size(), 0, 0, 0};
  const std::vector<Counted> theirs = counted(other);
  auto at = theirs.begin();
  for (const Counted& mine : counted(print)) {
    while (at != theirs.end() && at->value < mine.value) ++at;
    if (at == theirs.end()) break;
    if (at->value != mine.value) continue;
    shared.query_shared += mine.times;
    shared.other_shared += at->times;
    ++shared.distinct_shared;
  }
  if (shared.distinct_shared == 0) return {};
  return {0, measure_(shared), measure_(shared.reversed())};
}

}  // namespace

std::unique_ptr<PrintIndex> make_shared_values_index(Measure measure) {
  return std::make_unique<SharedValuesIndex>(measure);
}

}  // namespace kin

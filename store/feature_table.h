// FeatureTable: the features that were added lately, in memory, sorted.
//
// Open addressing without a hash: keys are spread evenly, so a key's place is its share of the table's
// length. Those that collide stand in order behind each other. So the table is sorted at all times, and
// becomes a sorted run by reading it from one end to the other. 16 bytes per slot; most features have one
// object, which stands in the slot, and 28 more bytes for those with several. One thread at a time.
#pragma once

#include "store/feature_postings.h"

#include <cstddef>
#include <vector>

namespace kin::store {

class FeatureTable {
 public:
  explicit FeatureTable(std::size_t limit_bytes);

  // false, and nothing done, if there is no more room. Ordinals come in ascending order.
  bool add(FeatureKey key, Ordinal ordinal);
  // Nothing is known: a count of zero.
  Postings find(FeatureKey key) const;
  // So that several lookups wait for memory at the same time.
  void touch(FeatureKey key) const { __builtin_prefetch(&slots_[home(key)]); }

  std::size_t size() const { return used_; }
  void clear();

  template <class Function>  // (FeatureKey, const Postings&), keys ascending
  void for_each(Function function) const {
    for (const Slot& slot : slots_)
      if (slot.tagged != 0) function(slot.key(), postings_of(slot));
  }

 private:
  struct Slot {
    std::uint64_t tagged = 0;  // key << 16 | count; an empty slot's is 0
    Ordinal newest = 0;
    std::uint32_t older = 0;  // 1 + the place in older_; 0: none

    FeatureKey key() const { return tagged >> 16; }
    std::uint32_t count() const { return tagged & 0xffff; }
  };
  static_assert(Postings::kMostCommon + 1 <= 0xffff && kFeatureBits <= 48);
  using Older = std::array<Ordinal, Postings::kMost - 1>;

  std::size_t home(FeatureKey key) const { return key * capacity_ >> kFeatureBits; }
  Postings postings_of(const Slot& slot) const;
  void bump(Slot& slot, Ordinal ordinal);
  bool grow();
  void allocate(std::size_t capacity);

  std::size_t limit_bytes_;
  std::uint64_t capacity_ = 0;
  std::size_t used_ = 0;
  std::vector<Slot> slots_;  // capacity_ and some for those that are pushed beyond the end
  std::vector<Older> older_;
};

}  // namespace kin::store

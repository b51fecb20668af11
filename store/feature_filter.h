// FeatureFilter: tells in one access to memory that a sorted run surely does not have a feature.
//
// A Bloom filter in blocks of one cache line. A key's block is its share of the filter's length, so sorted
// keys go through the filter in order, and a run writes its filter in pieces while it writes itself.
#pragma once

#include "lib/base/bytes.h"
#include "store/feature_postings.h"

#include <cstddef>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace kin::store {

struct alignas(64) FilterBlock {
  std::array<std::uint64_t, 8> words{};

  static constexpr unsigned kProbes = 5;
  static constexpr unsigned kBits = 9;  // 512 to choose from

  static std::uint64_t bits_of(FeatureKey key) {
    std::uint64_t hash = (key + 1) * 0x94d049bb133111eb;
    hash ^= hash >> 32;
    return hash * 0xd6e8feb86659fd93 >> 19;
  }
  void insert(FeatureKey key) {
    std::uint64_t bits = bits_of(key);
    for (unsigned i = 0; i < kProbes; ++i, bits >>= kBits)
      words[bits >> 6 & 7] |= std::uint64_t{1} << (bits & 63);
  }
  bool may_contain(FeatureKey key) const {
    std::uint64_t bits = bits_of(key);
    std::uint64_t all = 1;
    for (unsigned i = 0; i < kProbes; ++i, bits >>= kBits) all &= words[bits >> 6 & 7] >> (bits & 63);
    return all != 0;
  }
};
static_assert(sizeof(FilterBlock) == 64);

// Straight from the kernel and back: filters come and go with the runs, and the heap would keep the holes.
template <class T>
struct KernelAllocator {
  using value_type = T;

  T* allocate(std::size_t count) {
    void* const out =
        ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (out == MAP_FAILED) throw std::bad_alloc();  // as any allocator
    return static_cast<T*>(out);
  }
  void deallocate(T* values, std::size_t count) { ::munmap(values, count * sizeof(T)); }
  bool operator==(const KernelAllocator&) const = default;
};
using FilterBlocks = std::vector<FilterBlock, KernelAllocator<FilterBlock>>;

class FeatureFilter {
 public:
  static constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << (64 - kFeatureBits);

  FeatureFilter() = default;
  explicit FeatureFilter(std::size_t blocks) : blocks_(blocks) {}

  static std::size_t place(FeatureKey key, std::uint64_t blocks) { return key * blocks >> kFeatureBits; }

  void insert(FeatureKey key) { blocks_[place(key, blocks_.size())].insert(key); }
  bool may_contain(FeatureKey key) const { return blocks_[place(key, blocks_.size())].may_contain(key); }
  void touch(FeatureKey key) const { __builtin_prefetch(&blocks_[place(key, blocks_.size())]); }

  bool empty() const { return blocks_.empty(); }
  FilterBlocks& blocks() { return blocks_; }

 private:
  FilterBlocks blocks_;
};

}  // namespace kin::store

// A FeatureStore in memory: without bounds, for tests and for data that is known to be small.
#pragma once

#include "lib/similarity/feature_store.h"

#include <unordered_map>

namespace kin {

class MemoryFeatureStore : public FeatureStore {
 public:
  Result<void> prefetch(std::span<const Sketch* const>) override { return {}; }
  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) override;
  Result<void> add(const ObjectId& id, const Sketch& sketch) override;

 private:
  static constexpr std::size_t kMostPostings = 8;

  struct Postings {
    std::uint64_t frequency = 0;
    std::vector<std::uint32_t> newest;  // the newest last
  };

  std::vector<ObjectId> objects_;
  std::unordered_map<Feature, Postings> postings_;
};

}  // namespace kin

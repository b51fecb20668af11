// RepositoryFeatures: a repository's FeatureIndex, thread-safe: one thread looks for kin while another
// finishes packs.
#pragma once

#include "lib/base/mutex.h"
#include "lib/similarity/feature_store.h"
#include "store/feature_index.h"

#include <memory>
#include <set>
#include <string>

namespace kin::store {

class RepositoryFeatures : public FeatureStore {
 public:
  explicit RepositoryFeatures(std::unique_ptr<FeatureIndex> index) : index_(std::move(index)) {}

  // As in FeatureIndex.
  Result<void> prefetch(std::span<const Sketch* const> sketches) override;
  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) override;
  Result<void> add(const ObjectId& id, const Sketch& sketch) override;
  void commit(const std::string& segment);
  void clear();
  std::set<std::string> segments() const;
  std::string directory() const;

 private:
  mutable Mutex mutex_;
  std::unique_ptr<FeatureIndex> index_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin::store

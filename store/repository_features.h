// RepositoryFeatures: a repository's feature store, as backups see it. Never fails: without it, or when its
// cache breaks down, backups find fewer bases and go on. Thread-safe: one thread looks for kin while another
// finishes packs.
#pragma once

#include "lib/base/mutex.h"
#include "lib/similarity/feature_store.h"
#include "store/feature_index.h"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace kin::store {

class RepositoryFeatures : public FeatureStore {
 public:
  // Null: there is no feature store. `on_lost` is told once if it fails.
  RepositoryFeatures(std::unique_ptr<FeatureIndex> index, std::function<void(const Error&)> on_lost)
      : index_(std::move(index)), on_lost_(std::move(on_lost)) {}

  Result<void> prefetch(std::span<const Sketch* const> sketches) override;
  Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) override;
  Result<void> add(const ObjectId& id, const Sketch& sketch) override;

  // As in FeatureIndex.
  void commit(const std::string& segment);
  void clear();
  std::set<std::string> segments() const;
  std::string directory() const;  // empty: none

 private:
  // Gives up the index if the result is an error.
  template <class T>
  T keep(Result<T> result) KIN_REQUIRES(mutex_);
  void keep(const Result<void>& result) KIN_REQUIRES(mutex_);
  void lose(const Error& error) KIN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unique_ptr<FeatureIndex> index_ KIN_GUARDED_BY(mutex_);
  const std::function<void(const Error&)> on_lost_;
};

}  // namespace kin::store

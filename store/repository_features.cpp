#include "store/repository_features.h"

namespace kin::store {

Result<void> RepositoryFeatures::prefetch(std::span<const Sketch* const> sketches) {
  MutexLock lock(mutex_);
  return index_->prefetch(sketches);
}

Result<std::vector<Candidate>> RepositoryFeatures::candidates(const Sketch& sketch, std::size_t most) {
  MutexLock lock(mutex_);
  return index_->candidates(sketch, most);
}

Result<void> RepositoryFeatures::add(const ObjectId& id, const Sketch& sketch) {
  MutexLock lock(mutex_);
  return index_->add(id, sketch);
}

void RepositoryFeatures::commit(const std::string& segment) {
  MutexLock lock(mutex_);
  index_->commit(segment);
}

void RepositoryFeatures::clear() {
  MutexLock lock(mutex_);
  index_->clear();
}

std::set<std::string> RepositoryFeatures::segments() const {
  MutexLock lock(mutex_);
  return index_->segments();
}

std::string RepositoryFeatures::directory() const {
  MutexLock lock(mutex_);
  return index_->directory();
}

}  // namespace kin::store

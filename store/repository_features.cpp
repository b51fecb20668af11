#include "store/repository_features.h"

namespace kin::store {

void RepositoryFeatures::lose(const Error& error) {
  index_.reset();
  if (on_lost_) on_lost_(error);
}

template <class T>
T RepositoryFeatures::keep(Result<T> result) {
  if (result) return *std::move(result);
  lose(result.error());
  return {};
}

void RepositoryFeatures::keep(const Result<void>& result) {
  if (!result) lose(result.error());
}

Result<void> RepositoryFeatures::prefetch(std::span<const Sketch* const> sketches) {
  MutexLock lock(mutex_);
  if (index_) keep(index_->prefetch(sketches));
  return {};
}

Result<std::vector<Candidate>> RepositoryFeatures::candidates(const Sketch& sketch, std::size_t most) {
  MutexLock lock(mutex_);
  if (!index_) return std::vector<Candidate>();
  return keep(index_->candidates(sketch, most));
}

Result<void> RepositoryFeatures::add(const ObjectId& id, const Sketch& sketch) {
  MutexLock lock(mutex_);
  if (index_) keep(index_->add(id, sketch));
  return {};
}

void RepositoryFeatures::commit(const std::string& segment) {
  MutexLock lock(mutex_);
  if (index_) keep(index_->commit(segment));
}

void RepositoryFeatures::clear() {
  MutexLock lock(mutex_);
  if (index_) keep(index_->clear());
}

std::set<std::string> RepositoryFeatures::segments() const {
  MutexLock lock(mutex_);
  return index_ ? index_->segments() : std::set<std::string>();
}

std::string RepositoryFeatures::directory() const {
  MutexLock lock(mutex_);
  return index_ ? index_->directory() : "";
}

}  // namespace kin::store

// RestoreReport: counts what a restore does, and tells its observer. Thread-safe.
#pragma once

#include "lib/base/mutex.h"
#include "lib/engine/restore.h"

#include <string>

namespace kin {

class RestoreReport {
 public:
  using Action = RestoreObserver::Action;

  explicit RestoreReport(RestoreObserver& observer) : observer_(observer) {}

  void done(const std::string& path, const Node& node, Action action) {
    count(action == Action::unchanged        ? &RestoreStats::unchanged
          : action == Action::deleted        ? &RestoreStats::deleted
          : node.type == NodeType::file      ? &RestoreStats::files
          : node.type == NodeType::directory ? &RestoreStats::directories
                                             : &RestoreStats::others);
    observer_.on_entry(path, node, action);
  }

  void failed(const std::string& path, const Error& error) {
    if (error.code() == ErrorCode::cancelled) return;  // no fault of the path
    {
      MutexLock lock(mutex_);
      ++stats_.failed;
      stats_.corrupt |= error.code() == ErrorCode::corrupt;
    }
    observer_.on_failed(path.empty() ? "/" : path, error);
  }

  void not_deleted(const std::string& path, const Error& error) {
    count(&RestoreStats::not_deleted);
    observer_.on_not_deleted(path, error);
  }

  void left_alone(const std::string& path) { observer_.on_left_alone(path); }

  void count(std::uint64_t RestoreStats::*counter, std::uint64_t by = 1) {
    MutexLock lock(mutex_);
    stats_.*counter += by;
  }

  void wrote(std::uint64_t bytes) { observer_.on_bytes(bytes); }

  RestoreStats stats() {
    MutexLock lock(mutex_);
    return stats_;
  }

 private:
  RestoreObserver& observer_;
  Mutex mutex_;
  RestoreStats stats_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin

// MemoryResumeLog: a ResumeLog that a test can look into. Thread-safe.
#pragma once

#include "lib/base/mutex.h"
#include "lib/engine/resume_log.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kin::testing {

class MemoryResumeLog : public ResumeLog {
 public:
  Result<void> record(const std::vector<std::pair<std::string, Bytes>>& entries) override {
    MutexLock lock(mutex_);
    for (const auto& [path, value] : entries) entries_[path] = value;
    return {};
  }

  Result<std::optional<Bytes>> recorded(const std::string& path) override {
    MutexLock lock(mutex_);
    const auto at = entries_.find(path);
    if (at == entries_.end()) return std::optional<Bytes>();
    return std::optional<Bytes>(at->second);
  }

  Result<void> clear_records(const std::string& prefix) override {
    MutexLock lock(mutex_);
    std::erase_if(entries_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
    return {};
  }

  std::map<std::string, Bytes> entries() {
    MutexLock lock(mutex_);
    return entries_;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Bytes> entries_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin::testing

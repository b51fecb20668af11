// The progress line of a long job: percent, bytes, files, rate, time left, current file. On a terminal only;
// with --json a status line a second.
#pragma once

#include "cmd/context.h"
#include "lib/base/mutex.h"

#include <atomic>
#include <chrono>
#include <string>

namespace kin::cmd {

// Thread-safe.
class Progress {
 public:
  // by_files: what is done is told by the number of files, since it takes about the same for each.
  explicit Progress(Context& context, bool by_files = false) : context_(context), by_files_(by_files) {}
  ~Progress() { context_.progress(""); }

  // From here on: what was before was another job.
  void restart();
  void set_total(std::uint64_t files, std::uint64_t bytes) {
    total_files_ = files;
    total_bytes_ = bytes;
  }
  void add_files(std::uint64_t files) { files_ += files; }
  void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }
  // Draws if it is time to. `current` is what is being worked on.
  void tick(const std::string& current);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  Context& context_;
  const bool by_files_;
  std::atomic<Clock::time_point> started_ = Clock::now();
  std::atomic<std::uint64_t> files_{0}, bytes_{0}, total_files_{0}, total_bytes_{0};
  Mutex mutex_;
  Clock::time_point next_ KIN_GUARDED_BY(mutex_) = Clock::now();
};

}  // namespace kin::cmd

// WorkerPool: runs tasks on a fixed number of threads, in no order, until the first error.
//
// submit() waits while `limit_bytes` of announced cost are queued or running, which bounds memory. wait() is
// a barrier: all tasks are done, and the first error that any of them returned is the answer. After an error,
// queued tasks are dropped. One thread submits and waits; a task must not submit to its own pool (all workers
// could wait for room that only they make).
#pragma once

#include "lib/base/mutex.h"
#include "lib/base/result.h"

#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace kin {

class WorkerPool {
 public:
  using Task = std::function<Result<void>()>;

  WorkerPool(unsigned workers, std::size_t limit_bytes);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void submit(Task task, std::size_t cost_bytes);
  Result<void> wait();

 private:
  void work();
  void end_threads();

  struct Entry {
    Task task;
    std::size_t cost_bytes;
  };

  const std::size_t limit_bytes_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> queue_ KIN_GUARDED_BY(mutex_);
  std::size_t cost_bytes_ KIN_GUARDED_BY(mutex_) = 0;
  std::size_t running_ KIN_GUARDED_BY(mutex_) = 0;
  bool closed_ KIN_GUARDED_BY(mutex_) = false;
  std::optional<Error> first_error_ KIN_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace kin

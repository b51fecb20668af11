#include "lib/base/worker_pool.h"

#include "lib/base/catching.h"

#include <utility>

namespace kin {
WorkerPool::WorkerPool(unsigned workers, std::size_t limit_bytes) : limit_bytes_(limit_bytes) {
  try {
    for (unsigned i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    end_threads();  // those that there are; the system refused another
    throw;
  }
}

WorkerPool::~WorkerPool() { end_threads(); }

void WorkerPool::end_threads() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    queue_.clear();
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::submit(Task task, std::size_t cost_bytes) {
  MutexLock lock(mutex_);
  while (cost_bytes_ > 0 && cost_bytes_ + cost_bytes > limit_bytes_) changed_.wait(mutex_);
  if (first_error_) return;
  cost_bytes_ += cost_bytes;
  queue_.push_back({std::move(task), cost_bytes});
  changed_.notify_all();
}

Result<void> WorkerPool::wait() {
  MutexLock lock(mutex_);
  while (!queue_.empty() || running_ > 0) changed_.wait(mutex_);
  if (first_error_) return *std::exchange(first_error_, std::nullopt);
  return {};
}

void WorkerPool::work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !closed_) changed_.wait(mutex_);
    if (queue_.empty()) return;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    mutex_.unlock();
    Result<void> result = catching(entry.task);
    entry.task = nullptr;  // what it holds is released before its cost is
    mutex_.lock();
    --running_;
    cost_bytes_ -= entry.cost_bytes;
    if (!result && !first_error_) {
      first_error_ = std::move(result).error();
      for (const Entry& dropped : queue_) cost_bytes_ -= dropped.cost_bytes;
      queue_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace kin

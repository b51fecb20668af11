// OrderedStage: many workers, one order. Jobs go in by submit(), workers turn each into any number of items,
// and next() hands the items out in the order of the jobs, whichever worker was quicker.
//
// Why not a queue in, a queue out and a sorting buffer: a job may be a 10 GB file. Its items must flow while
// later jobs wait, and what the later ones have ready must stay within a bound. So every job has its own row
// of items. The oldest job may always emit (up to its share), the others only while all waiting items
// together stay below `limit_bytes`; hence no deadlock: the consumer waits for the oldest job alone, and the
// oldest job waits for the consumer alone. Jobs that no worker has taken yet stay below the same bound, or
// are one; for that, the submitter waits for a worker alone.
//
// What the standard library throws in a worker cancels the stage; result() then tells.
//
// Threads: one calls submit() and finish(), one calls next(); both may call cancel(). A worker is made per
// thread by `make_worker`, so that it can own a codec context or a buffer.
#pragma once

#include "lib/base/catching.h"
#include "lib/base/mutex.h"
#include "lib/base/result.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace kin {

template <class Job, class Item>
class OrderedStage {
 public:
  // Hands an item on; false means the stage was cancelled and the worker should return.
  using Emit = std::function<bool(Item item, std::size_t bytes)>;
  using Worker = std::function<void(Job job, const Emit& emit)>;

  OrderedStage(unsigned workers, std::size_t limit_bytes, const std::function<Worker()>& make_worker)
      : limit_bytes_(limit_bytes), share_bytes_(limit_bytes / (workers + 1)), most_rows_(4 * workers + 4) {
    try {
      for (unsigned i = 0; i < workers; ++i)
        threads_.emplace_back([this, worker = make_worker()] { work(worker); });
    } catch (...) {
      end_threads();  // those that there are; the system refused another
      throw;
    }
  }

  ~OrderedStage() { end_threads(); }

  // Waits while too many jobs are under way, or too many bytes of them; false when cancelled.
  bool submit(Job job, std::size_t bytes = 0) {
    MutexLock lock(mutex_);
    while (!cancelled_ && !may_submit(bytes)) room_for_jobs_.wait(mutex_);
    if (cancelled_) return false;
    rows_.push_back(std::make_shared<Row>(std::move(job), bytes));
    untaken_.push_back(rows_.back());
    untaken_bytes_ += bytes;
    job_ready_.notify_one();
    return true;
  }

  // No job follows.
  void finish() {
    MutexLock lock(mutex_);
    finished_ = true;
    job_ready_.notify_all();
    item_ready_.notify_all();
  }

  // Every waiting call returns empty-handed, now and later.
  void cancel() {
    MutexLock lock(mutex_);
    cancel_locked();
  }

  // What cancelled the stage from inside, if something did. To be asked when next() gives nothing.
  Result<void> result() {
    MutexLock lock(mutex_);
    return result_;
  }

  // The next item in order; nothing after the last one, or when cancelled.
  std::optional<Item> next() {
    MutexLock lock(mutex_);
    for (;;) {
      if (cancelled_) return std::nullopt;
      while (!rows_.empty() && rows_.front()->done && rows_.front()->items.empty()) {
        rows_.pop_front();
        room_for_jobs_.notify_one();
        room_for_items_.notify_all();  // there is a new oldest row, which may emit
      }
      if (!rows_.empty() && !rows_.front()->items.empty()) break;
      if (rows_.empty() && finished_) return std::nullopt;
      item_ready_.wait(mutex_);
    }
    Row& row = *rows_.front();
    auto [item, bytes] = std::move(row.items.front());
    row.items.pop_front();
    row.bytes -= bytes;
    waiting_bytes_ -= bytes;
    room_for_items_.notify_all();
    return std::move(item);
  }

 private:
  struct Row {
    Row(Job the_job, std::size_t the_job_bytes) : job(std::move(the_job)), job_bytes(the_job_bytes) {}
    Job job;
    const std::size_t job_bytes;
    std::deque<std::pair<Item, std::size_t>> items;
    std::size_t bytes = 0;
    bool done = false;
  };

  void work(const Worker& worker) {
    for (;;) {
      std::shared_ptr<Row> row;
      {
        MutexLock lock(mutex_);
        while (!cancelled_ && untaken_.empty() && !finished_) job_ready_.wait(mutex_);
        if (cancelled_ || untaken_.empty()) return;
        row = std::move(untaken_.front());
        untaken_.pop_front();
        untaken_bytes_ -= row->job_bytes;
        room_for_jobs_.notify_one();
      }
      Result<void> worked = catching([&]() -> Result<void> {
        worker(std::move(row->job),
               [&](Item item, std::size_t bytes) { return emit(*row, std::move(item), bytes); });
        return {};
      });
      MutexLock lock(mutex_);
      if (!worked) {
        if (result_) result_ = std::move(worked);
        return cancel_locked();
      }
      row->done = true;
      item_ready_.notify_one();
    }
  }

  void cancel_locked() KIN_REQUIRES(mutex_) {
    cancelled_ = true;
    job_ready_.notify_all();
    item_ready_.notify_all();
    room_for_items_.notify_all();
    room_for_jobs_.notify_all();
  }

  void end_threads() {
    cancel();
    for (std::thread& thread : threads_) thread.join();
  }

  bool emit(Row& row, Item item, std::size_t bytes) {
    MutexLock lock(mutex_);
    while (!cancelled_ && !may_emit(row, bytes)) room_for_items_.wait(mutex_);
    if (cancelled_) return false;
    row.items.emplace_back(std::move(item), bytes);
    row.bytes += bytes;
    waiting_bytes_ += bytes;
    if (rows_.front().get() == &row) item_ready_.notify_one();
    return true;
  }

  bool may_submit(std::size_t bytes) const KIN_REQUIRES(mutex_) {
    return rows_.size() < most_rows_ && (untaken_.empty() || untaken_bytes_ + bytes <= limit_bytes_);
  }

  bool may_emit(const Row& row, std::size_t bytes) const KIN_REQUIRES(mutex_) {
    if (rows_.front().get() == &row && (row.items.empty() || row.bytes + bytes <= share_bytes_)) return true;
    return waiting_bytes_ + bytes <= limit_bytes_;
  }

  const std::size_t limit_bytes_;
  const std::size_t share_bytes_;
  const std::size_t most_rows_;

  Mutex mutex_;
  CondVar job_ready_, item_ready_, room_for_items_, room_for_jobs_;
  std::deque<std::shared_ptr<Row>> rows_ KIN_GUARDED_BY(mutex_);     // oldest first; taken or not
  std::deque<std::shared_ptr<Row>> untaken_ KIN_GUARDED_BY(mutex_);  // the rows that no worker has yet
  std::size_t untaken_bytes_ KIN_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ KIN_GUARDED_BY(mutex_) = 0;
  bool finished_ KIN_GUARDED_BY(mutex_) = false;
  bool cancelled_ KIN_GUARDED_BY(mutex_) = false;
  Result<void> result_ KIN_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace kin

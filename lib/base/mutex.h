// Mutex, MutexLock and CondVar: the standard ones with clang's thread-safety attributes, so that
// -Wthread-safety proves at compile time that a KIN_GUARDED_BY member is touched only under its lock.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KIN_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define KIN_THREAD_ANNOTATION(x)
#endif

#define KIN_CAPABILITY(x) KIN_THREAD_ANNOTATION(capability(x))
#define KIN_SCOPED_CAPABILITY KIN_THREAD_ANNOTATION(scoped_lockable)
#define KIN_GUARDED_BY(x) KIN_THREAD_ANNOTATION(guarded_by(x))
#define KIN_REQUIRES(...) KIN_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define KIN_ACQUIRE(...) KIN_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define KIN_RELEASE(...) KIN_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace kin {

class KIN_CAPABILITY("mutex") Mutex {
 public:
  void lock() KIN_ACQUIRE() { mutex_.lock(); }
  void unlock() KIN_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class KIN_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KIN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() KIN_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // The mutex is released while waiting and held again on return; wake-ups may be spurious, so wait in a
  // loop.
  void wait(Mutex& mutex) KIN_REQUIRES(mutex) { condition_.wait(mutex); }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace kin

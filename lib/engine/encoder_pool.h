// EncoderPool: as many encoders as threads may encode at once. Thread-safe.
//
// An encoder has up to 15 MiB of tables and buffers. Trials and the encoding of groups each have threads of
// their own, but no more of them at work than there are cores; so they take turns with a few encoders.
#pragma once

#include "lib/base/mutex.h"
#include "lib/delta/block.h"

#include <memory>
#include <utility>
#include <vector>

namespace kin {

class EncoderPool {
 public:
  // Gives the encoder back when it goes. Who holds one must not wait for others that might need one.
  class Lease {
   public:
    Lease(EncoderPool& pool, std::unique_ptr<BlockEncoder> encoder)
        : pool_(pool), encoder_(std::move(encoder)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.put_back(std::move(encoder_)); }
    BlockEncoder* operator->() const { return encoder_.get(); }

   private:
    EncoderPool& pool_;
    std::unique_ptr<BlockEncoder> encoder_;
  };

  EncoderPool(const Effort& effort, unsigned encoders) {
    MutexLock lock(mutex_);
    for (unsigned i = 0; i < encoders; ++i) idle_.push_back(std::make_unique<BlockEncoder>(effort));
  }

  // Waits for one.
  Lease take() {
    MutexLock lock(mutex_);
    while (idle_.empty()) returned_.wait(mutex_);
    auto encoder = std::move(idle_.back());  // the one that was used last: its memory is warm
    idle_.pop_back();
    return Lease(*this, std::move(encoder));
  }

 private:
  void put_back(std::unique_ptr<BlockEncoder> encoder) {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(encoder));
    returned_.notify_one();
  }

  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<BlockEncoder>> idle_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin

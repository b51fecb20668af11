#include "store/reading_env.h"

#include <rocksdb/env.h>

namespace kin::store {
namespace {

class ReadingEnv final : public rocksdb::EnvWrapper {
 public:
  using rocksdb::EnvWrapper::EnvWrapper;
  void IncBackgroundThreadsIfNeeded(int, Priority) override {}
  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    target()->IncBackgroundThreadsIfNeeded(1, priority);
    target()->Schedule(function, argument, priority, tag, unschedule);
  }
};

}  // namespace

rocksdb::Env* reading_env() {
  static ReadingEnv* const env = new ReadingEnv(rocksdb::Env::Default());
  return env;
}

}  // namespace kin::store

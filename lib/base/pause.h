// Sleeping, for those who wait for what another process does.
#pragma once

#include <chrono>
#include <ctime>

namespace kin {

inline void pause_for(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  timespec left{seconds.count(), (time - seconds).count()};
  ::nanosleep(&left, nullptr);  // a signal ends it early, which does no harm
}

}  // namespace kin

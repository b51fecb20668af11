#include "tests/stress/client_clock.h"

#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace kin::testing {
namespace {

thread_local const ClientClock* used = nullptr;

}  // namespace

void ClientClock::use() const { used = this; }

void ClientClock::jump(Random& random, std::int64_t right_seconds) {
  constexpr std::uint64_t kMinute = 60, kDay = 86'400, kYear = 366 * kDay;
  const auto off_by_at_most = [&](std::uint64_t seconds) {
    return static_cast<std::int64_t>(random.below(2 * seconds)) - static_cast<std::int64_t>(seconds);
  };
  switch (random.below(5)) {
    case 0:
      wrong_.seconds += off_by_at_most(5 * kMinute);
      break;
    case 1:
      wrong_.seconds += off_by_at_most(3 * kDay);
      break;
    case 2:
      wrong_.seconds += off_by_at_most(3 * kYear);
      break;
    case 3:
      wrong_.seconds = static_cast<std::int64_t>(random.below(kDay));
      break;
    default:
      wrong_.seconds = right_seconds;
  }
}

namespace {

// As the C library's would be, for this program's threads that have a clock of their own.
int tell(clockid_t clock, timespec* out) {
  if (clock != CLOCK_REALTIME || used == nullptr)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  out->tv_sec = used->time().seconds;
  out->tv_nsec = used->time().nanoseconds;
  return 0;
}

}  // namespace
}  // namespace kin::testing

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  return kin::testing::tell(clock, out);
}

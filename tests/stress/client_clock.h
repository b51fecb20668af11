// ClientClock: what a client takes for the time. kin asks the system, by clock_gettime(); in this program, a
// thread that uses such a clock is told what that says. It is wrong by seconds or years, before and behind,
// and jumps while a command is at work; other clocks, which only count, go on as ever.
#pragma once

#include "lib/base/text.h"
#include "tests/support/random_bytes.h"

#include <cstdint>

namespace kin::testing {

class ClientClock {
 public:
  // Of the calling thread, from now on, as long as this lives and another is not used.
  void use() const;

  void advance(std::uint64_t seconds) { wrong_.seconds += static_cast<std::int64_t>(seconds); }
  // To another time: a little off, days, years, 1970 as after a flat battery; or to the right one.
  void jump(Random& random, std::int64_t right_seconds);
  Timestamp time() const { return wrong_; }

 private:
  Timestamp wrong_{1'700'000'000, 0};
};

}  // namespace kin::testing

// SearchWork: how many steps searches for matches have taken, and how many they may.
//
// A step is about a nanosecond or two: a link of a chain that is followed, eight bytes that are compared, a
// byte that is inserted. They are counted and not timed, so that what is opened hangs on the bytes alone.
// What is spent ends an opening; whoever rebuilds what was opened has no limit.
#pragma once

#include "lib/base/result.h"

#include <cstdint>

namespace kin::formats::deflate {

struct SearchWork {
  std::uint64_t steps = 0;
  std::uint64_t most = UINT64_MAX;

  bool is_spent() const { return steps > most; }
};

inline constexpr const char* kTakesTooLong = "the search for matches takes too long";
inline Error takes_too_long() { return Error(ErrorCode::unsupported, kTakesTooLong); }

}  // namespace kin::formats::deflate

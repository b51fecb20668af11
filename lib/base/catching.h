// Runs work, and turns what the standard library throws (mostly because memory ran out) into an error: past a
// thread's end it would be the end of the process.
#pragma once

#include "lib/base/result.h"

#include <exception>

namespace kin {

template <class Work>
Result<void> catching(const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return Error(ErrorCode::io, error.what());
  }
}

}  // namespace kin

// How many threads suit this machine.
#pragma once

#include <algorithm>
#include <thread>

namespace kin {

inline unsigned default_worker_count() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace kin

// How many threads suit this machine.
#pragma once

#include <algorithm>
#include <thread>

namespace kin {

// Not more than 8: others would wait for the one thread that decides and the one that stores, and each takes
// memory.
inline unsigned default_worker_count() { return std::clamp(std::thread::hardware_concurrency(), 1U, 8U); }

}  // namespace kin

// Numbers that nobody can guess.
#pragma once

#include <cstdint>

namespace kin {

std::uint64_t random_number();

}  // namespace kin

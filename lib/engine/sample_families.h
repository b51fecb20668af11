// Which units of a sample resemble each other, as far as their smallest features tell.
#pragma once

#include "lib/engine/file_sample.h"

namespace kin {

// Of each unit, the number of its family: 0 to 2^64 - 1, as good as random, and the same for the same files
// whatever their order. Units that share a feature are of one family, and whoever shares one with those: so
// all versions of a file are, though the first and the last may have nothing in common. Stretches are alike
// only where they are at the same place of their files. A feature of more units than kMostCarriers says
// little, such as one of a licence at the start of all files of a project. The rarest features are asked
// first, and families of kMostFamily units grow no more: or a few features might
// join everything.
inline constexpr std::uint32_t kMostCarriers = 64;
inline constexpr std::uint32_t kMostFamily = 256;
std::vector<std::uint64_t> family_numbers(std::span<const SampleUnit> units);

}  // namespace kin

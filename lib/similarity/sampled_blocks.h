// What tsa, pas and epas have in common: a few blocks of a file, at places that follow from its size alone,
// and what is read of a file does not grow with it.
#pragma once

#include "lib/similarity/shared_values_index.h"

namespace kin {

inline constexpr std::uint64_t kSampledBlocks = 16;        // the papers' N
inline constexpr std::uint64_t kSampledBlockBytes = 1024;  // Lenc
// T of PAS: a size counts only as a multiple of this, so that places stay where they are while a file grows
// by less.
inline constexpr std::uint64_t kSamplingStepBytes = 64 << 10;

// The block that begins at `offset`, or what the file has of it, as one value more: the first 8 bytes of its
// BLAKE2b. Nothing, where the file ends before. `side` keeps values of one kind from matching another's.
Result<void> add_sampled_block(ContentReader& content, std::uint64_t offset, std::uint8_t side,
                               std::vector<std::uint64_t>& values);

// Each value once: blocks of zeros are all one.
void make_sampled_set(std::vector<std::uint64_t>& values);

// The distance from the end of one block to the start of the next, so that N of them reach from the start of
// `bytes` to their end; 0 where there is no room.
std::uint64_t sampling_distance(std::uint64_t bytes, std::uint64_t blocks);

// Of two sets: what they share, as a part of what they have together.
double sampled_similarity(const SharedValues& shared);

}  // namespace kin

// Sketch: what an object is compared by, some 16 numbers for any amount of content.
//
// A feature is a hash of 32 bytes somewhere in the content; a sketch is the few smallest of them. Two objects
// that share content share features, about in the proportion in which they share content: so the stored
// object with the most matching features is the best guess at a base.
#pragma once

#include <cstdint>
#include <vector>

namespace kin {

using Feature = std::uint64_t;
// Only this many bits of a hash are kept: with 10 million objects, one lookup in 7,000 meets a stranger by
// chance, which costs a trial and nothing else.
inline constexpr unsigned kFeatureBits = 40;
inline constexpr std::size_t kFeatureBytes = kFeatureBits / 8;
inline constexpr unsigned kMostFeatures = 64;  // in a sketch; a reader refuses more

// In the order of the hashes they come from, smallest first; no duplicates.
using Sketch = std::vector<Feature>;

}  // namespace kin

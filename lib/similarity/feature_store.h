// FeatureStore: feature -> the newest few objects that have it, and how common it is. One thread at a time.
//
// A hint, never a truth: an object that it names may be gone, one that it forgot may be there.
#pragma once

#include "lib/base/result.h"
#include "lib/object/object_id.h"
#include "lib/object/sketch.h"

#include <span>
#include <vector>

namespace kin {

struct Candidate {
  ObjectId id;
  unsigned matches = 0;  // features in common
};

class FeatureStore {
 public:
  virtual ~FeatureStore() = default;

  // Reads all that is known of these sketches' features in one sorted sweep; candidates() of one of them then
  // answers from memory. The sketches of the call before are forgotten.
  virtual Result<void> prefetch(std::span<const Sketch* const> sketches) = 0;

  // The objects with the most matching features, best first, at most `most`. Equal matches: rarer features
  // first, then newest. Only what was prefetched or added since is sure to be found. Depends on the order of
  // add() calls and on nothing else.
  virtual Result<std::vector<Candidate>> candidates(const Sketch& sketch, std::size_t most) = 0;

  // The object is found from now on.
  virtual Result<void> add(const ObjectId& id, const Sketch& sketch) = 0;
};

}  // namespace kin

// BaseFinder: which contents a new one resembles, so that it can be sent as the difference from them. The
// message that it answers, the last ones from the same sender to the same list, and those with the most
// matching features.
//
// Hints, never truths: what it names may be gone. They are notes of a replica, and a feature store that can
// be lost. One thread at a time.
#pragma once

#include "lib/similarity/feature_store.h"
#include "lib/similarity/scanner.h"
#include "lib/sync/replica.h"

namespace kin::sync {

class BaseFinder {
 public:
  // Asked for when they are first needed, since most exchanges have nothing new; null: there are none. They
  // and the replica must outlive it.
  using OpenFeatures = std::function<FeatureStore*()>;
  BaseFinder(Replica& replica, OpenFeatures open_features);

  // A content that is there from now on.
  Result<void> add(const ObjectId& object, ByteView content);
  // Likeliest first; may name the content itself.
  Result<std::vector<ObjectId>> find(ByteView content);

 private:
  FeatureStore* features();

  Replica& replica_;
  const OpenFeatures open_features_;
  std::optional<FeatureStore*> features_;
  const Scanner scanner_;
};

}  // namespace kin::sync

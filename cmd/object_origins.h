// Which file an object came from: objects know nothing of names, so that snapshots have to be searched.
#pragma once

#include "cmd/snapshot_options.h"

#include <chrono>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace kin::cmd {

struct Origin {
  SnapshotId snapshot;
  std::string path;
};
using Origins = std::unordered_map<ObjectId, Origin, ObjectIdHash>;

// Looks in `first`, then in the others from the newest on, until all `wanted` ones are found; directories and
// lists that were seen are not looked at again. What no snapshot has is absent. Damage is told, sets
// `damaged`, and ends the search of that snapshot only.
Result<Origins> find_origins(Context& context, store::Repository& repository,
                             const store::StoredSnapshot& first,
                             std::unordered_set<ObjectId, ObjectIdHash> wanted, bool& damaged);
// The same in all snapshots, from the newest on; at `until` the search ends with what it has.
Result<Origins> find_origins_until(Context& context, store::Repository& repository,
                                   std::unordered_set<ObjectId, ObjectIdHash> wanted, bool& damaged,
                                   std::chrono::steady_clock::time_point until);

}  // namespace kin::cmd

// A backup without files and without threads: contents go through the engine's own trials and its own
// assembler, so that deltas, chains and groups come about as they do in life, one call after the other.
#pragma once

#include "store/repository.h"
#include "tests/stress/model.h"

namespace kin::testing {

// `previous`: what was at each path in the version before, and is then this one's. Commits.
Result<SnapshotId> back_up(store::Repository& repository, const FileContents& files,
                           std::map<std::string, ObjectId>& previous, Snapshot snapshot, Random& random);

}  // namespace kin::testing

// Changes of a tree: SyncStore::apply() for its kind.
//
// Nobody's bytes are lost, not even where someone writes while a change is made. New content comes under a
// name of its own, and is on the disk before it gets the real one. A file that is to go is renamed first (or
// changes places with the new one), looked at under that name, which nobody else knows, and put back if it is
// not the one that was meant. Rejected: to look and then to unlink, which takes away what an editor has saved
// in between.
//
// One thread at a time per store; other processes may do as they like.
#pragma once

#include "lib/sync/sync_store.h"
#include "lib/sync/tree_entry.h"

#include <vector>

namespace kin::sync::tree {

// An answer or an error for each change, in their order. What a file was to be made of is the caller's again,
// at its content_path, if that failed.
std::vector<Result<Entry>> apply_changes(const Root& root, const std::vector<StoreChange>& changes);

}  // namespace kin::sync::tree

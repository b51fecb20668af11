// Changes of an MH store: SyncStore::apply() for its kind.
//
// They are made together: all contents are on the disk before the first gets a number, each file of sequences
// is locked and written once, and each directory is synced once. A message gets or loses its number under
// that lock only; where it is not to be had, all changes of the folder are busy and nothing has happened. One
// thread at a time per store; other processes may do as they like.
#pragma once

#include "lib/sync/mh_folders.h"
#include "lib/sync/sync_store.h"

#include <chrono>
#include <span>
#include <vector>

namespace kin::sync::mh {

// An answer or an error for each change, in their order. What a message was to be made of is the caller's
// again, at its content_path, if that failed.
std::vector<Result<Entry>> apply_changes(const Directories& directories, std::span<StoreChange> changes,
                                         std::chrono::milliseconds lock_wait);

}  // namespace kin::sync::mh

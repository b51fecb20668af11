// What changed in a store since it was last looked at, as new states of a replica's items.
//
// One missing name is not yet a deletion: a directory that is read while somebody renames files in it may
// leave one out. So a folder in which anything changed is looked at twice, and only what was missing both
// times is gone. And before anything counts as gone, folders that have changed since they were looked at are
// looked at again: it may have moved there. What cannot be looked at, be it a file or a directory with all
// that is below it, keeps the state that was last known of it.
#pragma once

#include "lib/sync/replica.h"

#include <functional>
#include <stop_token>
#include <string>

namespace kin::sync {

struct ScanCounts {
  std::uint64_t entries = 0;
  std::uint64_t added = 0, changed = 0, removed = 0, skipped = 0;
  std::uint64_t bytes_read = 0;
  std::string never_seen;  // the path of what could not be looked at, now or ever; empty: none
};

struct ScanObserver {
  // A few times a second, also while one content is read.
  std::function<void(const std::string& folder, std::uint64_t entries)> on_progress;
  std::function<void(const std::string& what, const Error& error)> on_skipped;
  // The content of a new message or file of moderate size.
  std::function<Result<void>(const ObjectId& object, ByteView content)> on_content;
};

// Commits as it goes, and at its end. not_found if the store is not there, though it had items. cancelled on
// a stop.
Result<ScanCounts> scan_store(SyncStore& store, bool is_mail, Replica& replica, const ScanObserver& observer,
                              const std::stop_token& stop);

}  // namespace kin::sync

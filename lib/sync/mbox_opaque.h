// Files of an mbox store that are kept whole: their first line begins as an envelope but is none, or they are
// too large to be worked on in memory. Each is an entry of type file in the folder of its directory, with its
// mode and time.
//
// One thread at a time. busy: the file is not as it was, or others hold its locks. unsupported: what is to be
// put there would be seen as something else.
#pragma once

#include "lib/sync/mbox_folders.h"
#include "lib/sync/sync_store.h"

#include <memory>
#include <string>
#include <sys/stat.h>

namespace kin::sync::mbox {

Entry entry_of_file(const std::string& folder, const std::string& name, const struct stat& info);

// As SyncStore does, of a folder that is a directory.
Result<void> scan_files(const Folders& folders, const std::string& folder, const SyncStore::OnEntry& on_entry,
                        const SyncStore::OnSkipped& on_skipped);
Result<std::unique_ptr<ByteSource>> read_file_entry(const Folders& folders, const std::string& folder,
                                                    const Entry& entry);
Result<Entry> apply_file(const Folders& folders, const StoreChange& change);

}  // namespace kin::sync::mbox

// Folders of a SyncStore.
#pragma once

#include "lib/sync/sync_store.h"
#include "tests/support/expect.h"

#include <string>
#include <vector>

namespace kin::testing {

// None may be skipped.
inline std::vector<std::string> folders_of(sync::SyncStore& store) {
  return value_of(store.folders(
      [](const std::string& folder, const Error& error) { FAIL(folder << ": " << error.message()); }));
}

}  // namespace kin::testing

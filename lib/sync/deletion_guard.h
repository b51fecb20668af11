// A mass deletion is more often a mistake (a disk that is not mounted, a wrong name) than a wish, so it has
// to be allowed.
#pragma once

#include "lib/sync/replica.h"

#include <map>
#include <string>

namespace kin::sync {

// invalid_argument if so many of a folder's items, or of all, are too many. `are_gone`: the replica no longer
// counts them. `where` is "here" or "there", for the message.
Result<void> check_deletions(Replica& replica, const std::map<std::string, std::uint64_t>& by_folder,
                             bool are_gone, const char* where);

}  // namespace kin::sync

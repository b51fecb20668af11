// Keywords of messages that a store has no room for: a Maildir knows 26 in a folder. What it does not hold,
// its replica keeps in mind, so that a scan does not take it for deleted.
#pragma once

#include "lib/sync/replica.h"

#include <string>
#include <vector>

namespace kin::sync {

// `wanted` less `held` from now on; both in order.
Result<void> note_unheld_words(Replica& replica, const ItemId& message,
                               const std::vector<std::string>& wanted, const std::vector<std::string>& held);
// Adds them to those that a scan has found. What the store holds by now is up to its user again.
Result<void> add_unheld_words(Replica& replica, const ItemId& message, std::vector<std::string>& words);

}  // namespace kin::sync

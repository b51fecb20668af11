// Parity as commands make it and tell of it.
#pragma once

#include "cmd/context.h"
#include "store/parity.h"

#include <optional>
#include <string>

namespace kin::cmd {

// "5%" or "5": 1 to 100.
Result<unsigned> parse_parity_percent(const std::string& text);

// Tells what is damaged, and what was made.
Result<store::ParityUpdate> make_parity(Context& context, store::Repository& repository,
                                        const store::ParityOptions& options);

// After a backup: for packs that have none, if the repository is to have it. False if that failed, which is
// told: the snapshot is there all the same.
bool make_parity_for_new_packs(Context& context, store::Repository& repository);

}  // namespace kin::cmd

// What a command says of packs that are missing or damaged.
#pragma once

#include "cmd/context.h"
#include "store/repository.h"

#include <string>

namespace kin::cmd {

// "pack 77c0a1b2 is missing or damaged"; of many, the first few are named. Empty if there is none.
std::string lost_packs_text(const store::Repository& repository);

// For those who count what the index knows of: looks for such packs, and says what that means. True if there
// are any.
Result<bool> warn_of_counted_packs(Context& context, store::Repository& repository);

}  // namespace kin::cmd

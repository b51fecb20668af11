// What prune and `forget --prune` have in common: the options, and the work with what is said of it.
#pragma once

#include "cmd/context.h"
#include "store/prune.h"

#include <CLI/CLI.hpp>

namespace kin::cmd {

struct PruneChoice {
  store::PruneOptions options;
  bool now = false;
};

void add_prune_options(CLI::App& app, PruneChoice& choice);
// The caller holds the repository's lock.
Result<void> run_prune(Context& context, store::Repository& repository, const PruneChoice& choice);

}  // namespace kin::cmd

// What the user wants backed up, from the paths on the command line and in --files-from.
#pragma once

#include "cmd/context.h"
#include "lib/engine/walker.h"

namespace kin::cmd {

// Absolute paths stay absolute in the snapshot, relative ones relative. `as_path` puts the single path
// elsewhere.
Result<std::vector<BackupSource>> backup_sources(const std::vector<std::string>& paths,
                                                 const std::string& as_path);

// One path per line; '-' is stdin.
Result<std::vector<std::string>> read_paths(const std::string& file);

// As snapshots name them: absolute.
std::string absolute_path(const std::string& path);

}  // namespace kin::cmd

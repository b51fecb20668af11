// What the user wants backed up, from the paths on the command line and in --files-from.
#pragma once

#include "cmd/context.h"
#include "lib/engine/walker.h"

namespace kin::cmd {

// Absolute paths stay absolute in the snapshot, relative ones relative. `as_path` puts the single path
// elsewhere.
Result<std::vector<BackupSource>> backup_sources(const std::vector<std::string>& paths,
                                                 const std::string& as_path);

// Takes out those that are the repository or the cache, or lie in them, with a warning; says so if there is
// a repository below another. invalid_argument if nothing is left.
Result<void> leave_out_own(std::vector<BackupSource>& sources, Context& context);

// As a snapshot names them. Also those that are not there today: with other paths it would not be found as
// the parent tomorrow.
std::vector<std::string> snapshot_paths(const std::vector<BackupSource>& sources, const std::string& as_path);

// Where on disk what has this path in the snapshot ("/" and names) is; as it is if it is of no source.
std::string disk_path(const std::vector<BackupSource>& sources, const std::string& tree_path);

// One path per line; '-' is stdin.
Result<std::vector<std::string>> read_paths(const std::string& file, const std::stop_token& stop);

// As snapshots name them: absolute, without "." and "..".
std::string absolute_path(const std::string& path);

}  // namespace kin::cmd

// The file-system side of restore: one directory below the target, by descriptor. Nothing here follows a
// link.
#pragma once

#include "lib/base/file.h"
#include "lib/object/node.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace kin {

// Opens the target, making it if need be. invalid_argument if it is something else than a directory.
Result<std::shared_ptr<const Fd>> open_target(const std::string& path);

// Opens `name` in `parent`, making it if it is not there. What else is in its place is removed if it can be
// without loss: a file or link, when `replace` is set.
Result<std::shared_ptr<const Fd>> open_or_make_directory(const Fd& parent, const std::string& name,
                                                         bool replace);

// The directory at these components below `root`; each must be a directory, not a link to one.
Result<Fd> open_below(const Fd& root, const std::vector<std::string>& components);

// Removes a file, link or empty directory, so that something else can take its place. With `recursive`, a
// directory with all that is in it.
Result<void> remove_entry(const Fd& parent, const std::string& name, bool recursive);

// Makes links, FIFOs, sockets and devices; the name must be free.
Result<void> make_special(const Fd& parent, const Node& node);

Result<std::vector<std::string>> list_entries(const Fd& directory);

}  // namespace kin

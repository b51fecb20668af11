// The file-system side of restore: one directory below the target, by descriptor. Nothing here follows a
// link.
#pragma once

#include "lib/base/file.h"
#include "lib/object/node.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kin {

// Opens the target, making it if need be. invalid_argument if it is something else than a directory.
Result<std::shared_ptr<const Fd>> open_target(const std::string& path);

// Opens `name` in `parent`, making it if it is not there. A file or link in its place is removed when
// `replace` is set. One that is there and ours, but not for us to write to, is made so: an earlier restore
// may have left it read-only, and its mode is set again when all is in it.
Result<std::shared_ptr<const Fd>> open_or_make_directory(const Fd& parent, const std::string& name,
                                                         bool replace);

// Opens a directory that is there, not through a link; an invalid Fd if there is none.
Fd open_directory(const Fd& parent, const std::string& name);

// The directory at these components below `root`; each must be a directory, not a link to one.
Result<Fd> open_below(const Fd& root, const std::vector<std::string>& components);

// Removes a file, link or empty directory, so that something else can take its place. With `recursive`, a
// directory with all that is in it.
Result<void> remove_entry(const Fd& parent, const std::string& name, bool recursive);

// Makes links, FIFOs, sockets and devices under a name that must be free.
Result<void> make_special(const Fd& parent, const Node& node, const std::string& name);

// Lets `make` make `name`; where that is taken, it makes something beside it that then takes its place. So
// what was there goes only when its successor exists. `make_room` is to remove a directory that is there.
Result<void> put_in_place(const Fd& parent, const std::string& name,
                          const std::function<Result<void>()>& make_room,
                          const std::function<Result<void>(const std::string& name)>& make);

// Names of files that this process is still writing.
std::string temporary_name(std::uint64_t number);
bool is_temporary_name(std::string_view name);

}  // namespace kin

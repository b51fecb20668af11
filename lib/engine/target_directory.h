// The file-system side of restore: one directory below the target, by descriptor. Nothing here follows a
// link.
#pragma once

#include "lib/base/file.h"
#include "lib/engine/directory_ids.h"
#include "lib/object/node.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kin {

// Opens the target, making it if need be; without `make`, null if it is not there. invalid_argument if it is
// something else than a directory, or if it is, or lies in, one that is never to be touched.
Result<std::shared_ptr<const Fd>> open_target(const std::string& path, const DirectoryIds& never_touch,
                                              bool make);

bool is_one_of(const Fd& parent, const std::string& name, const DirectoryIds& directories);

// A directory that is open, if there is one. If it is ours, but was not for us to write to, that is changed
// for as long as this lives: an earlier restore may have left it read-only.
class UsableDirectory {
 public:
  UsableDirectory(std::shared_ptr<const Fd> fd, std::optional<mode_t> mode_before)
      : fd_(std::move(fd)), mode_before_(mode_before) {}
  UsableDirectory(UsableDirectory&& other) noexcept
      : fd_(std::move(other.fd_)), mode_before_(std::exchange(other.mode_before_, std::nullopt)) {}
  ~UsableDirectory();

  const std::shared_ptr<const Fd>& fd() const { return fd_; }  // null if there is none
  bool was_changed() const { return mode_before_.has_value(); }
  void keep_mode() { mode_before_.reset(); }  // it has a new one by now

 private:
  std::shared_ptr<const Fd> fd_;
  std::optional<mode_t> mode_before_;
};
UsableDirectory open_usable_directory(const Fd& parent, const std::string& name);

// Opens `name` in `parent`, making it if it is not there. A file or link in its place is removed.
Result<UsableDirectory> open_or_make_directory(const Fd& parent, const std::string& name);

// Opens a directory that is there, not through a link; an invalid Fd if there is none.
Fd open_directory(const Fd& parent, const std::string& name);

// The directory at these components below `root`; each must be a directory, not a link to one.
Result<Fd> open_below(const Fd& root, const std::vector<std::string>& components);

// Removes a file, link or empty directory. `path` is for messages.
Result<void> remove_entry(const Fd& parent, const std::string& name, const std::string& path);

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

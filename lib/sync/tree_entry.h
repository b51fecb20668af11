// Entries of a tree: what is under a name in a directory, how it is reached without leaving the root, and
// which names are our own.
//
// A path is opened a component at a time, and none may be a symlink; only the root itself may be behind one.
// A Root may be used by many threads; what else is here has no state.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/sync_store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace kin::sync::tree {

// Owners are not kept, so that setuid, setgid and sticky would mean something else elsewhere: these bits are
// neither read nor set.
inline constexpr std::uint32_t kModeBits = 0777;

// A name that nobody else uses, for what is on its way in or out.
std::string temporary_name();
// Whether one is in it: an editor may have made its own of it.
bool is_temporary(std::string_view name);
// Whether it is one, and its file is so old that whoever made it is gone.
bool is_left_over(std::string_view name, const struct stat& info);

// What opens as a folder: others could not be told of it.
bool fits(const std::string& folder);

// By this, calls that only take a path reach what an O_PATH descriptor is of, whatever its name is by now.
std::string path_by(const Fd& fd);

// Of a file or directory. The fingerprint of a directory is its mode: what is in it are entries of their own.
Entry entry_of(const struct stat& info, const std::string& folder, const std::string& name);
// What is there: not_found if nothing is, unsupported if it is of a type that is not kept.
Result<Entry> look(int directory, const std::string& folder, const std::string& name,
                   const std::string& path);

// Gives a file the mode and time of `item`, and syncs it with its content. busy if it is gone, or is not as
// expected.
Result<Entry> set_metadata(int directory, const std::string& folder, const std::string& name,
                           const std::string& path, const Item& item,
                           const std::optional<Fingerprint>& expected);

// An O_PATH descriptor. `if_other` is the code for what is there and no directory, such as a symlink to one.
Result<Fd> open_below(int at, const std::string& name, const std::string& path, ErrorCode if_other);

class Root {
 public:
  explicit Root(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string full(const std::string& folder) const { return folder.empty() ? path_ : path_ + "/" + folder; }

  // An O_PATH descriptor; not_found if it is no longer there, or no directory.
  Result<Fd> open(const std::string& folder) const;

 private:
  std::string path_;
};

}  // namespace kin::sync::tree

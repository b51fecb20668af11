// WorkDirectories: the directories of a tree that a batch of changes works in. What of them is missing is
// made, what may not be written to is made writable, and at the end each gets its mode and is on the disk.
//
// A crash before finish() leaves a directory writable that was not. One thread at a time.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/tree_entry.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace kin::sync::tree {

class WorkDirectories {
 public:
  // Which must outlive it.
  explicit WorkDirectories(const Root& root) : root_(root) {}

  // An O_PATH descriptor, to change what is in there. not_found, if it is not there and is not to be made. If
  // something that is no directory is in its place: busy; but for removals not_found, since what was in it is
  // gone.
  enum class Enter { existing, and_make, to_remove };
  Result<Fd> enter(const std::string& folder, Enter how);

  // The mode that it gets in the end, by the change of this number.
  void will_have(const std::string& folder, std::uint32_t mode, std::size_t change);
  // It is gone.
  void forget(const std::string& folder) { plans_.erase(folder); }
  // Nothing, unless it was made writable.
  std::optional<std::uint32_t> mode_before(const std::string& folder) const;

  // Sets modes, those below others first, and syncs. Tells of each change of will_have() what became of it.
  // An error: what was changed in the directories may not be on the disk; all others are finished
  // nevertheless.
  using OnDone = std::function<void(std::size_t change, Result<struct stat> now)>;
  Result<void> finish(const OnDone& on_done);

 private:
  struct Wanted {
    std::uint32_t mode = 0;
    std::size_t change = 0;
  };
  struct Plan {
    std::optional<std::uint32_t> before;  // all bits of its mode, if it was made writable
    std::optional<Wanted> wanted;
  };

  Result<void> make_writable(const Fd& directory, const std::string& folder, std::uint32_t bits);
  Result<void> finish_one(const std::string& folder, const Plan& plan, const OnDone& on_done) const;

  const Root& root_;
  std::map<std::string, Plan, std::greater<>> plans_;  // what is touched; a path is after those below it
};

}  // namespace kin::sync::tree

// Dotlock: a file that says by being there that somebody is at work on another one, as mail programs have it
// (FILE.lock). One thread at a time.
//
// One that is not changed for some time was left behind, and so was one of a kin on this machine that does
// not run any more. Whoever removes such a lock must not remove that of somebody else who did the same a
// moment before: it is renamed first, and then looked at again. How old it is tells a file that is made
// beside it, since the clock of a file server may be another one than ours.
#pragma once

#include "lib/base/file.h"

#include <chrono>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace kin::sync {

// A lock by its directory, which is borrowed. `path` is that of what is locked, for messages.
struct DotlockPlace {
  int directory = -1;
  std::string name;
  std::string path;
  std::chrono::seconds stale{300};  // since it was last changed, as for liblockfile
};

class Dotlock {
 public:
  // Nothing, if someone else has it at this moment. Where the directory cannot be written to, an io error;
  // or, if `may_do_without`, one that locks nothing.
  static Result<std::optional<Dotlock>> try_take(const DotlockPlace& place, bool may_do_without);
  Dotlock(Dotlock&&) noexcept = default;
  Dotlock& operator=(Dotlock&& other) noexcept;
  ~Dotlock() { release(); }

 private:
  Dotlock() = default;
  Dotlock(Fd directory, std::string name, const struct stat& info)
      : directory_(std::move(directory)), name_(std::move(name)), info_(info) {}
  void release();

  Fd directory_;  // in which there is a file of ours
  std::string name_;
  struct stat info_ {};
};

// Whether somebody has it.
bool is_dotlocked(const DotlockPlace& place);

}  // namespace kin::sync

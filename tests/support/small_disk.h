// A disk that is soon full: a tmpfs of a few MiB that only the test sees, in a namespace of its own.
#pragma once

#include "tests/support/temp_dir.h"

#include <functional>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kin::testing {

// Runs `test` in a child process with an empty disk of this size ("size=12m"), and gives what it returns; 0
// is success, 99 a crash. It must start no thread and cannot use Catch2. Nothing if the system does not let
// us mount one.
inline std::optional<int> on_small_disk(const char* options,
                                        const std::function<int(const std::string& directory)>& test) {
  constexpr int kCannot = 98, kCrash = 99;
  const TempDir directory;
  const pid_t child = ::fork();
  if (child == 0) {
    // Root may do it as it is, others in a user namespace.
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(kCannot);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(kCannot);
    if (::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, options) != 0) ::_exit(kCannot);
    ::_exit(test(directory.path()));
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kCrash;
  if (WEXITSTATUS(status) == kCannot) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace kin::testing

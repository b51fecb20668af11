// Programs on one repository, each command of which is stopped at every change that it makes to the disk.
// What was synced is there then; of the rest, nothing, all, or every other file. Whoever comes next must find
// all that was committed, and a repository that is sound; and the command, given again, must do what it would
// have done.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kin::testing {

struct CrashPoints {
  std::map<std::string, std::uint64_t> stopped;  // commands: how often
  std::uint64_t all = 0;
  std::vector<std::string> wrong;
};

// One program of so many commands. Of the changes, each `stride`-th.
void stop_everywhere(std::uint64_t seed, std::uint64_t commands, std::uint64_t stride, CrashPoints& out);

}  // namespace kin::testing

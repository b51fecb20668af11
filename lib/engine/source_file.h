// A file that is to be read: how it is opened, and where it has data.
#pragma once

#include "lib/base/file.h"
#include "lib/engine/walker.h"

#include <cstdint>
#include <string>
#include <utility>

struct stat;

namespace kin {

// Never waits, whatever has taken the file's place meanwhile.
Result<Fd> open_for_reading(const WalkEntry& entry);

// Where the next run of data begins and ends, at or after `offset`; the end of the file if there is none.
Result<std::pair<std::uint64_t, std::uint64_t>> next_data(int fd, std::uint64_t offset, std::uint64_t size,
                                                          const std::string& path);

// Leaves the file at its start.
Result<bool> has_holes(int fd, const struct stat& info, const std::string& path);

}  // namespace kin

// Damage to a directory of files: a cache whose disk went bad.
#pragma once

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace kin::testing {

// Every file whose name has this in it, but for locks, becomes rubbish of its own length or more.
inline void ruin(const std::string& directory, const std::string& part) {
  std::size_t ruined = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "LOCK" || name == "lock" || name.find(part) == std::string::npos)
      continue;
    const Bytes rubbish = random_bytes(5, std::max<std::size_t>(entry.file_size(), 100));
    std::ofstream(entry.path(), std::ios::binary) << as_text(rubbish);
    ++ruined;
  }
  REQUIRE(ruined > 0);
}

}  // namespace kin::testing

// AsNobody: root may read and write everything, which is not what the test is about.
#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace kin::testing {

// Root may write anywhere, so that a test of what is forbidden has to be someone else.
class AsNobody {
 public:
  explicit AsNobody(const std::string& directory) {
    constexpr uid_t kNobody = 65534;
    if (!was_root_) return;
    REQUIRE(::chown(directory.c_str(), kNobody, kNobody) == 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
      REQUIRE(::lchown(entry.path().c_str(), kNobody, kNobody) == 0);
    REQUIRE(::seteuid(kNobody) == 0);
  }
  ~AsNobody() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  const bool was_root_ = ::geteuid() == 0;
};

}  // namespace kin::testing

// As if a directory were where another file system is mounted: as long as this is there, no link and no
// rename of the program leads over its border. To mount a real one takes rights that tests do not always
// have.
#pragma once

#include <cstdint>
#include <string>

namespace kin::testing {

class SeparateMount {
 public:
  explicit SeparateMount(std::string directory);  // one at a time
  ~SeparateMount();
  SeparateMount(const SeparateMount&) = delete;
  SeparateMount& operator=(const SeparateMount&) = delete;

  std::uint64_t refused() const;  // so often it was tried
};

// As if no name in a directory, and below it, could have a colon.
class MountWithoutColons {
 public:
  explicit MountWithoutColons(std::string directory);  // one at a time
  ~MountWithoutColons();
  MountWithoutColons(const MountWithoutColons&) = delete;
  MountWithoutColons& operator=(const MountWithoutColons&) = delete;
};

// As if a directory were on a file system that has no links, and knows no rename but the plain one.
class MountWithoutLinks {
 public:
  explicit MountWithoutLinks(std::string directory);  // one at a time
  ~MountWithoutLinks();
  MountWithoutLinks(const MountWithoutLinks&) = delete;
  MountWithoutLinks& operator=(const MountWithoutLinks&) = delete;
};

// As if `disk` were mounted on a directory as soon as someone opens that, and not before.
class MountOnDemand {
 public:
  MountOnDemand(std::string directory, std::string disk);  // one at a time
  ~MountOnDemand();
  MountOnDemand(const MountOnDemand&) = delete;
  MountOnDemand& operator=(const MountOnDemand&) = delete;
};

}  // namespace kin::testing

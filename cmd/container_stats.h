// What kin stats --details counts of containers that are stored opened. The repository has no record of those
// that stayed closed: a backup tells of them.
#pragma once

#include "cmd/context.h"
#include "lib/object/node.h"

#include <map>
#include <string>

namespace kin::cmd {

class ContainerStats {
 public:
  explicit ContainerStats(store::Repository& repository) : repository_(repository) {}

  // Once for each distinct container; those within it are added on their own. Reads its recipe.
  Result<void> add(const Extent& container);
  void print(Context& context) const;
  Json json() const;

 private:
  struct Tally {
    std::uint64_t containers = 0, bytes = 0, members = 0, corrections = 0, literals = 0;
  };

  store::Repository& repository_;
  std::map<std::string, Tally> types_;
};

}  // namespace kin::cmd

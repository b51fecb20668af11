// A repository with 5 % of parity, and damage to its packs that comes to at most 2 % of their bytes, by a
// seed each: what share of these does a check heal, to the byte?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kin::testing {

struct ParityDamage {
  struct Count {
    std::uint64_t healed = 0, all = 0;
    std::uint64_t stretches = 0, bytes = 0;
  };
  std::uint64_t packs = 0, pack_bytes = 0;
  std::map<std::string, Count> counts;  // by the shape of the damage
  std::vector<std::string> wrong;
};

void damage_and_heal(std::uint64_t seeds, ParityDamage& out);

}  // namespace kin::testing

// Stamp: which change of which replica. A replica is one store with what kin knows of it; each of its changes
// gets the next number. Two states of an item are told apart by their stamps, without a clock.
#pragma once

#include <compare>
#include <cstdint>

namespace kin::sync {

using ReplicaId = std::uint64_t;  // random; 0 is none

struct Stamp {
  ReplicaId replica = 0;
  std::uint64_t sequence = 0;  // 1 is the first

  auto operator<=>(const Stamp&) const = default;
};

}  // namespace kin::sync

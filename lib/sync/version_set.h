// VersionSet: the changes that a replica has seen. Of each replica it is all up to a number, mostly: a
// version vector. After an exchange that was cut it may have gaps, so it is runs of numbers. Whoever has seen
// a change has it, or a later state of the same item.
#pragma once

#include "lib/base/wire.h"
#include "lib/sync/stamp.h"

#include <functional>
#include <map>

namespace kin::sync {

class VersionSet {
 public:
  bool contains(const Stamp& stamp) const;
  bool knows(ReplicaId replica) const { return runs_.contains(replica); }
  bool empty() const { return runs_.empty(); }
  bool operator==(const VersionSet&) const = default;
  // Whether it can be encoded so that it is read again: not, if somebody made up replicas without end.
  bool fits() const;

  void add(const Stamp& stamp) { add(stamp.replica, stamp.sequence, stamp.sequence); }
  void add(ReplicaId replica, std::uint64_t first, std::uint64_t last);
  void add(const VersionSet& other);
  void remove(const Stamp& stamp);
  std::uint64_t last(ReplicaId replica) const;  // 0: none

  // What is in this and not in `other`, as runs.
  using OnRun = std::function<void(ReplicaId replica, std::uint64_t first, std::uint64_t last)>;
  void for_each_missing_in(const VersionSet& other, const OnRun& on_run) const;

  bool is_within(const VersionSet& other) const;

  void encode(WireWriter& out) const;
  // Fails the reader where the runs are not in order, or there are very many.
  static VersionSet decode(WireReader& in);

 private:
  using Runs = std::map<std::uint64_t, std::uint64_t>;  // first to last; apart by at least one number
  std::map<ReplicaId, Runs> runs_;                      // none is empty
};

}  // namespace kin::sync

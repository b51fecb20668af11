#include "lib/sync/version_set.h"

#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <set>

namespace kin::testing {
namespace {

using sync::ReplicaId;
using sync::VersionSet;

Bytes encoded(const VersionSet& set) {
  WireWriter out;
  set.encode(out);
  return out.take();
}

TEST_CASE("a version set is a set, whatever is added and removed", "[sync]") {
  Random random(1);
  VersionSet set;
  std::set<std::pair<ReplicaId, std::uint64_t>> model;
  for (int turn = 0; turn < 4000; ++turn) {
    const ReplicaId replica = 1 + random.below(3);
    const std::uint64_t first = 1 + random.below(60), last = first + random.below(9);
    if (random.below(3) == 0) {
      set.remove({replica, first});
      model.erase({replica, first});
    } else {
      set.add(replica, first, last);
      for (std::uint64_t i = first; i <= last; ++i) model.insert({replica, i});
    }
    for (ReplicaId r = 1; r <= 3; ++r)
      for (std::uint64_t i = 1; i < 72; ++i) REQUIRE(set.contains({r, i}) == model.contains({r, i}));
    WireReader in(encoded(set));
    const Bytes bytes = encoded(set);
    WireReader again(bytes);
    REQUIRE(VersionSet::decode(again) == set);
    require_ok(again.finish("a set"));
  }
}

TEST_CASE("what is in one version set and not in another is told as runs", "[sync]") {
  Random random(2);
  for (int turn = 0; turn < 300; ++turn) {
    VersionSet a, b;
    for (int i = 0; i < 8; ++i) {
      a.add(1 + random.below(2), 1 + random.below(40), 1 + random.below(60));
      b.add(1 + random.below(2), 1 + random.below(40), 1 + random.below(60));
    }
    std::set<std::pair<ReplicaId, std::uint64_t>> missing;
    a.for_each_missing_in(b, [&](ReplicaId replica, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t i = first; i <= last; ++i) REQUIRE(missing.insert({replica, i}).second);
    });
    for (ReplicaId r = 1; r <= 2; ++r)
      for (std::uint64_t i = 1; i < 110; ++i)
        REQUIRE(missing.contains({r, i}) == (a.contains({r, i}) && !b.contains({r, i})));
  }
}

TEST_CASE("the usual version set takes eleven bytes a replica", "[sync]") {
  VersionSet set;
  set.add(0x1234, 1, 100);
  set.add(0x5678, 1, 20);
  CHECK(encoded(set).size() == 1 + 2 * 11);
}

TEST_CASE("a damaged version set is refused or is one", "[sync]") {
  VersionSet set;
  set.add(7, 1, 300);
  set.add(7, 302, 400);
  set.add(9, 5, 5);
  for_each_damage(encoded(set), [](const Bytes& damaged, const std::string&) {
    WireReader in(damaged);
    const VersionSet read = VersionSet::decode(in);
    if (in.failed()) {
      CHECK(read.empty());
      return;
    }
    const Bytes bytes = encoded(read);
    WireReader again(bytes);
    CHECK(VersionSet::decode(again) == read);
  });
}

}  // namespace
}  // namespace kin::testing

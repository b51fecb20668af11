#include "lib/engine/savings.h"

#include "tests/support/ids.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

using testing::numbered_id;

Extent data(std::uint64_t n, std::uint64_t size) { return {Extent::Kind::data, size, numbered_id(n)}; }

}  // namespace

TEST_CASE("savings count a file each time, a different one once, and an object by what is smallest",
          "[savings]") {
  SavingsMeter meter;
  // Three files: an object, the same once more, and one with two objects, of which the second is known.
  meter.on_met(numbered_id(1), true);
  meter.on_file(100, {data(1, 100)});
  meter.on_met(numbered_id(1), false);
  meter.on_file(100, {data(1, 100)});
  meter.on_met(numbered_id(2), true);
  meter.on_met(numbered_id(1), false);
  meter.on_file(300, {data(2, 200), data(1, 100)});
  meter.on_tried({numbered_id(1), 100, 60, {}});
  meter.on_tried({numbered_id(2), 200, 90, 7});
  const Savings savings = meter.result();
  CHECK(savings.distinct_files == 2);
  CHECK(savings.distinct_file_bytes == 400);
  CHECK(savings.alone == 3 * 60 + 90);
  CHECK(savings.chunks == 60 + 90);
  CHECK(savings.deltas == 60 + 7);
  CHECK(savings.delta_objects == 1);
}

TEST_CASE("a delta that is larger than the content compressed saves nothing", "[savings]") {
  SavingsMeter meter;
  meter.on_met(numbered_id(1), true);
  meter.on_tried({numbered_id(1), 100, 60, 61});
  CHECK(meter.result().deltas == 60);
  CHECK(meter.result().delta_objects == 0);
}

}  // namespace kin

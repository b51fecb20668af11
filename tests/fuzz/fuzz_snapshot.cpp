// Snapshots from hostile bytes: what is accepted can be written again, as `kin tag` does, and is then read as
// the same.
#include "lib/base/check.h"
#include "lib/object/snapshot.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot = kin::decode_snapshot({data, size});
  if (!snapshot) return 0;
  const kin::Bytes written = kin::encode_snapshot(*snapshot);
  const auto again = kin::decode_snapshot(written);
  KIN_CHECK(again.has_value());
  KIN_CHECK(again->paths == snapshot->paths && again->tags == snapshot->tags &&
            again->tree == snapshot->tree && again->time == snapshot->time);
  return 0;
}

// Object ids to tell apart, for tests in which no content belongs to them.
#pragma once

#include "lib/base/hash.h"
#include "lib/object/object_id.h"

#include <cstdint>
#include <string>

namespace kin::testing {

// Spread like real ones.
inline ObjectId numbered_id(std::uint64_t number) { return ObjectId{hash(as_bytes(std::to_string(number)))}; }

// Every byte is `number`: easy to find in a dump, and to order.
inline ObjectId filled_id(std::uint8_t number) {
  ObjectId out;
  out.bytes.fill(number);
  return out;
}

}  // namespace kin::testing

// ShortId: half of an ObjectId, for those who remember millions. 16 of the 32 bytes tell ids apart for
// certain enough where a mistake only skips a check.
#pragma once

#include "lib/object/object_id.h"

#include <cstdint>
#include <cstring>

namespace kin::store {

struct ShortId {
  std::uint64_t first = 0, second = 0;

  explicit ShortId(const ObjectId& id) {
    std::memcpy(&first, id.bytes.data(), 8);
    std::memcpy(&second, id.bytes.data() + 8, 8);
  }
  bool operator==(const ShortId&) const = default;
};

struct ShortIdHash {
  std::size_t operator()(const ShortId& id) const { return id.first; }  // the id is a hash already
};

}  // namespace kin::store

// ObjectId: the keyed BLAKE2b-256 of an object's bytes. Equal ids are equal bytes, within one repository.
#pragma once

#include "lib/base/hash.h"

#include <compare>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace kin {

struct ObjectId {
  Digest bytes{};

  std::string hex() const;
  std::string short_hex() const;  // for messages: the first 8 digits
  static std::optional<ObjectId> from_hex(std::string_view text);
  static ObjectId from_bytes(ByteView bytes);  // exactly 32

  auto operator<=>(const ObjectId&) const = default;
};

struct ObjectIdHash {
  std::size_t operator()(const ObjectId& id) const {
    std::size_t out;  // the id is a hash already
    std::memcpy(&out, id.bytes.data(), sizeof out);
    return out;
  }
};

}  // namespace kin

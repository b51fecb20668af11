// BLAKE2b-256, plain and keyed: names of stored files, ids of objects, checksums.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>

namespace kin {

using Digest = std::array<std::uint8_t, 32>;
using Key = std::array<std::uint8_t, 32>;

Digest hash(ByteView bytes);
Digest keyed_hash(const Key& key, ByteView bytes);

// hash() of bytes that come in pieces.
class Hasher {
 public:
  Hasher();
  void add(ByteView bytes);
  Digest finish();  // once

 private:
  alignas(64) std::array<std::uint8_t, 384> state_;
};

// A key for one purpose, made from another key: different labels give independent keys.
Key derive_key(const Key& key, std::string_view label);

}  // namespace kin

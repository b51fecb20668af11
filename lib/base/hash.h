// BLAKE2b-256, plain and keyed: names of stored files, ids of objects, checksums.
#pragma once

#include "lib/base/bytes.h"

#include <array>
#include <cstdint>
#include <memory>

namespace kin {

using Digest = std::array<std::uint8_t, 32>;
using Key = std::array<std::uint8_t, 32>;

Digest hash(ByteView bytes);
Digest keyed_hash(const Key& key, ByteView bytes);

// A key for one purpose, made from another key: different labels give independent keys.
Key derive_key(const Key& key, std::string_view label);

// For content that arrives in pieces. One thread at a time.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(ByteView bytes);
  Digest finish();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kin

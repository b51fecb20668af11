// Sealing: what makes stored bytes secret (with a password) and proof against change (always).
//
// An encrypted repository seals with XChaCha20-Poly1305. A plain one keeps the bytes readable and appends a
// keyed BLAKE2b-128 of the same length as Poly1305's tag: the layout on disk is the same, and damage is found
// the same way. (It does not stop an attacker: the key lies beside the data.)
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/hash.h"
#include "lib/base/result.h"

#include <array>
#include <cstdint>
#include <string>

namespace kin::store {

// Written to disk; no number is ever reused.
enum class Encryption : std::uint8_t { none = 0, xchacha20_poly1305 = 1 };

inline constexpr std::size_t kTagBytes = 16;
using Nonce = std::array<std::uint8_t, 24>;
using Salt = std::array<std::uint8_t, 16>;

Key random_key();
Nonce random_nonce();
Salt random_salt();

// Immutable after construction; thread-safe.
class Sealer {
 public:
  Sealer(Encryption encryption, const Key& key) : encryption_(encryption), key_(key) {}

  bool encrypts() const { return encryption_ != Encryption::none; }

  // kTagBytes longer than `plain`. A nonce is used once. `bound` is not stored, but opening needs the same.
  Bytes seal(const Nonce& nonce, ByteView bound, ByteView plain) const;
  // The same, at the end of `out`.
  void seal_to(Bytes& out, const Nonce& nonce, ByteView bound, ByteView plain) const;
  // corrupt if a single bit of anything differs.
  Result<Bytes> open(const Nonce& nonce, ByteView bound, ByteView sealed) const;
  // The same, where they are. After an error they are of no use.
  Result<void> open_in_place(const Nonce& nonce, ByteView bound, Bytes& sealed) const;

  // A whole file: magic, random nonce, sealed bytes; the magic is bound.
  Bytes seal_file(std::string_view magic, ByteView plain) const;
  Result<Bytes> open_file(std::string_view magic, ByteView file) const;

 private:
  const Encryption encryption_;
  const Key key_;
};

// How a password becomes a key: argon2id, with the cost recorded beside the salt.
struct PasswordCost {
  std::uint64_t operations = 4;
  std::uint64_t memory_bytes = 48 << 20;
};

// corrupt if the cost is beyond what a key file may ask of us.
Result<Key> key_from_password(std::string_view password, const Salt& salt, const PasswordCost& cost);

}  // namespace kin::store

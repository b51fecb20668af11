#include "lib/base/hash.h"

#include <sodium.h>

namespace kin {
namespace {

// libsodium picks its fast implementations in sodium_init; without it BLAKE2b runs at a quarter of the speed.
[[maybe_unused]] const bool kSodiumReady = sodium_init() >= 0;

}  // namespace

Digest hash(ByteView bytes) {
  Digest digest;
  crypto_generichash(digest.data(), digest.size(), bytes.data(), bytes.size(), nullptr, 0);
  return digest;
}

Digest keyed_hash(const Key& key, ByteView bytes) {
  Digest digest;
  crypto_generichash(digest.data(), digest.size(), bytes.data(), bytes.size(), key.data(), key.size());
  return digest;
}

static_assert(sizeof(crypto_generichash_state) <= 384);

Hasher::Hasher() {
  crypto_generichash_init(reinterpret_cast<crypto_generichash_state*>(state_.data()), nullptr, 0,
                          std::tuple_size_v<Digest>);
}

void Hasher::add(ByteView bytes) {
  crypto_generichash_update(reinterpret_cast<crypto_generichash_state*>(state_.data()), bytes.data(),
                            bytes.size());
}

Digest Hasher::finish() {
  Digest digest;
  crypto_generichash_final(reinterpret_cast<crypto_generichash_state*>(state_.data()), digest.data(),
                           digest.size());
  return digest;
}

Key derive_key(const Key& key, std::string_view label) { return keyed_hash(key, as_bytes(label)); }

}  // namespace kin

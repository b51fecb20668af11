#include "lib/base/hash.h"

#include "lib/base/check.h"

#include <sodium.h>

namespace kin {
namespace {

// libsodium picks its fast implementations in sodium_init; without it BLAKE2b runs at a quarter of the speed.
const bool kSodiumReady = sodium_init() >= 0;

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

Key derive_key(const Key& key, std::string_view label) { return keyed_hash(key, as_bytes(label)); }

struct Hasher::State {
  crypto_generichash_state state;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  KIN_CHECK(kSodiumReady);
  crypto_generichash_init(&state_->state, nullptr, 0, sizeof(Digest));
}

Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(ByteView bytes) { crypto_generichash_update(&state_->state, bytes.data(), bytes.size()); }

Digest Hasher::finish() {
  Digest digest;
  crypto_generichash_final(&state_->state, digest.data(), digest.size());
  return digest;
}

}  // namespace kin

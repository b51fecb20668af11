#include "store/crypto.h"

#include "lib/base/check.h"

#include <sodium.h>

#include <algorithm>

namespace kin::store {
namespace {

static_assert(kTagBytes == crypto_aead_xchacha20poly1305_ietf_ABYTES);
static_assert(sizeof(Nonce) == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(sizeof(Salt) == crypto_pwhash_argon2id_SALTBYTES);

using Tag = std::array<std::uint8_t, kTagBytes>;

// A key file comes from outside: it may not make us allocate the machine's memory or compute for hours.
constexpr std::uint64_t kMostOperations = 64;
constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{2} << 30;

Tag checksum(const Key& key, const Nonce& nonce, ByteView bound, ByteView plain) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), kTagBytes);
  crypto_generichash_update(&state, nonce.data(), nonce.size());
  const std::uint64_t bound_size = bound.size();
  std::array<std::uint8_t, 8> length;
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::uint8_t>(bound_size >> (8 * i));
  crypto_generichash_update(&state, length.data(), length.size());
  crypto_generichash_update(&state, bound.data(), bound.size());
  crypto_generichash_update(&state, plain.data(), plain.size());
  Tag tag;
  crypto_generichash_final(&state, tag.data(), tag.size());
  return tag;
}

template <class Array>
Array random_array() {
  KIN_CHECK(sodium_init() >= 0);
  Array out;
  randombytes_buf(out.data(), out.size());
  return out;
}

Error mismatch() { return Error(ErrorCode::corrupt, "checksum mismatch: the bytes are damaged"); }

}  // namespace

Key random_key() { return random_array<Key>(); }
Nonce random_nonce() { return random_array<Nonce>(); }
Salt random_salt() { return random_array<Salt>(); }

Bytes Sealer::seal(const Nonce& nonce, ByteView bound, ByteView plain) const {
  Bytes out;
  out.reserve(plain.size() + kTagBytes);
  seal_to(out, nonce, bound, plain);
  return out;
}

void Sealer::seal_to(Bytes& out, const Nonce& nonce, ByteView bound, ByteView plain) const {
  if (encryption_ == Encryption::none) {
    append(out, plain);
    append(out, checksum(key_, nonce, bound, plain));
    return;
  }
  const std::size_t begin = out.size();
  out.resize(begin + plain.size() + kTagBytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data() + begin, nullptr, plain.data(), plain.size(),
                                             bound.data(), bound.size(), nullptr, nonce.data(), key_.data());
}

Result<Bytes> Sealer::open(const Nonce& nonce, ByteView bound, ByteView sealed) const {
  Bytes out(sealed.begin(), sealed.end());
  KIN_TRY(open_in_place(nonce, bound, out));
  return out;
}

Result<void> Sealer::open_in_place(const Nonce& nonce, ByteView bound, Bytes& sealed) const {
  if (sealed.size() < kTagBytes) return mismatch();
  const std::size_t size = sealed.size() - kTagBytes;
  if (encryption_ == Encryption::none) {
    const ByteView all = sealed;
    if (!equal(checksum(key_, nonce, bound, all.first(size)), all.last(kTagBytes))) return mismatch();
  } else if (crypto_aead_xchacha20poly1305_ietf_decrypt(sealed.data(), nullptr, nullptr, sealed.data(),
                                                        sealed.size(), bound.data(), bound.size(),
                                                        nonce.data(), key_.data()) != 0) {
    return mismatch();
  }
  sealed.resize(size);
  return {};
}

Bytes Sealer::seal_file(std::string_view magic, ByteView plain) const {
  const Nonce nonce = random_nonce();
  Bytes out(magic.begin(), magic.end());
  append(out, nonce);
  append(out, seal(nonce, as_bytes(magic), plain));
  return out;
}

Result<Bytes> Sealer::open_file(std::string_view magic, ByteView file) const {
  Nonce nonce;
  if (file.size() < magic.size() + nonce.size() || as_text(file.first(magic.size())) != magic)
    return Error(ErrorCode::corrupt, "not a file that kin wrote, or its start is damaged");
  const ByteView nonce_bytes = file.subspan(magic.size(), nonce.size());
  std::copy(nonce_bytes.begin(), nonce_bytes.end(), nonce.begin());
  return open(nonce, as_bytes(magic), file.subspan(magic.size() + nonce.size()));
}

Result<Key> key_from_password(std::string_view password, const Salt& salt, const PasswordCost& cost) {
  if (cost.operations < crypto_pwhash_argon2id_OPSLIMIT_MIN || cost.operations > kMostOperations ||
      cost.memory_bytes < crypto_pwhash_argon2id_MEMLIMIT_MIN || cost.memory_bytes > kMostMemoryBytes)
    return Error(ErrorCode::corrupt, "the key asks for an unreasonable amount of work or memory");
  Key key;
  if (crypto_pwhash(key.data(), key.size(), password.data(), password.size(), salt.data(), cost.operations,
                    static_cast<std::size_t>(cost.memory_bytes), crypto_pwhash_ALG_ARGON2ID13) != 0)
    return Error(ErrorCode::io, "not enough memory to turn the password into a key");
  return key;
}

}  // namespace kin::store

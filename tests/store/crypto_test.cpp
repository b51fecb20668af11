#include "store/crypto.h"

#include "lib/base/text.h"
#include "tests/support/damage.h"
#include "tests/support/encryption.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace kin::store {
namespace {

using testing::code_of;
using testing::kCheapPassword;
using testing::kModes;
using testing::random_bytes;
using testing::value_of;

template <class Array>
Array counting(std::uint8_t first) {
  Array out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(first + i);
  return out;
}

bool contains(ByteView haystack, ByteView needle) {
  return std::search(haystack.begin(), haystack.end(), needle.begin(), needle.end()) != haystack.end();
}

}  // namespace

TEST_CASE("what is sealed opens again, with the same nonce and bound bytes", "[crypto]") {
  for (const Encryption mode : kModes)
    for (const std::size_t size : {0, 1, 15, 16, 17, 1000, 1 << 20}) {
      const Sealer sealer(mode, counting<Key>(1));
      const Bytes plain = random_bytes(size, size), bound = random_bytes(1, 20);
      const Nonce nonce = random_nonce();
      const Bytes sealed = sealer.seal(nonce, bound, plain);
      CHECK(sealed.size() == size + kTagBytes);
      CHECK(equal(value_of(sealer.open(nonce, bound, sealed)), plain));
      CHECK(equal(value_of(sealer.open(nonce, {}, sealer.seal(nonce, {}, plain))), plain));
    }
}

TEST_CASE("encryption is XChaCha20-Poly1305: the example of its standard", "[crypto]") {
  const Sealer sealer(Encryption::xchacha20_poly1305, counting<Key>(0x80));
  const Bytes sealed = sealer.seal(
      counting<Nonce>(0x40), *from_hex("50515253c0c1c2c3c4c5c6c7"),
      as_bytes("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
               "sunscreen would be it."));
  CHECK(hex(sealed) ==
        "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64"
        "c6708c54c216cb96b72e1213b452"
        "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52e"
        "c0875924c1c7987947deafd8780acf49");
}

TEST_CASE("without encryption the bytes stay readable, and a keyed BLAKE2b-128 follows", "[crypto]") {
  // Python: blake2b(nonce + len(bound).to_bytes(8, "little") + bound + plain, digest_size=16, key=key)
  const Bytes sealed = Sealer(Encryption::none, counting<Key>(0))
                           .seal(counting<Nonce>(100), as_bytes("bound"), as_bytes("plain text"));
  CHECK(as_text(ByteView(sealed).first(10)) == "plain text");
  CHECK(hex(ByteView(sealed).last(16)) == "4ffd54cdeb8cc3c333ce092912d1781e");
}

TEST_CASE("encrypted bytes do not show what they are", "[crypto]") {
  const Sealer sealer(Encryption::xchacha20_poly1305, random_key());
  const Bytes plain = random_bytes(2, 100);
  CHECK_FALSE(contains(sealer.seal(random_nonce(), {}, plain), ByteView(plain).first(8)));
  CHECK(sealer.seal(random_nonce(), {}, plain) != sealer.seal(random_nonce(), {}, plain));
  CHECK(sealer.encrypts());
  CHECK_FALSE(Sealer(Encryption::none, random_key()).encrypts());
}

TEST_CASE("a change of any bit of anything is found", "[crypto]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer(mode, counting<Key>(1));
    const Nonce nonce = counting<Nonce>(2);
    const Bytes bound = random_bytes(3, 30);
    const Bytes sealed = sealer.seal(nonce, bound, random_bytes(4, 50));
    testing::for_each_damage(sealed, [&](const Bytes& damaged, const std::string& what) {
      INFO("sealed " << what);
      CHECK(code_of(sealer.open(nonce, bound, damaged)) == ErrorCode::corrupt);
    });
    testing::for_each_damage(bound, [&](const Bytes& damaged, const std::string& what) {
      INFO("bound " << what);
      CHECK(code_of(sealer.open(nonce, damaged, sealed)) == ErrorCode::corrupt);
    });
    for (std::size_t i = 0; i < nonce.size(); ++i) {
      Nonce other = nonce;
      other[i] ^= 1;
      CHECK(code_of(sealer.open(other, bound, sealed)) == ErrorCode::corrupt);
    }
    CHECK(code_of(Sealer(mode, counting<Key>(2)).open(nonce, bound, sealed)) == ErrorCode::corrupt);
  }
}

TEST_CASE("a byte cannot be moved from what is bound to what is sealed", "[crypto]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer(mode, counting<Key>(1));
    const Nonce nonce = counting<Nonce>(2);
    Bytes sealed = sealer.seal(nonce, as_bytes("ab"), as_bytes("c"));
    sealed.insert(sealed.begin(), 'b');
    CHECK(code_of(sealer.open(nonce, as_bytes("a"), sealed)) == ErrorCode::corrupt);
  }
}

TEST_CASE("what one mode sealed, the other does not open", "[crypto]") {
  const Sealer plain(Encryption::none, counting<Key>(1)),
      encrypted(Encryption::xchacha20_poly1305, counting<Key>(1));
  const Nonce nonce = counting<Nonce>(2);
  CHECK(code_of(plain.open(nonce, {}, encrypted.seal(nonce, {}, as_bytes("text")))) == ErrorCode::corrupt);
  CHECK(code_of(encrypted.open(nonce, {}, plain.seal(nonce, {}, as_bytes("text")))) == ErrorCode::corrupt);
}

TEST_CASE("a sealed file opens with its magic only, and no byte of it can change", "[crypto]") {
  for (const Encryption mode : kModes) {
    const Sealer sealer(mode, counting<Key>(1));
    const Bytes file = sealer.seal_file("KINTEST1", as_bytes("content"));
    CHECK(as_text(ByteView(file).first(8)) == "KINTEST1");
    CHECK(as_text(value_of(sealer.open_file("KINTEST1", file))) == "content");
    CHECK(code_of(sealer.open_file("KINTEST2", file)) == ErrorCode::corrupt);
    CHECK(sealer.seal_file("KINTEST1", as_bytes("content")) != file);  // another nonce each time
    testing::for_each_damage(file, [&](const Bytes& damaged, const std::string& what) {
      INFO(what);
      CHECK(code_of(sealer.open_file("KINTEST1", damaged)) == ErrorCode::corrupt);
    });
    // The magic is bound, so a file cannot be passed off as another kind.
    Bytes renamed = file;
    renamed[7] = '2';
    CHECK(code_of(sealer.open_file("KINTEST2", renamed)) == ErrorCode::corrupt);
  }
}

TEST_CASE("a password and a salt give one key, and other ones another", "[crypto]") {
  const Salt salt = counting<Salt>(1);
  const Key key = value_of(key_from_password("secret", salt, kCheapPassword));
  CHECK(value_of(key_from_password("secret", salt, kCheapPassword)) == key);
  CHECK(value_of(key_from_password("Secret", salt, kCheapPassword)) != key);
  CHECK(value_of(key_from_password("secret", counting<Salt>(2), kCheapPassword)) != key);
  CHECK(value_of(key_from_password("secret", salt, {2, 8192})) != key);
  CHECK(value_of(key_from_password("secret", salt, {1, 16384})) != key);
  CHECK(value_of(key_from_password("", salt, kCheapPassword)) != key);
  CHECK(value_of(key_from_password(std::string_view("secret\0", 7), salt, kCheapPassword)) != key);
}

TEST_CASE("how a password becomes a key is part of the format", "[crypto]") {
  CHECK(hex(value_of(key_from_password("correct horse", counting<Salt>(1), {2, 1 << 20}))) ==
        "ee26fc48099ead67ade0793f3a4a0deb5e437ceeac11d226c12fe3c739468d22");
}

TEST_CASE("a cost that would take all memory or all day is refused at once", "[crypto]") {
  const Salt salt{};
  for (const PasswordCost& cost :
       {PasswordCost{0, 8192}, PasswordCost{65, 8192}, PasswordCost{1, 0}, PasswordCost{1, 8191},
        PasswordCost{1, (std::uint64_t{2} << 30) + 1}, PasswordCost{~std::uint64_t{0}, ~std::uint64_t{0}}})
    CHECK(code_of(key_from_password("x", salt, cost)) == ErrorCode::corrupt);
}

TEST_CASE("random keys, nonces and salts differ from call to call", "[crypto]") {
  CHECK(random_key() != random_key());
  CHECK(random_nonce() != random_nonce());
  CHECK(random_salt() != random_salt());
}

}  // namespace kin::store

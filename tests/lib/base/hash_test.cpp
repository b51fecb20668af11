// The expected values are Python's: hashlib.blake2b(data, digest_size=32, key=key).
#include "lib/base/hash.h"

#include "lib/base/text.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

Key counting_key() {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

}  // namespace

TEST_CASE("the plain hash is BLAKE2b-256", "[hash]") {
  CHECK(hex(hash({})) == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(hex(hash(as_bytes("abc"))) == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  Bytes all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  CHECK(hex(hash(all)) == "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835");
}

TEST_CASE("the keyed hash is BLAKE2b-256 with its key", "[hash]") {
  CHECK(hex(keyed_hash(counting_key(), {})) ==
        "4e51e7a913fc80137da52880fecca175bf81e117d5c68126dc2774033517ea0d");
  CHECK(hex(keyed_hash(counting_key(), as_bytes("abc"))) ==
        "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f");
}

TEST_CASE("a derived key depends on the key and on the label", "[hash]") {
  CHECK(hex(derive_key(counting_key(), "kin seal")) ==
        "b9576c75b9af1bc8ea02bdf25c85fc75292ea28753016ee2143f91359ef86efa");
  CHECK(derive_key(counting_key(), "kin seal") != derive_key(counting_key(), "kin object id"));
  CHECK(derive_key(counting_key(), "kin seal") != derive_key(Key{}, "kin seal"));
}

}  // namespace kin

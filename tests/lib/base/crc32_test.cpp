#include "lib/base/crc32.h"

#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin {

TEST_CASE("a CRC-32 is zlib's", "[crc32]") {
  CHECK(crc32(as_bytes("123456789")) == 0xcbf43926);
  CHECK(crc32({}) == 0);
  CHECK(crc32(as_bytes("a")) == 0xe8b7be43);
}

TEST_CASE("a CRC-32 in pieces is that of the whole", "[crc32]") {
  const Bytes content = testing::random_bytes(1, 1000);
  const std::uint32_t whole = crc32(content);
  for (std::size_t cut = 0; cut <= content.size(); cut += 7)
    CHECK(crc32(ByteView(content).subspan(cut), crc32(ByteView(content).first(cut))) == whole);
}

}  // namespace kin

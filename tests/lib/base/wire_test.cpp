#include "lib/base/wire.h"

#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>
#include <optional>

namespace kin {
namespace {

using testing::code_of;
using testing::error_of;
using testing::require_ok;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

Bytes varint_bytes(std::uint64_t value) {
  WireWriter out;
  out.varint(value);
  return out.take();
}

// True if the bytes are one whole varint, and it is refused.
bool refuses_varint(const Bytes& bytes) {
  WireReader in(bytes);
  const std::uint64_t value = in.varint();
  return in.failed() && value == 0;
}

// One of each kind of value.
Bytes sample() {
  WireWriter out;
  out.u8(0xab);
  out.u32(0xdeadbeef);
  out.u64(0x0123456789abcdef);
  out.varint(300);
  out.signed_varint(-300);
  out.text("héllo");
  out.blob(Bytes{1, 2, 3});
  out.raw(Bytes{9, 8});
  return out.take();
}

void read_sample(WireReader& in) {
  in.u8();
  in.u32();
  in.u64();
  in.varint();
  in.signed_varint();
  in.text();
  in.blob();
  in.array<2>();
}

}  // namespace

TEST_CASE("every kind of value reads back as it was written", "[wire]") {
  const Bytes bytes = sample();
  WireReader in(bytes);
  CHECK(in.u8() == 0xab);
  CHECK(in.u32() == 0xdeadbeef);
  CHECK(in.u64() == 0x0123456789abcdef);
  CHECK(in.varint() == 300);
  CHECK(in.signed_varint() == -300);
  CHECK(in.text() == "héllo");
  CHECK(equal(in.blob(), Bytes{1, 2, 3}));
  CHECK(in.left() == 2);
  CHECK(in.array<2>() == std::array<std::uint8_t, 2>{9, 8});
  CHECK(in.position() == bytes.size());
  require_ok(in.finish("sample"));
}

TEST_CASE("numbers are little-endian, and varints are LEB128", "[wire]") {
  WireWriter out;
  out.u32(0x01020304);
  out.u64(0x0102030405060708);
  out.varint(127);
  out.varint(128);
  out.varint(300);
  out.signed_varint(-1);
  out.signed_varint(1);
  out.signed_varint(-64);
  out.text("ab");
  CHECK(out.size() == 23);
  CHECK(out.bytes() == Bytes{4,    3,    2,    1,    8,    7,    6,    5,    4, 3,   2,  1,
                             0x7f, 0x80, 0x01, 0xac, 0x02, 0x01, 0x02, 0x7f, 2, 'a', 'b'});
}

TEST_CASE("varints of every magnitude come back", "[wire]") {
  for (int bits = 0; bits <= 64; ++bits) {
    const std::uint64_t power = bits == 64 ? 0 : std::uint64_t{1} << bits;
    for (const std::uint64_t value : {power - 1, power, power + 1}) {
      const Bytes bytes = varint_bytes(value);
      WireReader in(bytes);
      INFO(value);
      CHECK(in.varint() == value);
      CHECK_FALSE(in.failed());
      CHECK(in.left() == 0);
    }
  }
  CHECK(varint_bytes(kMost).size() == 10);
}

TEST_CASE("signed varints of every magnitude come back", "[wire]") {
  for (int bits = 0; bits < 64; ++bits) {
    const auto power =
        static_cast<std::int64_t>(std::uint64_t{1} << bits);  // the last is the least number there is
    for (const std::int64_t value : {power, ~power}) {
      WireWriter out;
      out.signed_varint(value);
      WireReader in(out.bytes());
      INFO(value);
      CHECK(in.signed_varint() == value);
      CHECK(in.left() == 0);
      CHECK_FALSE(in.failed());
    }
  }
}

TEST_CASE("a value has one encoding: a padded or overlong varint is refused", "[wire]") {
  CHECK(refuses_varint({0x80, 0x00}));
  CHECK(refuses_varint({0xff, 0x00}));
  CHECK(refuses_varint({0x80, 0x80, 0x00}));
  CHECK(refuses_varint({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}));        // 65 bits
  CHECK(refuses_varint({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00}));  // 11 bytes
  CHECK(refuses_varint(Bytes(64, 0x80)));
  CHECK(refuses_varint(Bytes(64, 0xff)));
  CHECK_FALSE(refuses_varint({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  CHECK_FALSE(refuses_varint({0x00}));
}

TEST_CASE("a varint above its limit is refused", "[wire]") {
  const auto read = [](std::uint64_t value, std::uint64_t most) {
    const Bytes bytes = varint_bytes(value);
    WireReader in(bytes);
    const std::uint64_t got = in.varint_up_to(most);
    return in.failed() ? std::optional<std::uint64_t>() : got;
  };
  CHECK(read(0, 0) == 0);
  CHECK(read(5, 5) == 5);
  CHECK(read(6, 5) == std::nullopt);
  CHECK(read(kMost, kMost) == kMost);
  CHECK(read(std::uint64_t{1} << 32, 0xffff'ffff) == std::nullopt);
  CHECK(read(0xffff'ffff, 0xffff'ffff) == 0xffff'ffff);
}

TEST_CASE("whatever reads as a varint writes back as the same bytes", "[wire]") {
  testing::Random random(1);
  std::size_t readable = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes bytes(1 + random.below(11));
    for (std::uint8_t& byte : bytes)
      byte = static_cast<std::uint8_t>(random.next() | (random.below(4) != 0 ? 0x80 : 0));
    WireReader in(bytes);
    const std::uint64_t value = in.varint();
    if (in.failed()) continue;
    ++readable;
    if (!equal(varint_bytes(value), ByteView(bytes).first(in.position())))
      FAIL("another encoding of " << value);
  }
  CHECK(readable > 10'000);
}

TEST_CASE("a structure cut at any length is an error, and nothing is read beyond its end", "[wire]") {
  testing::for_each_cut(sample(), [](const Bytes& cut, const std::string& what) {
    WireReader in(cut);
    read_sample(in);
    INFO(what);
    CHECK(in.failed());
    CHECK(code_of(in.finish("sample")) == ErrorCode::corrupt);
  });
}

TEST_CASE("after its first failure a reader answers zero and nothing", "[wire]") {
  const Bytes bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  WireReader in(bytes);
  CHECK(in.raw(10).empty());
  REQUIRE(in.failed());
  CHECK(in.u8() == 0);
  CHECK(in.u32() == 0);
  CHECK(in.u64() == 0);
  CHECK(in.varint() == 0);
  CHECK(in.signed_varint() == 0);
  CHECK(in.text().empty());
  CHECK(in.blob().empty());
  CHECK(in.raw(1).empty());
  CHECK(in.array<4>() == std::array<std::uint8_t, 4>{});
  CHECK(in.count(1) == 0);
  CHECK(code_of(in.finish("it")) == ErrorCode::corrupt);
}

TEST_CASE("a failure that the decoder declares is final too", "[wire]") {
  const Bytes bytes = {7};
  WireReader in(bytes);
  in.fail();
  CHECK(in.u8() == 0);
  CHECK(code_of(in.finish("it")) == ErrorCode::corrupt);
}

TEST_CASE("a length beyond the end is refused, however large it is", "[wire]") {
  for (const std::uint64_t length : {std::uint64_t{4}, std::uint64_t{1} << 32, kMost / 2, kMost - 1, kMost}) {
    WireWriter out;
    out.varint(length);
    out.raw(Bytes{1, 2, 3});
    INFO(length);
    WireReader as_blob(out.bytes());
    CHECK(as_blob.blob().empty());
    CHECK(as_blob.failed());
    WireReader as_string(out.bytes());
    CHECK(as_string.text().empty());
    CHECK(as_string.failed());
  }
  const Bytes three(3);
  WireReader in(three);
  in.u8();
  CHECK(in.raw(std::numeric_limits<std::size_t>::max()).empty());
  CHECK(in.failed());
}

TEST_CASE("a count must fit into the bytes that are left", "[wire]") {
  const auto count = [](std::uint64_t claimed, std::size_t bytes_that_follow, std::size_t least_bytes) {
    WireWriter out;
    out.varint(claimed);
    out.raw(Bytes(bytes_that_follow));
    WireReader in(out.bytes());
    const std::size_t got = in.count(least_bytes);
    return in.failed() ? std::optional<std::size_t>() : got;
  };
  CHECK(count(0, 0, 8) == 0);
  CHECK(count(2, 16, 8) == 2);
  CHECK(count(2, 17, 8) == 2);
  CHECK(count(3, 23, 8) == std::nullopt);
  CHECK(count(1, 0, 1) == std::nullopt);
  CHECK(count(kMost, 100, 1) == std::nullopt);
  CHECK(count(kMost / 8 + 2, 100, 8) == std::nullopt);  // times 8 it would wrap around to 8
}

TEST_CASE("bytes left over are an error that says what and how many", "[wire]") {
  const Bytes bytes = {1, 2, 3};
  WireReader in(bytes);
  in.u8();
  const Error error = error_of(in.finish("the thing"));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains("the thing") && Catch::Contains("2 bytes"));
}

TEST_CASE("an empty structure finishes well", "[wire]") {
  const WireReader in(ByteView{});
  require_ok(in.finish("nothing"));
}

}  // namespace kin

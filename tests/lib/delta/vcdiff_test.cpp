#include "lib/delta/vcdiff.h"

#include "lib/base/wire.h"
#include "lib/delta/codec.h"
#include "lib/delta/file_vcdiff_base.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

namespace kin {
namespace {

using testing::code_of;
using testing::random_bytes;
using testing::text_like;
using testing::value_of;

VcdiffRead pieces_of(ByteView bytes, std::size_t piece_bytes) {
  return [bytes, piece_bytes, first = true]() mutable -> Result<ByteView> {
    const ByteView piece =
        bytes.first(std::min(bytes.size(), first ? std::max<std::size_t>(piece_bytes, 6) : piece_bytes));
    bytes = bytes.subspan(piece.size());
    first = false;
    return piece;
  };
}

Bytes encoded(VcdiffBase& base, ByteView target, const VcdiffOptions& options = {}) {
  Bytes out;
  REQUIRE(encode_vcdiff(
      base, pieces_of(target, options.window_bytes),
      [&](ByteView bytes) -> Result<void> {
        append(out, bytes);
        return {};
      },
      options));
  return out;
}

Bytes checked_delta(ByteView base, ByteView target) {
  VcdiffOptions options;
  options.checksums = true;
  MemoryVcdiffBaseView view(base);
  return encoded(view, target, options);
}

Result<Bytes> decoded(VcdiffBase& base, ByteView delta, std::size_t piece_bytes = 1 << 20,
                      const VcdiffLimits& limits = {}) {
  Bytes out;
  KIN_TRY_ASSIGN(const VcdiffTarget target, decode_vcdiff(
                                                base, pieces_of(delta, piece_bytes),
                                                [&](ByteView bytes) -> Result<void> {
                                                  append(out, bytes);
                                                  return {};
                                                },
                                                limits));
  CHECK(target.bytes == out.size());
  return out;
}

Result<Bytes> decoded(ByteView base, ByteView delta, std::size_t piece_bytes = 1 << 20,
                      const VcdiffLimits& limits = {}) {
  MemoryVcdiffBaseView view(base);
  return decoded(view, delta, piece_bytes, limits);
}

// Halves swapped, a few bytes changed.
Bytes moved(const Bytes& base) {
  Bytes out(base.begin() + static_cast<std::ptrdiff_t>(base.size() / 2), base.end());
  out.insert(out.end(), base.begin(), base.begin() + static_cast<std::ptrdiff_t>(base.size() / 2));
  if (!out.empty()) out[out.size() / 3] ^= 1;
  return out;
}

// Seven bits to a byte, the highest first.
void put_number(Bytes& out, std::uint64_t number) {
  Bytes digits{static_cast<std::uint8_t>(number & 127)};
  while (number >>= 7) digits.push_back(static_cast<std::uint8_t>(128 | (number & 127)));
  out.insert(out.end(), digits.rbegin(), digits.rend());
}

std::size_t number_bytes(std::uint64_t number) {
  Bytes out;
  put_number(out, number);
  return out.size();
}

// A window by hand, whose sizes may lie.
struct Window {
  bool from_base = false;
  std::uint64_t base_bytes = 0, base_offset = 0;
  std::uint64_t target_bytes = 0;
  Bytes data, instructions, addresses;
  std::uint64_t claimed_data = 0;  // if not zero, instead of the true size

  Bytes delta(std::uint8_t header_indicator = 0, const Bytes& header_rest = {}) const {
    Bytes out{0xd6, 0xc3, 0xc4, 0, header_indicator};
    append(out, header_rest);
    out.push_back(from_base ? 1 : 0);
    if (from_base) {
      put_number(out, base_bytes);
      put_number(out, base_offset);
    }
    const std::uint64_t data_size = claimed_data ? claimed_data : data.size();
    const std::uint64_t sizes = 1 + number_bytes(target_bytes) + number_bytes(data_size) +
                                number_bytes(instructions.size()) + number_bytes(addresses.size());
    put_number(out, (sizes + data_size + instructions.size() + addresses.size()) & 0xffffffff);
    put_number(out, target_bytes);
    out.push_back(0);
    put_number(out, data_size);
    put_number(out, instructions.size());
    put_number(out, addresses.size());
    append(out, data);
    append(out, instructions);
    append(out, addresses);
    return out;
  }
};

Bytes operator+(Bytes a, const Bytes& b) {
  append(a, b);
  return a;
}

}  // namespace

TEST_CASE("a VCDIFF delta gives back its target, in whatever pieces it comes", "[vcdiff]") {
  for (const std::size_t size : {0, 1, 100, 20'000, 100'000}) {
    const Bytes base = random_bytes(1, size);
    for (const Bytes& target : {Bytes{}, Bytes{7}, base, moved(base), text_like(2, 30'000)})
      for (const std::size_t window : {std::size_t{1000}, kVcdiffWindowBytes}) {
        VcdiffOptions options;
        options.checksums = true;
        options.window_bytes = window;
        MemoryVcdiffBaseView view(base);
        const Bytes delta = encoded(view, target, options);
        INFO("base " << base.size() << " target " << target.size() << " window " << window);
        CHECK(equal(value_of(decoded(base, delta)), target));
        CHECK(equal(value_of(decoded(base, delta, 1)), target));
        CHECK(equal(value_of(decoded(base, delta, 37)), target));
      }
  }
}

TEST_CASE("parts that moved in more than one window are found in the base", "[vcdiff]") {
  const Bytes base = random_bytes(3, 20 << 20), target = moved(base);
  const Bytes delta = checked_delta(base, target);
  CHECK(delta.size() < 1000);
  CHECK(equal(value_of(decoded(base, delta)), target));
}

TEST_CASE("a file is the same base as its bytes", "[vcdiff]") {
  const testing::TempDir directory;
  const std::string path = directory.path() + "/base";
  for (const std::size_t size : {0, 1, 1 << 20, (5 << 20) - 1, 5 << 20}) {
    const Bytes base = random_bytes(4, size), target = moved(base);
    {
      const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
      REQUIRE(write_all(fd.get(), base, path));
    }
    const auto file = value_of(FileVcdiffBase::open(path));
    const Bytes delta = encoded(*file, target);
    INFO(size);
    CHECK(delta.size() < size / 100 + 100);
    CHECK(equal(value_of(decoded(base, delta)), target));
    CHECK(equal(value_of(decoded(*file, delta)), target));
  }
}

TEST_CASE("a base that becomes shorter while it is read is an error", "[vcdiff]") {
  const testing::TempDir directory;
  const std::string path = directory.path() + "/base";
  const Bytes base = random_bytes(5, 3 << 20);
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
  REQUIRE(write_all(fd.get(), base, path));
  const auto file = value_of(FileVcdiffBase::open(path));
  REQUIRE(::ftruncate(fd.get(), 1000) == 0);
  const auto failed =
      encode_vcdiff(*file, pieces_of(base, base.size()), [](ByteView) { return Result<void>(); }, {});
  CHECK(code_of(failed) == ErrorCode::io);
}

TEST_CASE("what is not a regular file is no base", "[vcdiff]") {
  const testing::TempDir directory;
  const std::string pipe = directory.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(code_of(FileVcdiffBase::open(pipe)) == ErrorCode::invalid_argument);
  CHECK(code_of(FileVcdiffBase::open(directory.path())) == ErrorCode::invalid_argument);
  CHECK(code_of(FileVcdiffBase::open(directory.path() + "/none")) == ErrorCode::not_found);
}

TEST_CASE("a wrong base is noticed by its checksum or its size", "[vcdiff]") {
  const Bytes base = random_bytes(6, 50'000), target = moved(base);
  const Bytes delta = checked_delta(base, target);
  Bytes other = base;
  other[12'345] ^= 1;
  CHECK(code_of(decoded(other, delta)) == ErrorCode::wrong_base);
  CHECK(code_of(decoded(random_bytes(7, 50'000), delta)) == ErrorCode::wrong_base);
  CHECK(code_of(decoded(ByteView(base).first(30'000), delta)) == ErrorCode::wrong_base);
  CHECK(code_of(decoded(ByteView(), delta)) == ErrorCode::wrong_base);
}

TEST_CASE("what is no VCDIFF, or of a kind that we do not read, is unsupported", "[vcdiff]") {
  const Bytes good = checked_delta({}, text_like(8, 100));
  CHECK(code_of(decoded({}, {})) == ErrorCode::unsupported);
  CHECK(code_of(decoded({}, text_like(8, 100))) == ErrorCode::unsupported);
  Bytes newer = good;
  newer[3] = 'S';
  CHECK(code_of(decoded({}, newer)) == ErrorCode::unsupported);
  Window window;
  CHECK(code_of(decoded({}, window.delta(1, {1}))) == ErrorCode::unsupported);   // DJW sections
  CHECK(code_of(decoded({}, window.delta(1, {16}))) == ErrorCode::unsupported);  // FGK sections
  CHECK(code_of(decoded({}, window.delta(2, {5, 1, 1, 1, 1, 1}))) == ErrorCode::unsupported);
  CHECK(code_of(decoded({}, window.delta(8))) == ErrorCode::corrupt);
  window.target_bytes = 17 << 20;
  CHECK(code_of(decoded({}, window.delta())) == ErrorCode::unsupported);
}

TEST_CASE("a delta that is cut short or changed gives an error, or the target", "[vcdiff]") {
  const Bytes base = random_bytes(9, 600), target = moved(base);
  const Bytes delta = checked_delta(base, target);
  for (const std::size_t piece : {std::size_t{7}, delta.size()}) {
    testing::for_each_damage(delta, [&](const Bytes& damaged, const std::string& what) {
      const auto got = decoded(base, damaged, piece);
      if (got && !equal(*got, target)) FAIL(what);
    });
    testing::for_each_cut(delta, [&](const Bytes& cut, const std::string& what) {
      if (decoded(base, cut, piece)) FAIL(what);
    });
  }
}

TEST_CASE("the claims of a forged delta cost no memory, and are errors", "[vcdiff]") {
  const Bytes base = random_bytes(10, 1000);
  for (const bool strict : {false, true})
    for (const std::size_t piece : {std::size_t{6}, std::size_t{1} << 20}) {
      VcdiffLimits limits;
      limits.strict = strict;
      const auto refused = [&](const Window& window) {
        return !decoded(base, window.delta(), piece, limits);
      };
      INFO("strict " << strict << " piece " << piece);
      Window window;
      window.target_bytes = 5;
      for (const std::uint64_t claim : {33ull << 20, 0x80000001ull, 0xfffffff0ull}) {
        window.claimed_data = claim;
        CHECK(refused(window));
      }
      // Sums that would not fit 32 bits.
      Window wrapping;
      wrapping.from_base = true;
      wrapping.target_bytes = 1000;
      wrapping.base_bytes = 0xffffffff - 1000;
      wrapping.instructions = {19};  // COPY, the size follows
      put_number(wrapping.instructions, 2000);
      put_number(wrapping.addresses, 0xffffffff - 1500);
      CHECK(refused(wrapping));
      wrapping.base_bytes = 1000;
      wrapping.instructions = {19};
      put_number(wrapping.instructions, 0xfffffff0);
      put_number(wrapping.addresses, 999);
      wrapping.addresses.pop_back();
      wrapping.addresses.push_back(0x7f & 999);
      CHECK(refused(wrapping));
      wrapping.base_offset = 0x7fffffffffffffff;
      CHECK(refused(wrapping));
    }
  // An application header of 4 GiB.
  Bytes header;
  put_number(header, 0xfffffff0);
  CHECK(code_of(decoded(base, Window().delta(4, header), 6)) == ErrorCode::corrupt);
}

TEST_CASE("strictly, only what kin writes is read", "[vcdiff]") {
  VcdiffLimits strict;
  strict.strict = true;
  strict.target_bytes = 3;
  Window window;
  window.target_bytes = 3;
  window.data = {1, 2, 3};
  window.instructions = {4};  // ADD of three bytes
  CHECK(equal(value_of(decoded({}, window.delta(), 1 << 20, strict)), Bytes{1, 2, 3}));
  CHECK(equal(value_of(decoded({}, window.delta(4, {2, 'h', 'i'}))), Bytes{1, 2, 3}));
  CHECK(code_of(decoded({}, window.delta(4, {2, 'h', 'i'}), 1 << 20, strict)) == ErrorCode::corrupt);
  CHECK(code_of(decoded({}, window.delta(1, {2}), 1 << 20, strict)) == ErrorCode::corrupt);
  // One byte too many, and windows of nothing.
  strict.target_bytes = 2;
  CHECK(code_of(decoded({}, window.delta(), 1 << 20, strict)) == ErrorCode::corrupt);
  const Bytes empty = Window().delta();
  const Bytes empty_window(empty.begin() + 5, empty.end());
  strict.target_bytes = 3;
  CHECK(code_of(decoded({}, window.delta() + empty_window, 1 << 20, strict)) == ErrorCode::corrupt);
  CHECK(code_of(decoded({}, empty, 1 << 20, strict)) == ErrorCode::corrupt);
  strict.target_bytes = 0;
  CHECK(value_of(decoded({}, empty, 1 << 20, strict)).empty());
  CHECK(code_of(decoded({}, empty + empty_window, 1 << 20, strict)) == ErrorCode::corrupt);
  // A header without windows.
  CHECK(code_of(decoded({}, ByteView(empty).first(5), 1 << 20, strict)) == ErrorCode::corrupt);
}

TEST_CASE("a forged xdelta3 payload unpacks to no more than its content can need", "[codec][vcdiff]") {
  const auto zstd = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(3);
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::xdelta3))->make(3);
  for (const std::uint64_t claim : {std::uint64_t{60} << 20, std::uint64_t{1} << 62}) {
    WireWriter payload;
    payload.varint(claim);
    payload.raw(value_of(zstd->encode({}, Bytes(60 << 20))));
    CHECK(code_of(codec->decode({}, payload.bytes(), 1000)) == ErrorCode::corrupt);
  }
}

}  // namespace kin

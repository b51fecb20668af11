// Our encoder beside libbz2: of every block that libbz2 writes, ours writes the same bits.
#include "formats/bzip2/self_test.h"
#include "tests/formats/bzip2/streams.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;

namespace {

// Bytes of which each value is half as frequent as the one before: their codes get too long.
Bytes skewed_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Bytes out(size);
  for (std::uint8_t& byte : out)
    for (std::uint64_t bits = random.next(); (bits & 1) != 0; bits >>= 1) ++byte;
  return out;
}

// Runs of few bytes, of lengths around all that matters to the first stage.
Bytes run_bytes(std::uint64_t seed, std::size_t size) {
  static constexpr std::size_t kLengths[] = {1,   2,   3,   4,   5,   6,   100, 254,
                                             255, 256, 257, 258, 259, 260, 511, 600};
  Random random(seed);
  Bytes out;
  while (out.size() < size)
    out.insert(out.end(), kLengths[random.below(std::size(kLengths))],
               static_cast<std::uint8_t>(random.below(3)));
  out.resize(size);
  return out;
}

// Repeats a short piece, with a slip now and then.
Bytes repetitive_bytes(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  const Bytes unit = random_bytes(seed, 1 + random.below(300));
  Bytes out;
  while (out.size() < size) {
    append(out, unit);
    if (random.below(50) == 0) out.push_back(0);
  }
  out.resize(size);
  return out;
}

using Generator = Bytes (*)(std::uint64_t seed, std::size_t size);
constexpr Generator kGenerators[] = {random_bytes, text_like,        compressible_bytes, skewed_bytes,
                                     run_bytes,    structured_bytes, repetitive_bytes};

void check_exact(const Bytes& plain, int level, std::size_t step = 0) {
  const Differences differences = check_comes_back(libbz2_stream(plain, level, step), plain);
  CHECK(differences.tables == 0);
  CHECK(differences.origins == 0);
  CHECK(differences.long_runs == 0);
}

}  // namespace

TEST_CASE("blocks of all kinds of bytes are encoded as libbz2 does", "[bzip2]") {
  Random random(1);
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const Generator generator : kGenerators) {
      // Small ones above all, around the counts of symbols at which there is one more table.
      const std::size_t size = 1 + random.below(seed % 10 == 0 ? 40'000 : 3000);
      INFO("seed " << seed << ", size " << size);
      check_exact(generator(seed, size), static_cast<int>(1 + seed % 9));
    }
}

TEST_CASE("large blocks are encoded as libbz2 does", "[bzip2]") {
  for (const Generator generator : kGenerators) check_exact(generator(5, 120'000), 1);
  check_exact(text_like(6, 1'000'000), 9);
  check_exact(skewed_bytes(7, 950'000), 9);
}

TEST_CASE("the shortest contents are encoded as libbz2 does", "[bzip2]") {
  for (std::size_t size = 1; size < 20; ++size)
    for (std::uint64_t seed = 0; seed < 5; ++seed) check_exact(random_bytes(seed, size), 9);
  // All bytes there are, and one of them at a time.
  Bytes all(256);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint8_t>(i);
    check_exact(Bytes{all[i]}, 1);
  }
  check_exact(all, 1);
}

TEST_CASE("runs of any length are encoded as libbz2 does", "[bzip2]") {
  for (std::size_t run = 1; run < 530; ++run) {
    Bytes plain = {'x'};
    plain.insert(plain.end(), run, 'a');
    plain.push_back('y');
    check_exact(plain, 1);
  }
}

TEST_CASE("blocks end where libbz2 ends them, whatever run they end in", "[bzip2]") {
  constexpr std::size_t kFull = 100'000 - 19;
  const Bytes noise = random_bytes(3, kFull + 20);
  for (const std::size_t before : {kFull - 5, kFull - 4, kFull - 1, kFull})
    for (const std::size_t run : {1U, 300U})
      for (const std::size_t after : {0U, 1U}) {
        INFO(before << " bytes, a run of " << run << " and " << after << " behind");
        Bytes plain(noise.begin(), noise.begin() + static_cast<std::ptrdiff_t>(before));
        plain.insert(plain.end(), run, noise[before] ^ 1);
        append(plain, ByteView(noise).first(after));
        // Called in either of two ways, libbz2 may end the last block otherwise.
        check_exact(plain, 1);
        if (after == 0) check_exact(plain, 1, 5000);
      }
}

TEST_CASE("something repeated comes back, whichever of its equal rows libbz2 named", "[bzip2]") {
  for (const std::size_t period : {1U, 2U, 3U, 7U, 100U})
    for (const std::size_t copies : {2U, 3U, 50U, 400U}) {
      const Bytes unit = random_bytes(period, period);
      Bytes plain;
      for (std::size_t i = 0; i < copies; ++i) append(plain, unit);
      CHECK(check_comes_back(libbz2_stream(plain, 9), plain).tables == 0);
    }
  const Bytes zeros(6'000'000);
  const Differences differences = check_comes_back(libbz2_stream(zeros, 1), zeros);
  CHECK(differences.blocks == 2);
  CHECK(differences.tables == 0);
}

TEST_CASE("streams one after the other, empty ones and flushed blocks come back", "[bzip2]") {
  const Bytes text = text_like(1, 20'000);
  Bytes file = libbz2_stream(text, 9), plain = text;
  append(file, libbz2_stream({}, 1));
  append(file, libbz2_stream(run_bytes(2, 30'000), 3, 1000, true));
  append(plain, run_bytes(2, 30'000));
  append(file, libbz2_stream(text, 1));
  append(plain, text);
  const Differences differences = check_comes_back(file, plain);
  CHECK(differences.blocks == 32);
  CHECK(differences.tables == 0);
}

TEST_CASE("what follows the last stream is left", "[bzip2]") {
  const Bytes text = text_like(1, 3000), stream = libbz2_stream(text, 9);
  for (const char* behind : {"x", "BZ", "BZh9", "BZh91AY&SX", "\0\0\0"}) {
    Bytes file = stream;
    append(file, as_bytes(behind));
    CHECK(value_of(open_streams(file)).encoded_bytes == stream.size());
  }
}

TEST_CASE("the bzip2 self-test passes", "[bzip2]") { require_ok(formats::bzip2::self_test()); }

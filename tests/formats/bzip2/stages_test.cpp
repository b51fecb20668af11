// The stages of the bzip2 encoder, each by itself.
#include "formats/bzip2/code_lengths.h"
#include "formats/bzip2/rotations.h"
#include "formats/bzip2/runs.h"
#include "formats/bzip2/suffix_sort.h"
#include "formats/bzip2/symbols.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

using namespace kin;
using namespace kin::testing;
using namespace kin::formats::bzip2;

namespace {

// Of few different bytes, so that much is equal.
Bytes few_bytes(std::uint64_t seed, std::size_t size, std::uint64_t letters) {
  Random random(seed);
  Bytes out(size);
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random.below(letters));
  return out;
}

std::vector<std::int32_t> suffixes_by_comparing(ByteView text) {
  std::vector<std::int32_t> out(text.size());
  std::iota(out.begin(), out.end(), 0);
  std::sort(out.begin(), out.end(), [text](std::int32_t a, std::int32_t b) {
    return std::lexicographical_compare(text.begin() + a, text.end(), text.begin() + b, text.end());
  });
  return out;
}

// Every word of this length over two letters.
Bytes binary_word(std::uint32_t number, std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>(number >> i & 1);
  return out;
}

Rotations rotations_by_comparing(ByteView block) {
  std::vector<std::size_t> rows(block.size());
  std::iota(rows.rbegin(), rows.rend(), std::size_t{0});  // of equal ones, the block itself comes last
  std::stable_sort(rows.begin(), rows.end(), [block](std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint8_t in_a = block[(a + i) % block.size()], in_b = block[(b + i) % block.size()];
      if (in_a != in_b) return in_a < in_b;
    }
    return false;
  });
  Rotations out;
  for (const std::size_t row : rows)
    out.last_column.push_back(block[(row + block.size() - 1) % block.size()]);
  out.origin = static_cast<std::uint32_t>(std::find(rows.begin(), rows.end(), std::size_t{0}) - rows.begin());
  return out;
}

}  // namespace

TEST_CASE("suffixes are in order", "[bzip2]") {
  for (std::size_t size = 0; size <= 10; ++size)
    for (std::uint32_t number = 0; number < 1U << size; ++number) {
      const Bytes text = binary_word(number, size);
      REQUIRE((sort_suffixes(text) == suffixes_by_comparing(text)));
    }
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Bytes text = few_bytes(seed, 1 + seed * 3, 1 + seed % 7);
    REQUIRE((sort_suffixes(text) == suffixes_by_comparing(text)));
  }
  const Bytes text = text_like(1, 50'000), noise = random_bytes(2, 50'000);
  CHECK((sort_suffixes(text) == suffixes_by_comparing(text)));
  CHECK((sort_suffixes(noise) == suffixes_by_comparing(noise)));
}

TEST_CASE("rotations are in order, and a block comes back from them", "[bzip2]") {
  const auto check = [](const Bytes& block) {
    const Rotations rotations = sort_rotations(block), expected = rotations_by_comparing(block);
    REQUIRE((rotations.last_column == expected.last_column));
    REQUIRE(rotations.origin == expected.origin);
    REQUIRE((join_rotations(rotations.last_column, rotations.origin) == block));
  };
  for (std::size_t size = 1; size <= 10; ++size)
    for (std::uint32_t number = 0; number < 1U << size; ++number) check(binary_word(number, size));
  for (std::uint64_t seed = 0; seed < 200; ++seed) check(few_bytes(seed, 1 + seed, 1 + seed % 5));
}

TEST_CASE("repetitive blocks of full size are sorted in no more time than others", "[bzip2]") {
  Bytes fibonacci = {1}, before = {0};
  while (fibonacci.size() < kMostBlockBytes) {
    Bytes next = fibonacci;
    append(next, before);
    before = std::exchange(fibonacci, std::move(next));
  }
  fibonacci.resize(kMostBlockBytes);
  Bytes pairs, halves = random_bytes(1, kMostBlockBytes / 2);
  while (pairs.size() < kMostBlockBytes) pairs.insert(pairs.end(), {'a', 'b'});
  append(halves, Bytes(halves));
  halves.back() ^= 1;
  Bytes almost(kMostBlockBytes, 'a');
  almost.back() = 'b';
  // A quadratic sort would take minutes for each.
  for (const Bytes& block : {fibonacci, pairs, halves, almost}) {
    const Rotations rotations = sort_rotations(block);
    CHECK((join_rotations(rotations.last_column, rotations.origin) == block));
  }
}

TEST_CASE("symbols give back the column that they were made of", "[bzip2]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Bytes column = few_bytes(seed, 1 + seed * 5, 1 + seed % 256);
    const Symbols symbols = make_symbols(column);
    CHECK((value_of(undo_symbols(symbols, column.size())) == column));
    CHECK(code_of(undo_symbols(symbols, column.size() - 1)) == ErrorCode::corrupt);
  }
}

TEST_CASE("runs are shortened and come back, in pieces of any size", "[bzip2]") {
  for (const std::size_t most_run : {kUsualRun, kLongRun})
    for (std::size_t run = 1; run < 600; run += run < 10 || run % 255 < 12 ? 1 : 37) {
      Bytes plain(run, 'r');
      plain.push_back('s');
      plain.insert(plain.end(), run, 't');
      RunEncoder encoder(most_run);
      for (std::size_t at = 0; at < plain.size(); at += 7)
        encoder.add(ByteView(plain).subspan(at, std::min<std::size_t>(7, plain.size() - at)));
      const Bytes block = encoder.finish();
      CHECK(has_long_runs(block) == (most_run == kLongRun && run > kUsualRun));
      RunExpander expander(block);
      Bytes back, buffer(5);
      for (std::size_t got = buffer.size(); got == buffer.size();) {
        got = expander.read(buffer);
        append(back, ByteView(buffer).first(got));
      }
      CHECK((back == plain));
    }
}

TEST_CASE("no code is longer than bzip2 makes them, however unlike the frequencies are", "[bzip2]") {
  std::vector<std::uint32_t> frequencies = {1, 1};
  while (frequencies.size() < 20) frequencies.push_back(frequencies.end()[-1] + frequencies.end()[-2]);
  const CodeLengths lengths = make_code_lengths(frequencies);
  // As libbz2's own function has them.
  const std::vector<int> expected = {10, 10, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2};
  CHECK(std::equal(expected.begin(), expected.end(), lengths.begin()));
}

// bzip2 streams and corrections that are damaged, forged, or written by encoders of other kinds: they are
// refused or come back exactly, and nothing takes memory or time without end.
#include "formats/bzip2/block_bits.h"
#include "formats/bzip2/crc.h"
#include "formats/bzip2/frame.h"
#include "formats/bzip2/rotations.h"
#include "formats/bzip2/symbols.h"
#include "formats/bzip2/tables.h"
#include "tests/formats/bzip2/streams.h"
#include "tests/formats/damaged_streams.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace kin;
using namespace kin::testing;
using namespace kin::formats::bzip2;

namespace {

// A stream of one block, as it would be but for what `change` does to it.
Bytes stream_with(const Bytes& plain, std::size_t most_run,
                  const std::function<void(BlockContent&)>& change) {
  RunEncoder runs(most_run);
  runs.add(plain);
  Crc crc;
  crc.add(plain);
  const Rotations rotations = sort_rotations(runs.finish());
  BlockContent content;
  content.crc = crc.value();
  content.origin = rotations.origin;
  content.symbols = make_symbols(rotations.last_column);
  content.tables = choose_tables(content.symbols);
  change(content);
  BitWriter out;
  write_stream_start(out, 9);
  write_magic(out, kBlockMagic);
  write_block(out, content);
  write_stream_end(out, combine_crc(0, content.crc));
  return out.take();
}

void leave(BlockContent&) {}

// Three tables, two of them flat, and a selector more than there are groups.
void use_other_tables(BlockContent& block) {
  Tables& tables = block.tables;
  tables.count = 3;
  tables.lengths[2] = {};
  for (std::size_t symbol = 0; symbol < block.symbols.alphabet; ++symbol) {
    tables.lengths[1][symbol] = 9;
    tables.lengths[2][symbol] = 8 + symbol % 2;
  }
  for (std::size_t table = 3; table < kMostTables; ++table) tables.lengths[table] = {};
  for (std::size_t i = 0; i < tables.selectors.size(); ++i) tables.selectors[i] = i % 7 == 3 ? i % 3 : 0;
  tables.selectors.push_back(2);
}

std::vector<Bytes> small_streams() {
  const Bytes text = text_like(1, 400);
  Bytes two = libbz2_stream(text_like(2, 90), 1);
  append(two, libbz2_stream(Bytes(700, 'z'), 9));
  return {libbz2_stream(text, 9), two, stream_with(text, kUsualRun, use_other_tables)};
}

const StreamCoding kBzip2{[](const Bytes& file) { return open_streams(file); }, rebuild_streams};

}  // namespace

TEST_CASE("a bzip2 stream cut at any length is refused", "[bzip2]") {
  const Bytes whole = libbz2_stream(text_like(1, 400), 9);
  for (std::size_t size = kStreamStartBytes; size < whole.size(); ++size)
    CHECK(code_of(open_streams(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)))) ==
          ErrorCode::corrupt);
}

TEST_CASE("a bzip2 stream with any bit changed is refused or comes back exactly", "[bzip2]") {
  check_each_bit(small_streams(), kBzip2);
}

TEST_CASE("corrections that are changed or cut give an error or other bytes, and an end", "[bzip2]") {
  check_damaged_corrections(small_streams(), kBzip2);
}

TEST_CASE("corrections for other content are corrupt, or give other bytes", "[bzip2]") {
  check_other_content(small_streams(), kBzip2);
}

TEST_CASE("corrections of a later version are refused as such", "[bzip2]") {
  check_later_version(small_streams()[0], kBzip2);
}

TEST_CASE("streams of encoders of another kind come back by their tables and runs", "[bzip2]") {
  const Bytes text = text_like(3, 30'000);
  Differences differences = check_comes_back(stream_with(text, kUsualRun, use_other_tables), text);
  CHECK(differences.tables == 1);
  CHECK(differences.long_runs == 0);
  Bytes runs = text;
  runs.insert(runs.end(), 2000, 'r');
  differences = check_comes_back(stream_with(runs, kLongRun, leave), runs);
  CHECK(differences.tables == 0);
  CHECK(differences.long_runs == 1);
}

TEST_CASE("what our encoder could not write again is refused", "[bzip2]") {
  const Bytes text = text_like(3, 3000);
  const auto refusal_of = [&](const std::function<void(BlockContent&)>& change) {
    return code_of(open_streams(stream_with(text, kUsualRun, change)));
  };
  // A byte is listed that does not occur: each symbol has another place then.
  CHECK(refusal_of([](BlockContent& block) { block.symbols.used[255] = true; }) == ErrorCode::corrupt);
  CHECK(refusal_of([](BlockContent& block) { block.crc ^= 1; }) == ErrorCode::corrupt);
  CHECK(refusal_of([](BlockContent& block) { block.origin ^= 1; }) == ErrorCode::corrupt);
  CHECK(refusal_of([](BlockContent& block) { block.origin = 3000; }) == ErrorCode::corrupt);
  // Runs that are shorter than they could be.
  const Bytes run(200, 'r');
  CHECK(code_of(open_streams(stream_with(run, 100, leave))) == ErrorCode::unsupported);

  // The scrambled blocks of old: the bit behind the checksum.
  Bytes scrambled = libbz2_stream(text, 9);
  scrambled[14] |= 0x80;
  CHECK(code_of(open_streams(scrambled)) == ErrorCode::unsupported);
  // Other bits than zeros behind the end.
  bool any = false;
  for (std::size_t size = 100; size < 120 && !any; ++size) {
    Bytes padded = libbz2_stream(text_like(4, size), 9);
    padded.back() ^= 1;
    const auto opened = open_streams(padded);
    CHECK_FALSE(opened);
    any = opened.error().code() == ErrorCode::unsupported;
  }
  CHECK(any);
}

TEST_CASE("a block larger than its stream's level allows is refused", "[bzip2]") {
  const Bytes noise = random_bytes(1, 100'001);
  Bytes file = stream_with(noise, kUsualRun, leave);
  check_comes_back(file, noise);
  file[3] = '1';
  CHECK(code_of(open_streams(file)) == ErrorCode::corrupt);
  Opened opened = value_of(open_streams(stream_with(noise, kUsualRun, leave)));
  opened.corrections[2] = 1;  // the level
  CHECK(code_of(rebuild_streams(opened.plain, opened.corrections)) == ErrorCode::corrupt);
}

TEST_CASE("tables that take too much of what they are for are refused", "[bzip2]") {
  // Blocks of little content, in which tables are nearly all that there is.
  const Bytes all = random_bytes(1, 300);
  Bytes file;
  for (int i = 0; i < 30; ++i)
    append(file, stream_with(all, kUsualRun, [](BlockContent& block) {
             for (std::size_t symbol = 0; symbol < block.symbols.alphabet; ++symbol)
               block.tables.lengths[1][symbol] = symbol % 2 == 0 ? 8 : 20;
           }));
  CHECK(code_of(open_streams(file)) == ErrorCode::unsupported);
}

// bzip2 streams for tests, made by libbz2 as the test asks; and what kin makes of them.
#pragma once

#include "formats/bzip2/member.h"
#include "formats/bzip2/record.h"
#include "tests/support/coded_stream.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <bzlib.h>

#include <algorithm>
#include <vector>

namespace kin::testing {

// As the bzip2 program calls it: `step` bytes at a time, and then the end. With `flush`, a block ends with
// each step. Without a step all of it is given with the end, as by BZ2_bzBuffToBuffCompress.
inline Bytes libbz2_stream(ByteView plain, int level, std::size_t step = 0, bool flush = false) {
  bz_stream stream{};
  REQUIRE(::BZ2_bzCompressInit(&stream, level, 0, 0) == BZ_OK);
  Bytes out(plain.size() + plain.size() / 50 + 600 + (flush ? 200 * (plain.size() / step) : 0));
  stream.next_out = reinterpret_cast<char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  const auto give = [&](ByteView bytes) {
    stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    stream.avail_in = static_cast<unsigned>(bytes.size());
  };
  for (; step != 0 && !plain.empty(); plain = plain.subspan(std::min(step, plain.size()))) {
    give(plain.first(std::min(step, plain.size())));
    if (flush) {
      int state = BZ_FLUSH_OK;
      while (state == BZ_FLUSH_OK) state = ::BZ2_bzCompress(&stream, BZ_FLUSH);
      REQUIRE(state == BZ_RUN_OK);
    } else {
      while (stream.avail_in > 0) REQUIRE(::BZ2_bzCompress(&stream, BZ_RUN) == BZ_RUN_OK);
    }
  }
  give(plain);
  int state = BZ_FINISH_OK;
  while (state == BZ_FINISH_OK) state = ::BZ2_bzCompress(&stream, BZ_FINISH);
  REQUIRE(state == BZ_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::BZ2_bzCompressEnd(&stream);
  return out;
}

inline Result<Opened> open_streams(const Bytes& file) {
  return open_with(file, [](PeekSource& in) { return formats::bzip2::Member(in); });
}

inline Result<Bytes> rebuild_streams(const Bytes& plain, const Bytes& corrections) {
  return rebuild_with(plain, corrections, [](auto content, auto records) {
    return formats::bzip2::rebuild(std::move(content), std::move(records));
  });
}

inline std::vector<formats::bzip2::Record> records_of(const Bytes& corrections) {
  REQUIRE(!corrections.empty());
  REQUIRE(corrections[0] == formats::bzip2::kVersion);
  MemorySource source(Bytes(corrections.begin() + 1, corrections.end()));
  PeekSource in(source);
  std::vector<formats::bzip2::Record> out;
  do out.push_back(value_of(formats::bzip2::read_record(in)));
  while (out.back().kind != formats::bzip2::Record::Kind::end);
  return out;
}

// Opened and rebuilt. Says which blocks were not as our encoder has them.
struct Differences {
  std::size_t blocks = 0, tables = 0, origins = 0, long_runs = 0;
};
inline Differences check_comes_back(const Bytes& file, const Bytes& plain) {
  const Opened opened = value_of(open_streams(file));
  REQUIRE((opened.plain == plain));
  REQUIRE(opened.encoded_bytes == file.size());
  REQUIRE((value_of(rebuild_streams(opened.plain, opened.corrections)) == file));
  Differences out;
  for (const formats::bzip2::Record& record : records_of(opened.corrections)) {
    out.blocks += record.kind == formats::bzip2::Record::Kind::block;
    out.tables += !record.tables.empty();
    out.origins += record.origin.has_value();
    out.long_runs += record.long_runs;
  }
  return out;
}

}  // namespace kin::testing

// .xz streams for tests, made by liblzma as the test asks; and what kin makes of them.
#pragma once

#include "formats/xz/member.h"
#include "formats/xz/record.h"
#include "tests/support/coded_stream.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"

#include <lzma.h>

#include <algorithm>
#include <vector>

namespace kin::testing {

inline lzma_options_lzma preset_options(std::uint32_t preset) {
  lzma_options_lzma out{};
  REQUIRE(::lzma_lzma_preset(&out, preset) == 0);
  return out;
}

inline Bytes run_liblzma(lzma_stream& stream, ByteView plain) {
  Bytes out(plain.size() + plain.size() / 8 + 4096);
  stream.next_in = plain.data();
  stream.avail_in = plain.size();
  stream.next_out = out.data();
  stream.avail_out = out.size();
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK) state = ::lzma_code(&stream, LZMA_FINISH);
  REQUIRE(state == LZMA_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::lzma_end(&stream);
  return out;
}

inline Bytes liblzma_stream(ByteView plain, lzma_options_lzma options, lzma_check check = LZMA_CHECK_CRC64) {
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  lzma_stream stream = LZMA_STREAM_INIT;
  REQUIRE(::lzma_stream_encoder(&stream, filters, check) == LZMA_OK);
  return run_liblzma(stream, plain);
}
inline Bytes liblzma_stream(ByteView plain, std::uint32_t preset = 6) {
  return liblzma_stream(plain, preset_options(preset));
}

// As xz -T and dpkg-deb: blocks of so many bytes, with sizes in their headers.
inline Bytes liblzma_blocks(ByteView plain, std::uint32_t preset, std::uint64_t block_bytes) {
  lzma_mt options{};
  options.threads = 1;
  options.block_size = block_bytes;
  options.preset = preset;
  options.check = LZMA_CHECK_CRC32;
  lzma_stream stream = LZMA_STREAM_INIT;
  REQUIRE(::lzma_stream_encoder_mt(&stream, &options) == LZMA_OK);
  return run_liblzma(stream, plain);
}

inline Result<Opened> open_streams(const Bytes& file, const ContainerLimits& limits = {}) {
  return open_with(file, [&](PeekSource& in) { return formats::xz::Member(in, limits); });
}

inline Result<Bytes> rebuild_streams(const Bytes& plain, const Bytes& corrections) {
  return rebuild_with(plain, corrections, [](auto content, auto records) {
    return formats::xz::rebuild(std::move(content), std::move(records));
  });
}

inline std::vector<formats::xz::Record> records_of(const Bytes& corrections) {
  REQUIRE(!corrections.empty());
  REQUIRE(corrections[0] == formats::xz::kVersion);
  MemorySource source(Bytes(corrections.begin() + 1, corrections.end()));
  PeekSource in(source);
  std::vector<formats::xz::Record> out;
  do out.push_back(value_of(formats::xz::read_record(in)));
  while (out.back().kind != formats::xz::Record::Kind::end);
  return out;
}

// Opened and rebuilt. Gives the settings of the blocks that have others than the one before.
inline std::vector<formats::xz::Settings> check_comes_back(const Bytes& file, const Bytes& plain) {
  const Opened opened = value_of(open_streams(file));
  REQUIRE((opened.plain == plain));
  REQUIRE(opened.encoded_bytes == file.size());
  REQUIRE((value_of(rebuild_streams(opened.plain, opened.corrections)) == file));
  std::vector<formats::xz::Settings> out;
  for (const formats::xz::Record& record : records_of(opened.corrections))
    if (record.kind == formats::xz::Record::Kind::new_block) out.push_back(record.settings);
  return out;
}

}  // namespace kin::testing

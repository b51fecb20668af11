// .xz files, opened and rebuilt, beside liblzma:  xz_bench FILE...
//
// For each file: its size, what it unpacks to, corrections, the settings that were found, and MB/s of plain
// bytes for opening, rebuilding, and liblzma's decompression, and compression with the same settings.
#include "formats/xz/member.h"
#include "formats/xz/record.h"
#include "tests/support/stream_bench.h"

#include <fmt/core.h>
#include <lzma.h>

#include <optional>

using namespace kin;
using namespace kin::testing;

namespace {

Result<void> measure(const char* name) {
  const auto open = [](const Bytes& file) {
    return open_with(file, [](PeekSource& in) { return formats::xz::Member(in, {}); });
  };
  const auto rebuild = [](const Bytes& plain, const Bytes& corrections) {
    return rebuild_with(plain, corrections, [](auto content, auto records) {
      return formats::xz::rebuild(std::move(content), std::move(records));
    });
  };
  KIN_TRY_ASSIGN(MeasuredStream stream, measure_stream(name, open, rebuild));
  Bytes& plain = stream.plain;
  const Bytes& corrections = stream.corrections;

  std::optional<formats::xz::Settings> settings;
  std::size_t blocks = 0;
  MemorySource source(corrections);
  PeekSource records(source);
  (void)records.peek(1);
  records.skip(1);
  for (formats::xz::Record record;;) {
    KIN_TRY_ASSIGN(record, formats::xz::read_record(records));
    if (record.kind == formats::xz::Record::Kind::end) break;
    if (record.kind == formats::xz::Record::Kind::new_block) settings = record.settings;
    blocks += record.kind == formats::xz::Record::Kind::block_end;
  }
  if (!settings || settings->stored) return Error(ErrorCode::unsupported, "nothing is compressed in it");

  lzma_options_lzma options{};
  (void)::lzma_lzma_preset(&options, 6);
  options.dict_size = settings->dictionary_bytes;
  options.lc = settings->literal_context_bits;
  options.lp = settings->literal_position_bits;
  options.pb = settings->position_bits;
  options.mode = settings->optimal ? LZMA_MODE_NORMAL : LZMA_MODE_FAST;
  options.mf = static_cast<lzma_match_finder>(settings->finder);
  options.nice_len = settings->nice_length;
  options.depth = settings->depth;
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  Bytes packed(::lzma_stream_buffer_bound(plain.size())), unpacked(plain.size());
  lzma_ret packed_state = LZMA_OK, unpacked_state = LZMA_OK;
  std::size_t packed_size = 0, unpacked_size = 0, at = 0;
  const double pack_seconds = seconds_of([&] {
    packed_state = ::lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC64, nullptr, plain.data(), plain.size(),
                                               packed.data(), &packed_size, packed.size());
  });
  std::uint64_t memory = UINT64_MAX;
  const double unpack_seconds = seconds_of([&] {
    unpacked_state = ::lzma_stream_buffer_decode(&memory, 0, nullptr, packed.data(), &at, packed_size,
                                                 unpacked.data(), &unpacked_size, unpacked.size());
  });
  if (packed_state != LZMA_OK || unpacked_state != LZMA_OK) return Error(ErrorCode::io, "liblzma failed");
  fmt::print("{}: {} bytes ({} behind), {} plain, {} blocks, corrections {}\n", name, stream.file.size(),
             stream.file.size() - stream.encoded_bytes, plain.size(), blocks, corrections.size());
  fmt::print("    dictionary {}, {}, finder {:#x}, nice length {}, depth {}\n", settings->dictionary_bytes,
             settings->optimal ? "optimal" : "fast", static_cast<int>(settings->finder),
             settings->nice_length, settings->depth);
  fmt::print("    open {:.2f} MB/s, rebuild {:.2f} MB/s; liblzma: unpack {:.1f} MB/s, pack {:.2f} MB/s\n",
             stream.speed(stream.open_seconds), stream.speed(stream.rebuild_seconds),
             stream.speed(unpack_seconds), stream.speed(pack_seconds));
  return {};
}

}  // namespace

int main(int count, char** names) { return for_each_name(count, names, measure); }

// .xz files, opened and rebuilt, beside liblzma:  xz_bench FILE...
//
// For each file: its size, what it unpacks to, corrections, the settings that were found, and MB/s of plain
// bytes for opening, rebuilding, and liblzma's decompression, and compression with the same settings.
#include "formats/xz/member.h"
#include "formats/xz/record.h"
#include "lib/base/file.h"

#include <fmt/core.h>
#include <lzma.h>

#include <ctime>
#include <optional>

using namespace kin;

namespace {

// Of this process alone: others share the machine.
double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Result<void> open_all(const Bytes& file, Bytes& plain, Bytes& corrections) {
  MemorySource source(file);
  PeekSource in(source);
  formats::xz::Member member(in, {});
  Bytes buffer(256 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, member.read(buffer));
    append(plain, ByteView(buffer).first(got));
    append(corrections, member.take_corrections());
    if (got < buffer.size()) return {};
  }
}

Result<void> rebuild_all(const Bytes& plain, const Bytes& corrections, Bytes& file) {
  const auto source = formats::xz::rebuild(std::make_unique<MemorySource>(plain),
                                           std::make_unique<MemorySource>(corrections));
  Bytes buffer(256 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, source->read(buffer));
    append(file, ByteView(buffer).first(got));
    if (got < buffer.size()) return {};
  }
}

Result<void> measure(const char* name) {
  KIN_TRY_ASSIGN(const Bytes file, read_file(name, std::uint64_t{1} << 31));
  Bytes plain, corrections, back;
  Result<void> opened, rebuilt;
  const double open_seconds = seconds_of([&] { opened = open_all(file, plain, corrections); });
  KIN_TRY(std::move(opened));
  const double rebuild_seconds = seconds_of([&] { rebuilt = rebuild_all(plain, corrections, back); });
  KIN_TRY(std::move(rebuilt));
  if (!equal(ByteView(file).first(std::min(file.size(), back.size())), back))
    return Error(ErrorCode::corrupt, "other bytes came back");

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
  const auto speed = [&](double seconds) { return static_cast<double>(plain.size()) / 1e6 / seconds; };
  fmt::print("{}: {} bytes ({} behind), {} plain, {} blocks, corrections {}\n", name, file.size(),
             file.size() - back.size(), plain.size(), blocks, corrections.size());
  fmt::print("    dictionary {}, {}, finder {:#x}, nice length {}, depth {}\n", settings->dictionary_bytes,
             settings->optimal ? "optimal" : "fast", static_cast<int>(settings->finder),
             settings->nice_length, settings->depth);
  fmt::print("    open {:.2f} MB/s, rebuild {:.2f} MB/s; liblzma: unpack {:.1f} MB/s, pack {:.2f} MB/s\n",
             speed(open_seconds), speed(rebuild_seconds), speed(unpack_seconds), speed(pack_seconds));
  return {};
}

}  // namespace

int main(int count, char** names) {
  int failed = 0;
  for (int i = 1; i < count; ++i) {
    const auto done = measure(names[i]);
    if (done) continue;
    fmt::print("{}: {}\n", names[i], done.error().message());
    failed = 1;
  }
  return failed;
}

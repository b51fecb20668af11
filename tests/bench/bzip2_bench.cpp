// bzip2 files, opened and rebuilt, beside libbz2:  bzip2_bench FILE...
//
// For each file: its size, what it unpacks to, corrections in % of it, blocks that bzip2 would have written
// otherwise, and MB/s of plain bytes for opening, rebuilding, and libbz2's decompression and compression.
#include "formats/bzip2/member.h"
#include "formats/bzip2/record.h"
#include "tests/support/stream_bench.h"

#include <bzlib.h>
#include <fmt/core.h>

using namespace kin;
using namespace kin::testing;

namespace {

Result<void> measure(const char* name) {
  const auto open = [](const Bytes& file) {
    return open_with(file, [](PeekSource& in) { return formats::bzip2::Member(in); });
  };
  const auto rebuild = [](const Bytes& plain, const Bytes& corrections) {
    return rebuild_with(plain, corrections, [](auto content, auto records) {
      return formats::bzip2::rebuild(std::move(content), std::move(records));
    });
  };
  KIN_TRY_ASSIGN(MeasuredStream stream, measure_stream(name, open, rebuild));
  Bytes& plain = stream.plain;
  const Bytes& corrections = stream.corrections;

  std::size_t blocks = 0, others = 0;
  MemorySource source(corrections);
  PeekSource records(source);
  (void)records.peek(1);
  records.skip(1);
  for (formats::bzip2::Record record;;) {
    KIN_TRY_ASSIGN(record, formats::bzip2::read_record(records));
    if (record.kind == formats::bzip2::Record::Kind::end) break;
    blocks += record.kind == formats::bzip2::Record::Kind::block;
    others += !record.tables.empty();
  }

  Bytes packed(plain.size() + plain.size() / 100 + 600), unpacked(plain.size() + 1);
  auto packed_size = static_cast<unsigned>(packed.size()),
       unpacked_size = static_cast<unsigned>(unpacked.size());
  const double pack_seconds = seconds_of([&] {
    (void)::BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(packed.data()), &packed_size,
                                     reinterpret_cast<char*>(plain.data()),
                                     static_cast<unsigned>(plain.size()), 9, 0, 0);
  });
  const double unpack_seconds = seconds_of([&] {
    (void)::BZ2_bzBuffToBuffDecompress(reinterpret_cast<char*>(unpacked.data()), &unpacked_size,
                                       reinterpret_cast<char*>(packed.data()), packed_size, 0, 0);
  });
  fmt::print(
      "{}: {} bytes ({} behind), {} plain, {} blocks, {} with other tables, corrections {} ({:.3f} %)\n",
      name, stream.file.size(), stream.file.size() - stream.encoded_bytes, plain.size(), blocks, others,
      corrections.size(),
      100.0 * static_cast<double>(corrections.size()) / static_cast<double>(stream.file.size()));
  fmt::print("    open {:.1f} MB/s, rebuild {:.1f} MB/s; libbz2: unpack {:.1f} MB/s, pack {:.1f} MB/s\n",
             stream.speed(stream.open_seconds), stream.speed(stream.rebuild_seconds),
             stream.speed(unpack_seconds), stream.speed(pack_seconds));
  return {};
}

}  // namespace

int main(int count, char** names) { return for_each_name(count, names, measure); }

// bzip2 files, opened and rebuilt, beside libbz2:  bzip2_bench FILE...
//
// For each file: its size, what it unpacks to, corrections in % of it, blocks that bzip2 would have written
// otherwise, and MB/s of plain bytes for opening, rebuilding, and libbz2's decompression and compression.
#include "formats/bzip2/member.h"
#include "formats/bzip2/record.h"
#include "lib/base/file.h"

#include <bzlib.h>
#include <fmt/core.h>

#include <ctime>

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
  formats::bzip2::Member member(in);
  Bytes buffer(256 << 10);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t got, member.read(buffer));
    append(plain, ByteView(buffer).first(got));
    append(corrections, member.take_corrections());
    if (got < buffer.size()) return {};
  }
}

Result<void> rebuild_all(const Bytes& plain, const Bytes& corrections, Bytes& file) {
  const auto source = formats::bzip2::rebuild(std::make_unique<MemorySource>(plain),
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
  const auto speed = [&](double seconds) { return static_cast<double>(plain.size()) / 1e6 / seconds; };
  fmt::print(
      "{}: {} bytes ({} behind), {} plain, {} blocks, {} with other tables, corrections {} ({:.3f} %)\n",
      name, file.size(), file.size() - back.size(), plain.size(), blocks, others, corrections.size(),
      100.0 * static_cast<double>(corrections.size()) / static_cast<double>(file.size()));
  fmt::print("    open {:.1f} MB/s, rebuild {:.1f} MB/s; libbz2: unpack {:.1f} MB/s, pack {:.1f} MB/s\n",
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

#include "formats/bzip2/member.h"

#include "formats/bzip2/block_bits.h"
#include "formats/bzip2/crc.h"
#include "formats/bzip2/frame.h"
#include "formats/bzip2/record.h"
#include "formats/bzip2/rotations.h"
#include "formats/bzip2/symbols.h"
#include "formats/bzip2/tables.h"

#include <algorithm>

namespace kin::formats::bzip2 {
namespace {

// Corrections may take a quarter of what they are for, and this.
constexpr std::uint64_t kAlwaysCorrections = 1024;

Error no_stream(const char* why) { return Error(ErrorCode::corrupt, std::string("bzip2: ") + why); }
Error unlike_bzip2(const char* what) {
  return Error(ErrorCode::unsupported, std::string("bzip2: not as any known encoder writes ") + what);
}

}  // namespace

bool is_stream_start(ByteView bytes) {
  if (bytes.size() < kStreamStartBytes || as_text(bytes.first(3)) != "BZh") return false;
  if (bytes[3] < '1' || bytes[3] > '9') return false;
  std::uint64_t magic = 0;
  for (const std::uint8_t byte : bytes.subspan(4, 6)) magic = magic << 8 | byte;
  return magic == kBlockMagic || magic == kEndMagic;
}

Member::Member(PeekSource& in)
    : in_(in), reader_([this](std::span<std::uint8_t> into) { return in_.read(into); }) {
  corrections_.u8(kVersion);
}

Result<std::size_t> Member::read(std::span<std::uint8_t> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t got = block_.read(into.subspan(done));
    done += got;
    if (done == into.size() || ended_) break;
    const auto opened = next();
    if (!reader_.failure()) return reader_.failure().error();  // not the stream's fault
    if (!opened) return opened.error();
  }
  return done;
}

Result<void> Member::next() {
  Record record;
  if (level_ == 0) {
    const ByteView start = reader_.ahead(kStreamStartBytes);
    if (is_stream_start(start)) {
      level_ = start[3] - std::size_t{'0'};
      stream_crc_ = 0;
      reader_.drop(32);
      write_stream_start(writer_, level_);
      record.kind = Record::Kind::stream;
      record.level = static_cast<std::uint8_t>(level_);
    } else {
      ended_ = true;
      in_.give_back(reader_.unread());
    }
    encode_record(corrections_, record);
    return {};
  }
  const std::uint64_t high = reader_.take(24);
  const std::uint64_t magic = high << 24 | reader_.take(24);
  if (magic == kBlockMagic) return open_block();
  if (magic == kEndMagic) return end_stream();
  return no_stream("neither a block nor the end");
}

Result<void> Member::open_block() {
  KIN_TRY_ASSIGN(const BlockContent read, read_block(reader_));
  KIN_TRY_ASSIGN(const Bytes last_column, undo_symbols(read.symbols, level_ * kLevelBytes));
  if (read.origin >= last_column.size()) return no_stream("a row that is not there");
  block_ = RunExpander(join_rotations(last_column, read.origin));

  Record record;
  record.kind = Record::Kind::block;
  record.long_runs = has_long_runs(block_.block());
  Crc crc;
  Bytes buffer(64 << 10);
  RunEncoder runs(record.long_runs ? kLongRun : kUsualRun);
  for (bool more = true; more;) {
    const ByteView plain = ByteView(buffer).first(block_.read(buffer));
    more = plain.size() == buffer.size();
    crc.add(plain);
    record.plain_bytes += plain.size();
    runs.add(plain);
  }
  if (crc.value() != read.crc) return no_stream("a block with a wrong checksum");
  const Bytes block = runs.finish();
  if (block != block_.block()) return unlike_bzip2("runs");
  block_.restart();

  // From here on as rebuild() does, with what was read to compare with.
  const Rotations rotations = sort_rotations(block);
  BlockContent content;
  content.crc = crc.value();
  content.symbols = make_symbols(rotations.last_column);
  if (read.origin != rotations.origin) record.origin = read.origin;
  content.origin = read.origin;
  content.tables = choose_tables(content.symbols);
  if (content.tables != read.tables) {
    if (read.tables.selectors.size() < content.symbols.groups()) return unlike_bzip2("selectors");
    record.tables = encode_tables(read.tables, content.symbols);
    KIN_TRY_ASSIGN(content.tables, decode_tables(record.tables, content.symbols));
  }
  write_magic(writer_, kBlockMagic);
  write_block(writer_, content);
  KIN_TRY(compare());
  stream_crc_ = combine_crc(stream_crc_, content.crc);
  const std::size_t before = corrections_.size();
  encode_record(corrections_, record);
  corrections_bytes_ += corrections_.size() - before;
  if (corrections_bytes_ > encoded_bytes_ / 4 + kAlwaysCorrections) return unlike_bzip2("tables");
  return {};
}

Result<void> Member::end_stream() {
  if (reader_.take(32) != stream_crc_) return no_stream("a stream with a wrong checksum");
  reader_.to_byte_boundary();
  write_stream_end(writer_, stream_crc_);
  KIN_TRY(compare());
  Record record;
  record.kind = Record::Kind::stream_end;
  encode_record(corrections_, record);
  level_ = 0;
  return {};
}

// What was written, to the last bit, with what was read.
Result<void> Member::compare() {
  const Bytes written = writer_.take();
  const std::uint64_t bits = std::uint64_t{8} * written.size() + writer_.left_bits();
  if (reader_.overrun()) return no_stream("cut off");
  const ByteView kept = reader_.kept();
  if (bits != reader_.position() || !equal(kept.first(written.size()), written))
    return unlike_bzip2("blocks");
  if (writer_.left_bits() > 0 && kept[written.size()] >> (8 - writer_.left_bits()) != writer_.left())
    return unlike_bzip2("blocks");
  encoded_bytes_ += written.size();
  reader_.forget(written.size());
  return {};
}

}  // namespace kin::formats::bzip2

#include "formats/bzip2/record.h"

#include "formats/bzip2/length_bits.h"
#include "formats/bzip2/runs.h"
#include "formats/bzip2/tables.h"

#include <algorithm>

namespace kin::formats::bzip2 {
namespace {

enum BlockFlag : std::uint8_t { long_runs = 1, has_origin = 2, has_tables = 4 };

// A kind, and up to three numbers of up to ten bytes.
constexpr std::size_t kMostRecordHead = 31;
// All code lengths as steps, and three bytes for each selector.
constexpr std::uint64_t kMostTablesBytes = 128 << 10;
constexpr std::uint32_t kSelectorBits = 3;

Error bad_record() { return Error(ErrorCode::corrupt, "the corrections of a bzip2 stream are damaged"); }

// What is expected of a group: the cheapest, and behind the last group the same again.
std::vector<std::uint8_t> expected_selectors(const Tables& tables, const Symbols& symbols,
                                             std::size_t count) {
  std::vector<std::uint8_t> out = cheapest_selectors(tables, symbols);
  out.resize(count, out.back());
  return out;
}

}  // namespace

void encode_record(WireWriter& out, const Record& record) {
  auto kind = static_cast<std::uint8_t>(record.kind);
  if (record.kind == Record::Kind::block) {
    if (record.long_runs) kind |= long_runs;
    if (record.origin) kind |= has_origin;
    if (!record.tables.empty()) kind |= has_tables;
  }
  out.u8(kind);
  if (record.kind == Record::Kind::stream) out.u8(record.level);
  if (record.kind != Record::Kind::block) return;
  out.varint(record.plain_bytes);
  if (record.origin) out.varint(*record.origin);
  if (!record.tables.empty()) out.blob(record.tables);
}

Result<Record> read_record(PeekSource& in) {
  KIN_TRY_ASSIGN(const ByteView head, in.peek(kMostRecordHead));
  WireReader reader(head);
  const std::uint8_t kind = reader.u8();
  Record out;
  std::uint64_t tables = 0;
  if ((kind & ~(long_runs | has_origin | has_tables)) == static_cast<std::uint8_t>(Record::Kind::block)) {
    out.kind = Record::Kind::block;
    out.long_runs = (kind & long_runs) != 0;
    out.plain_bytes = reader.varint_up_to(kMostPlainBytes);
    if (out.plain_bytes == 0) reader.fail();
    if ((kind & has_origin) != 0)
      out.origin = static_cast<std::uint32_t>(reader.varint_up_to(kMostBlockBytes - 1));
    if ((kind & has_tables) != 0) tables = reader.varint_up_to(kMostTablesBytes);
  } else if (kind <= static_cast<std::uint8_t>(Record::Kind::stream_end)) {
    out.kind = static_cast<Record::Kind>(kind);
    if (out.kind == Record::Kind::stream) out.level = reader.u8();
    if (out.kind == Record::Kind::stream && (out.level < 1 || out.level > 9)) reader.fail();
  } else {
    reader.fail();
  }
  if (reader.failed()) return bad_record();
  in.skip(reader.position());
  if (tables > 0) {
    KIN_TRY_ASSIGN(const ByteView bytes, in.peek(tables));
    if (bytes.size() < tables) return bad_record();
    out.tables.assign(bytes.begin(), bytes.end());
    in.skip(tables);
  }
  return out;
}

Bytes encode_tables(const Tables& tables, const Symbols& symbols) {
  WireWriter out;
  out.u8(static_cast<std::uint8_t>(tables.count));
  out.varint(tables.selectors.size());
  BitWriter bits;
  for (std::size_t table = 0; table < tables.count; ++table)
    write_lengths(bits, tables.lengths[table], symbols.alphabet);
  bits.to_byte_boundary();
  out.raw(bits.take());
  const std::vector<std::uint8_t> expected = expected_selectors(tables, symbols, tables.selectors.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == tables.selectors[i]) continue;
    out.varint((i - next) << kSelectorBits | tables.selectors[i]);
    next = i + 1;
  }
  return out.take();
}

Result<Tables> decode_tables(ByteView bytes, const Symbols& symbols) {
  WireReader head(bytes);
  Tables out;
  out.count = head.u8();
  const std::uint64_t selectors = head.varint_up_to(kMostSelectors);
  if (head.failed() || out.count < 2 || out.count > kMostTables || selectors < symbols.groups())
    return bad_record();
  ByteView rest = bytes.subspan(head.position());
  BitReader bits([rest](std::span<std::uint8_t> into) mutable -> Result<std::size_t> {
    const std::size_t size = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), size, into.begin());
    rest = rest.subspan(size);
    return size;
  });
  for (std::size_t table = 0; table < out.count; ++table)
    if (!read_lengths(bits, out.lengths[table], symbols.alphabet)) return bad_record();
  bits.to_byte_boundary();

  out.selectors = expected_selectors(out, symbols, selectors);
  WireReader others(rest.subspan(bits.position() / 8));
  for (std::uint64_t next = 0; others.left() > 0; ++next) {
    const std::uint64_t word = others.varint();
    next += std::min<std::uint64_t>(word >> kSelectorBits, kMostSelectors);
    const auto selector = static_cast<std::uint8_t>(word & ((1U << kSelectorBits) - 1));
    if (others.failed() || next >= selectors || selector >= out.count) return bad_record();
    out.selectors[next] = selector;
  }
  return out;
}

}  // namespace kin::formats::bzip2

#include "formats/xz/record.h"

#include "formats/xz/chunk_header.h"
#include "formats/xz/frame.h"
#include "formats/xz/limits.h"

namespace kin::formats::xz {
namespace {

// How a block's settings begin.
constexpr std::uint8_t kStored = 0, kFast = 1, kOptimal = 2;

// A kind, settings, and the length of a header.
constexpr std::size_t kMostRecordHead = 64;
constexpr std::uint64_t kMostPieceBytes = std::uint64_t{1} << 40;

Error bad_record() { return Error(ErrorCode::corrupt, "the corrections of an xz stream are damaged"); }

bool has_header(Record::Kind kind) { return kind == Record::Kind::block || kind == Record::Kind::new_block; }

void encode_settings(WireWriter& out, const Settings& settings) {
  out.u8(settings.stored ? kStored : settings.optimal ? kOptimal : kFast);
  if (settings.stored) return;
  out.varint(settings.dictionary_bytes);
  out.u8(properties_byte(settings));
  out.u8(static_cast<std::uint8_t>(settings.finder));
  out.varint(settings.nice_length);
  out.varint(settings.depth);
}

Settings read_settings(WireReader& in) {
  Settings out;
  const std::uint8_t form = in.u8();
  if (form > kOptimal) in.fail();
  out.stored = form == kStored;
  out.optimal = form == kOptimal;
  if (out.stored) return out;
  out.dictionary_bytes = static_cast<std::uint32_t>(in.varint_up_to(kMostDictionary));
  if (out.dictionary_bytes < kLeastDictionary) in.fail();
  const auto properties = parse_properties(in.u8());
  if (properties) {
    out.literal_context_bits = properties->literal_context_bits;
    out.literal_position_bits = properties->literal_position_bits;
    out.position_bits = properties->position_bits;
  } else {
    in.fail();
  }
  const std::uint8_t finder = in.u8();
  bool known = false;
  for (const Finder one :
       {Finder::chain_3, Finder::chain_4, Finder::tree_2, Finder::tree_3, Finder::tree_4}) {
    if (finder != static_cast<std::uint8_t>(one)) continue;
    out.finder = one;
    known = true;
  }
  out.nice_length = static_cast<std::uint32_t>(in.varint_up_to(kLongestMatch));
  out.depth = static_cast<std::uint32_t>(in.varint_up_to(kMostDepth));
  if (!known || out.nice_length < kShortestMatch || out.depth == 0) in.fail();
  return out;
}

}  // namespace

void encode_record(WireWriter& out, const Record& record) {
  out.u8(static_cast<std::uint8_t>(record.kind));
  if (record.kind == Record::Kind::stream) out.u8(static_cast<std::uint8_t>(record.check));
  if (record.kind == Record::Kind::padding || record.kind == Record::Kind::piece) out.varint(record.count);
  if (record.kind == Record::Kind::new_block) encode_settings(out, record.settings);
  if (has_header(record.kind)) out.blob(record.header);
}

Result<Record> read_record(PeekSource& in) {
  KIN_TRY_ASSIGN(const ByteView head, in.peek(kMostRecordHead));
  WireReader reader(head);
  Record out;
  const std::uint8_t kind = reader.u8();
  if (kind > static_cast<std::uint8_t>(Record::Kind::block_end)) return bad_record();
  out.kind = static_cast<Record::Kind>(kind);
  if (out.kind == Record::Kind::stream) {
    const auto check = parse_check(reader.u8());
    if (!check) return bad_record();
    out.check = *check;
  }
  if (out.kind == Record::Kind::padding) out.count = reader.varint_up_to(kMostPaddingBytes / 4);
  if (out.kind == Record::Kind::piece) out.count = reader.varint_up_to(kMostPieceBytes);
  if (out.kind == Record::Kind::new_block) out.settings = read_settings(reader);
  const std::uint64_t header = has_header(out.kind) ? reader.varint_up_to(kMostBlockHeader) : 0;
  if (reader.failed()) return bad_record();
  in.skip(reader.position());
  if (!has_header(out.kind)) return out;
  KIN_TRY_ASSIGN(const ByteView bytes, in.peek(header));
  // Its first byte says how long it is, and everything is in words of four bytes.
  if (bytes.size() < header || header == 0 || header != block_header_bytes(bytes[0])) return bad_record();
  out.header.assign(bytes.begin(), bytes.end());
  in.skip(header);
  return out;
}

}  // namespace kin::formats::xz

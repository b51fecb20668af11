// Records: what a rebuilt bzip2 stream needs besides its plain bytes. docs/format.md has the bytes.
//
// Where a block ends is recorded for each, in three bytes: encoders differ in it, and bzip2 itself does, by
// how its library is called. Everything else is as bzip2 would have it, unless a record says otherwise.
#pragma once

#include "formats/bzip2/block.h"
#include "lib/base/wire.h"
#include "lib/container/peek_source.h"

#include <cstdint>
#include <optional>

namespace kin::formats::bzip2 {

// Changes with anything that makes the same bytes mean another stream.
inline constexpr std::uint8_t kVersion = 1;

struct Record {
  enum class Kind : std::uint8_t { end = 0, stream = 1, stream_end = 2, block = 8 };

  Kind kind = Kind::end;
  // A stream:
  std::uint8_t level = 0;
  // A block:
  std::uint64_t plain_bytes = 0;
  bool long_runs = false;               // of up to kLongRun, not kUsualRun
  std::optional<std::uint32_t> origin;  // if it is not the last row that it can be
  Bytes tables;                         // if they are not those that bzip2 chooses: encode_tables()
};

void encode_record(WireWriter& out, const Record& record);
// corrupt: none.
Result<Record> read_record(PeekSource& in);

// Tables for these symbols. Of the selectors, only those that are not the cheapest take room.
Bytes encode_tables(const Tables& tables, const Symbols& symbols);
Result<Tables> decode_tables(ByteView bytes, const Symbols& symbols);

}  // namespace kin::formats::bzip2

// Records: what rebuilt .xz streams need besides their plain bytes. docs/format.md has the bytes.
//
// A block's header is kept as it is: it may have sizes in it that are known only behind the block. Everything
// else follows from the plain bytes and the settings. The plain bytes of a block come in pieces, since where
// it ends is not known when it begins.
#pragma once

#include "formats/xz/content_check.h"
#include "formats/xz/lzma.h"
#include "lib/base/wire.h"
#include "lib/container/peek_source.h"

#include <cstdint>
#include <optional>

namespace kin::formats::xz {

// Changes with anything that makes the same bytes mean another stream.
inline constexpr std::uint8_t kVersion = 1;

struct Record {
  enum class Kind : std::uint8_t {
    end = 0,
    stream = 1,
    stream_end = 2,
    padding = 3,
    block = 4,      // with the settings of the one before
    new_block = 5,  // with its own
    piece = 6,
    block_end = 7,
  };

  Kind kind = Kind::end;
  CheckId check = CheckId::none;  // of a stream
  std::uint64_t count = 0;        // of zero bytes, in fours; of a piece's plain bytes
  Settings settings;              // of a new block
  Bytes header;                   // of a block
};

void encode_record(WireWriter& out, const Record& record);
// corrupt: none.
Result<Record> read_record(PeekSource& in);

}  // namespace kin::formats::xz

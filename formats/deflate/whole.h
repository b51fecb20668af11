// Opener and Rebuilder for streams that are in memory.
#pragma once

#include "formats/deflate/opener.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"

#include <cstddef>

namespace kin::formats::deflate {

struct Opened {
  Bytes plain;
  Bytes reconstruction;              // all pieces'
  std::size_t compressed_bytes = 0;  // of the input that were the stream; the rest follows it
};

// Errors as Opener's.
Result<Opened> open_stream(ByteView input, const OpenLimits& limits = {});
// Errors as Rebuilder's.
Result<Bytes> rebuild_stream(ByteView plain, ByteView reconstruction);

}  // namespace kin::formats::deflate

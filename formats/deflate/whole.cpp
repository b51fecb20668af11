#include "formats/deflate/whole.h"

#include "formats/deflate/rebuilder.h"
#include "lib/base/wire.h"

#include <algorithm>

namespace kin::formats::deflate {

Result<Opened> open_stream(ByteView input, const OpenLimits& limits) {
  const auto read = [rest = input](std::span<std::uint8_t> into) mutable -> Result<std::size_t> {
    const std::size_t size = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), size, into.begin());
    rest = rest.subspan(size);
    return size;
  };
  Opened out;
  WireWriter pieces;
  Opener opener(read, limits);
  for (;;) {
    KIN_TRY_ASSIGN(const std::optional<Piece> piece, opener.next());
    if (!piece) break;
    append(out.plain, piece->plain);
    pieces.varint(piece->plain.size());
    pieces.blob(piece->reconstruction);
  }
  out.reconstruction = pieces.take();
  out.compressed_bytes = opener.compressed_bytes();
  return out;
}

Result<Bytes> rebuild_stream(ByteView plain, ByteView reconstruction) {
  Bytes out;
  Rebuilder rebuilder;
  WireReader in(reconstruction);
  while (in.left() > 0 && !in.failed()) {
    const std::uint64_t size = in.varint();
    const ByteView piece = in.blob();
    if (in.failed() || size > plain.size())
      return Error(ErrorCode::corrupt, "deflate: the reconstruction does not fit the plain bytes");
    KIN_TRY_ASSIGN(const Bytes bytes, rebuilder.add(plain.first(size), piece));
    plain = plain.subspan(size);
    append(out, bytes);
  }
  KIN_TRY(in.finish("deflate reconstruction"));
  if (!rebuilder.finished() || !plain.empty())
    return Error(ErrorCode::corrupt, "deflate: the reconstruction does not fit the plain bytes");
  return out;
}

}  // namespace kin::formats::deflate

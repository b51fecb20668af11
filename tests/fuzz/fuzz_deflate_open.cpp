// Deflate streams from hostile bytes: what opens comes back exactly.
#include "formats/deflate/whole.h"
#include "lib/base/check.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  kin::formats::deflate::OpenLimits limits;
  limits.most_plain = 1 << 20;
  limits.most_percent = 1000;  // also what would not be worth it
  limits.piece_bytes = 4096;
  const auto opened = kin::formats::deflate::open_stream(input, limits);
  if (!opened) return 0;
  KIN_CHECK(opened->compressed_bytes <= size);
  KIN_CHECK(opened->plain.size() <= limits.most_plain);
  const auto rebuilt = kin::formats::deflate::rebuild_stream(opened->plain, opened->reconstruction);
  KIN_CHECK(rebuilt.has_value());
  KIN_CHECK(kin::equal(*rebuilt, input.first(opened->compressed_bytes)));
  return 0;
}

// Reconstructions from hostile bytes: the first byte says how many of the rest are the plain ones. What comes
// out is bounded.
#include "formats/deflate/rebuilder.h"
#include "lib/base/check.h"

#include <algorithm>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const kin::ByteView input(data + 1, size - 1);
  const std::size_t half = std::min<std::size_t>(input.size(), std::size_t{data[0]} * 4);
  kin::formats::deflate::Rebuilder rebuilder;
  for (int piece = 0; piece < 2; ++piece) {
    const auto bytes = rebuilder.add(input.first(half), input.subspan(half));
    if (!bytes) return 0;
    KIN_CHECK(bytes->size() <= 65536 * 512 + 8 * half);
    if (rebuilder.finished()) return 0;
  }
  return 0;
}

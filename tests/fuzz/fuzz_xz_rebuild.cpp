// Corrections of .xz streams from hostile bytes: the first byte says how many of the rest are the plain ones,
// the second how many times they come, each time a little different: so there are several chunks, the links
// of a small dictionary wrap around, and its window drops bytes. What comes out is bounded.
#include "formats/xz/member.h"
#include "lib/base/check.h"

#include <algorithm>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const kin::ByteView input(data + 2, size - 2);
  const std::size_t half = std::min<std::size_t>(input.size(), std::size_t{data[0]} * 16);
  const auto corrections = input.subspan(half);
  kin::Bytes plain;
  for (unsigned time = 0; time <= data[1] % 64U; ++time)
    for (std::size_t at = 0; at < half; ++at)
      plain.push_back(static_cast<std::uint8_t>(input[at] ^ (time * at >> 4)));
  const auto source = kin::formats::xz::rebuild(
      std::make_unique<kin::MemorySource>(plain),
      std::make_unique<kin::MemorySource>(kin::Bytes(corrections.begin(), corrections.end())));
  kin::Bytes buffer(64 << 10);
  std::uint64_t total = 0;
  for (;;) {
    const auto got = source->read(buffer);
    if (!got) return 0;
    total += *got;
    // Four bytes of padding take three here, or up to 64 KiB of them four; a stream without blocks takes
    // three.
    KIN_CHECK(total <= (std::uint64_t{32} << 10) * size + 2 * plain.size() + 64);
    if (*got < buffer.size()) return 0;
  }
}

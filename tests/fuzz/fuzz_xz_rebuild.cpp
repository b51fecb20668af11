// Corrections of .xz streams from hostile bytes: the first byte says how many of the rest are the plain ones.
// What comes out is bounded.
#include "formats/xz/member.h"
#include "lib/base/check.h"

#include <algorithm>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const kin::ByteView input(data + 1, size - 1);
  const std::size_t half = std::min<std::size_t>(input.size(), std::size_t{data[0]} * 4);
  const auto plain = input.first(half), corrections = input.subspan(half);
  const auto source = kin::formats::xz::rebuild(
      std::make_unique<kin::MemorySource>(kin::Bytes(plain.begin(), plain.end())),
      std::make_unique<kin::MemorySource>(kin::Bytes(corrections.begin(), corrections.end())));
  kin::Bytes buffer(64 << 10);
  std::uint64_t total = 0;
  for (;;) {
    const auto got = source->read(buffer);
    if (!got) return 0;
    total += *got;
    // Four bytes of padding take three here, or up to 64 KiB of them four; a stream without blocks takes
    // three.
    KIN_CHECK(total <= (std::uint64_t{32} << 10) * size + 64);
    if (*got < buffer.size()) return 0;
  }
}

// VCDIFF from hostile bytes, as a payload of a repository and as a file for kin patch. The first bytes are
// which of the two (and whether it comes in small pieces), the size that is asked for, and the length of a
// base that precedes the delta.
#include "lib/base/check.h"
#include "lib/delta/codec.h"
#include "lib/delta/vcdiff.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::size_t wanted = data[1] | data[2] << 8;
  const kin::ByteView rest = kin::ByteView(data, size).subspan(4);
  const kin::ByteView base = rest.first(std::min<std::size_t>(data[3], rest.size()));
  kin::ByteView delta = rest.subspan(base.size());
  if ((data[0] & 1) == 0) {
    static const auto codec = kin::find_codec(static_cast<std::uint8_t>(kin::CodecId::xdelta3))->make(0);
    const auto decoded = codec->decode(base, delta, wanted);
    if (decoded) KIN_CHECK(decoded->size() == wanted);
    return 0;
  }
  kin::MemoryVcdiffBaseView view(base);
  kin::VcdiffLimits limits;
  limits.target_bytes = wanted;
  std::size_t written = 0;
  const auto target = kin::decode_vcdiff(
      view,
      [&, piece_bytes = std::size_t{(data[0] & 2) != 0 ? 7u : 1u << 20}]() -> kin::Result<kin::ByteView> {
        const kin::ByteView piece = delta.first(std::min(delta.size(), piece_bytes));
        delta = delta.subspan(piece.size());
        return piece;
      },
      [&](kin::ByteView bytes) -> kin::Result<void> {
        // Touches each byte, for the address sanitizer.
        std::uint8_t sum = 0;
        for (const std::uint8_t byte : bytes) sum = static_cast<std::uint8_t>(sum + byte);
        [[maybe_unused]] static volatile std::uint8_t sink;
        sink = sum;
        written += bytes.size();
        return {};
      },
      limits);
  KIN_CHECK(written <= wanted);
  if (target) KIN_CHECK(target->bytes == written);
  return 0;
}

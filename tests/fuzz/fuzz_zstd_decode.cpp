// Payloads from hostile bytes, for every codec. The first bytes are the codec, the size that is asked for,
// and the length of a base that precedes the payload.
#include "lib/base/check.h"
#include "lib/delta/codec.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::size_t wanted = data[1] | data[2] << 8;
  const kin::CodecEntry* const entry = kin::find_codec(data[0]);
  if (entry == nullptr) return 0;
  const kin::ByteView rest = kin::ByteView(data, size).subspan(4);
  const kin::ByteView base = rest.first(std::min<std::size_t>(data[3], rest.size()));
  const auto decoded = entry->make(0)->decode(base, rest.subspan(base.size()), wanted);
  if (decoded) KIN_CHECK(decoded->size() == wanted);
  return 0;
}

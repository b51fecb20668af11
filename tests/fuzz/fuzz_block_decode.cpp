// A block's header and payload from hostile bytes, with a base. The first two bytes are the header's length.
#include "lib/base/check.h"
#include "lib/delta/block.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const kin::ByteView rest = kin::ByteView(data, size).subspan(2);
  const std::size_t header_size = std::min<std::size_t>(data[0] | data[1] << 8, rest.size());
  const auto header = kin::decode_block_header(rest.first(header_size));
  // What a header may claim is bounded, but 64 MiB for each input would make a slow fuzzer.
  if (!header || header->content_size > (1 << 20)) return 0;
  KIN_CHECK(kin::decode_block_header(kin::encode_block_header(*header)).has_value());
  static const kin::Bytes base = [] {
    kin::Bytes out(4096);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(i * i / 7);
    return out;
  }();
  const auto content = kin::BlockDecoder().decode(
      *header, header->base ? kin::ByteView(base) : kin::ByteView(), rest.subspan(header_size));
  if (content) KIN_CHECK(content->size() == header->content_size);
  return 0;
}

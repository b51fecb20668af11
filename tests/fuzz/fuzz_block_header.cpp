// Block headers from hostile bytes: one value has one encoding.
#include "lib/base/check.h"
#include "lib/delta/block.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  const auto header = kin::decode_block_header(input);
  if (!header) return 0;
  KIN_CHECK(kin::equal(kin::encode_block_header(*header), input));
  KIN_CHECK(header->content_size <= kin::kMostBlockBytes);
  std::uint64_t sum = 0;
  for (const kin::BlockObject& object : header->objects)
    sum += object.kind == kin::ObjectKind::group ? 0 : object.size;
  KIN_CHECK(sum == header->content_size);
  return 0;
}

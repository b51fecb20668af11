// Index segments from hostile bytes: what is accepted refers to nothing that it does not hold.
#include "lib/base/check.h"
#include "store/index_segment.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  const auto segment = kin::store::decode_index_segment(input);
  if (!segment) return 0;
  KIN_CHECK(kin::equal(kin::store::encode_index_segment(*segment), input));
  for (const kin::store::IndexBlock& block : segment->blocks) {
    KIN_CHECK(block.pack < segment->packs.size());
    const std::uint64_t pack_size = segment->packs[block.pack].size;
    KIN_CHECK(block.range.offset <= pack_size && block.range.size <= pack_size - block.range.offset);
  }
  for (std::size_t i = 0; i < segment->objects.size(); ++i) {
    KIN_CHECK(segment->objects[i].block < segment->blocks.size());
    KIN_CHECK(i == 0 || segment->objects[i - 1].id < segment->objects[i].id);
  }
  return 0;
}

// Parity headers from hostile bytes: what is accepted has one way to be written, and stripes that are there.
#include "lib/base/check.h"
#include "store/parity_header.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  const auto header = kin::store::decode_parity_header(input);
  if (!header) return 0;
  KIN_CHECK(kin::equal(kin::store::encode_parity_header(*header), input));
  const std::uint64_t last = header->data_sectors() - 1;
  KIN_CHECK(header->position_of(last) < header->positions);
  for (std::size_t layout = 0; layout < kin::store::kParityLayouts; ++layout) {
    const std::uint32_t stripe = header->stripe_of(layout, last);
    KIN_CHECK(stripe < header->stripes);
    for (std::uint32_t row = 0; row < header->rows[layout]; ++row)
      KIN_CHECK(header->parity_at(layout, stripe, row) < header->parity_sectors());
  }
  return 0;
}

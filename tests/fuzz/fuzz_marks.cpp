// Marks from hostile bytes: what is accepted has one way to be written.
#include "lib/base/check.h"
#include "store/marks.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  const auto marks = kin::store::decode_marks(input);
  if (!marks) return 0;
  const kin::Bytes again = kin::store::encode_marks(*marks);
  const auto same = kin::store::decode_marks(again);
  KIN_CHECK(same && *same == *marks);
  return 0;
}

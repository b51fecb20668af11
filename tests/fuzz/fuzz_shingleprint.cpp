// Hash files of simhash, from anywhere.
#include "lib/base/check.h"
#include "lib/similarity/shingleprint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView bytes(data, size);
  const auto print = kin::decode_shingleprint(bytes);
  if (!print) return 0;
  // What is taken is written the same, and compares with itself.
  KIN_CHECK(kin::equal(kin::encode_shingleprint(*print), bytes));
  KIN_CHECK(kin::shingle_matches(*print, *print) == print->features.size());
  return 0;
}

#include "lib/object/segmenter.h"

#include "lib/base/wire.h"

#include <algorithm>

namespace kin {

Segmenter::Segmenter(const Key& seed) {
  for (std::size_t i = 0; i < table_.size(); i += 4) {
    const std::uint8_t counter = static_cast<std::uint8_t>(i);
    const Digest words = keyed_hash(seed, ByteView(&counter, 1));
    WireReader reader(words);
    for (std::size_t j = 0; j < 4; ++j) table_[i + j] = reader.u64();
  }
}

std::size_t Segmenter::cut(ByteView bytes) const {
  const std::size_t most = std::min(bytes.size(), kMostBytes);
  std::uint64_t h = 0;
  for (std::size_t i = kLeastBytes - kWindowBytes; i < most; ++i) {
    h = (h << 2) + table_[bytes[i]];
    if (h >> 44 == 0 && i + 1 >= kLeastBytes) return i + 1;
  }
  return most;
}

}  // namespace kin

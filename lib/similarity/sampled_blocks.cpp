#include "lib/similarity/sampled_blocks.h"

#include "lib/base/hash.h"
#include "lib/base/wire.h"

#include <algorithm>
#include <array>

namespace kin {

Result<void> add_sampled_block(ContentReader& content, std::uint64_t offset, std::uint8_t side,
                               std::vector<std::uint64_t>& values) {
  std::array<std::uint8_t, kSampledBlockBytes + 1> block{};
  block[0] = side;
  KIN_TRY_ASSIGN(const std::size_t read, content.read_at(offset, std::span(block).subspan(1)));
  if (read == 0) return {};
  const Digest digest = hash(ByteView(block).first(read + 1));
  values.push_back(WireReader(digest).u64());
  return {};
}

void make_sampled_set(std::vector<std::uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::uint64_t sampling_distance(std::uint64_t bytes, std::uint64_t blocks) {
  const std::uint64_t sampled = blocks * kSampledBlockBytes;
  return bytes <= sampled || blocks < 2 ? 0 : (bytes - sampled) / (blocks - 1);
}

double sampled_similarity(const SharedValues& shared) {
  const std::size_t together = shared.query_values + shared.other_values - shared.distinct_shared;
  return together == 0 ? 0 : static_cast<double>(shared.distinct_shared) / static_cast<double>(together);
}

}  // namespace kin

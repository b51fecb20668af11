// epas: sampling from the head and from the tail at once.
//
// Half of the blocks lie at places counted from the start of the file, half at places counted from its end,
// all by the size rounded down to a multiple of T. What is inserted somewhere leaves the first kind alone
// before it and the second behind it. So each part of the file has a block of one kind that has not moved.
//
// The paper's own measure is not in the text that we have. Ours: an insertion makes at most one of the two
// kinds miss at any place; so half of the blocks in common are all that can be had, and count as 1.
#include "lib/similarity/sampled_blocks.h"

#include <algorithm>

namespace kin {
namespace {

constexpr std::uint64_t kEpasBlocksPerSide = kSampledBlocks / 2;

double epas_similarity(const SharedValues& shared) {
  const std::size_t fewer = std::min(shared.query_values, shared.other_values);
  return fewer == 0
             ? 0
             : std::min(1.0, 2 * static_cast<double>(shared.distinct_shared) / static_cast<double>(fewer));
}

class EpasDetector : public Detector {
 public:
  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    const std::uint64_t rounded = content.size() / kSamplingStepBytes * kSamplingStepBytes;
    const std::uint64_t step = kSampledBlockBytes + sampling_distance(rounded, kEpasBlocksPerSide);
    for (std::uint64_t i = 0; i < kEpasBlocksPerSide; ++i) {
      KIN_TRY(add_sampled_block(content, i * step, 0, out.values));
      const std::uint64_t from_end = i * step + kSampledBlockBytes;
      if (from_end <= content.size())
        KIN_TRY(add_sampled_block(content, content.size() - from_end, 1, out.values));
    }
    make_sampled_set(out.values);
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(epas_similarity);
  }
};

}  // namespace

std::unique_ptr<Detector> make_epas_detector() { return std::make_unique<EpasDetector>(); }

}  // namespace kin

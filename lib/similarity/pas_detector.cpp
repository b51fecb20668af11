// pas: position-aware sampling. Places that stay where they are while a file grows a little.
//
// As tsa, but distances are computed from the size rounded down to a multiple of T; and the last block is the
// end of the file, wherever that is. So what is appended moves nothing until a multiple of T is passed. What
// is inserted at the front moves all but the last block; epas mends that.
//
// In files below T all blocks lie side by side at the start.
#include "lib/similarity/sampled_blocks.h"

#include <algorithm>

namespace kin {
namespace {

class PasDetector : public Detector {
 public:
  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    const std::uint64_t rounded = content.size() / kSamplingStepBytes * kSamplingStepBytes;
    const std::uint64_t distance = sampling_distance(rounded, kSampledBlocks);
    for (std::uint64_t i = 0; i + 1 < kSampledBlocks; ++i)
      KIN_TRY(add_sampled_block(content, i * (kSampledBlockBytes + distance), 0, out.values));
    KIN_TRY(add_sampled_block(content, content.size() - std::min(content.size(), kSampledBlockBytes), 0,
                              out.values));
    make_sampled_set(out.values);
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(sampled_similarity);
  }
};

}  // namespace

std::unique_ptr<Detector> make_pas_detector() { return std::make_unique<PasDetector>(); }

}  // namespace kin

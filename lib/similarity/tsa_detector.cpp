// tsa: the traditional sampling algorithm, to which PAS is compared.
//
// N blocks at equal distances, from the start of the file to its end; two files are as similar as the sets of
// their blocks' hashes. Reading 16 KiB tells about a file of any size. But the distances follow from the
// size: once it changes by a few bytes, all blocks but the first move, and nothing is found any more.
#include "lib/similarity/sampled_blocks.h"

namespace kin {
namespace {

class TsaDetector : public Detector {
 public:
  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    const std::uint64_t distance = sampling_distance(content.size(), kSampledBlocks);
    for (std::uint64_t i = 0; i < kSampledBlocks; ++i)
      KIN_TRY(add_sampled_block(content, i * (kSampledBlockBytes + distance), 0, out.values));
    make_sampled_set(out.values);
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(sampled_similarity);
  }
};

}  // namespace

std::unique_ptr<Detector> make_tsa_detector() { return std::make_unique<TsaDetector>(); }

}  // namespace kin

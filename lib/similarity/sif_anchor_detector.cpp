// sif with anchors: the first of Manber's two ways to choose which substrings get a fingerprint.
//
// A fixed set of short strings, quite common but not too common, is looked for; wherever one begins, the 50
// bytes from there on get a fingerprint. Equal pieces have their anchors at equal places. The set is chosen
// from sample text by a rule (sif_anchors.h), and so suits text like the sample: English, here. It finds
// nothing in data without such letters, which is why hashing (sif_detector.cpp) is the way that needs no
// thought.
//
// The same measure, kinds, checksum and freedom from overlaps as there.
#include "lib/base/crc32.h"
#include "lib/similarity/sif_anchors.h"
#include "lib/similarity/sif_fingerprint.h"

namespace kin {
namespace {

class SifAnchorDetector : public Detector {
 public:
  SifAnchorDetector() : anchors_(usual_anchors()) {}

  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    std::uint64_t free_from = 0;
    constexpr std::size_t kOverlap = kSifBytes - 1;
    KIN_TRY(for_each_piece(content, kOverlap, [&](ByteView bytes, std::uint64_t offset) {
      if (offset == 0) out.kind = sif_kind(bytes);
      out.checksum = crc32(offset == 0 ? bytes : bytes.subspan(kOverlap), out.checksum);
      for (std::size_t at = 0; at + kSifBytes <= bytes.size(); ++at) {
        if (!anchors_.contains(AnchorSet::load(bytes.data() + at)) || offset + at < free_from) continue;
        const std::uint64_t fingerprint = SifPolynomial::of(bytes.data() + at);
        out.values.push_back(fingerprint & (SifPolynomial::kModulus - 1));
        free_from = offset + at + kSifBytes;
        at += kSifBytes - 1;
      }
    }));
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(sif_similarity);
  }

 private:
  const AnchorSet anchors_;
};

}  // namespace

std::unique_ptr<Detector> make_sif_anchor_detector() { return std::make_unique<SifAnchorDetector>(); }

}  // namespace kin

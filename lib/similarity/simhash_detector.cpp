// simhash: shingleprints as those of simhash(1), as a detector: the CRC-32 of all 8-byte substrings, and of
// these the 128 smallest (shingleprint.h). Similarity is simhash's own score.
//
// Eight bytes are few: what all files of a kind share, such as runs of blanks or a licence's words, fills the
// print. So it sees resemblance where a delta finds little.
#include "lib/similarity/shared_values_index.h"
#include "lib/similarity/shingleprint.h"

namespace kin {
namespace {

class SimhashDetector : public Detector {
 public:
  Result<Print> print(ContentReader& content, std::string_view) const override {
    // Its tables take as long to make as a small file to read.
    thread_local ShingleSampler sampler{ShingleOptions{}};
    auto read = for_each_piece(content, 0, [&](ByteView bytes, std::uint64_t) { sampler.add(bytes); });
    const Shingleprint shingles = sampler.finish();  // also what an error left
    KIN_TRY(std::move(read));
    Print out;
    out.file_bytes = content.size();
    out.values.assign(shingles.features.begin(), shingles.features.end());
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index([](const SharedValues& shared) {
      return shingle_score(shared.distinct_shared, shared.query_values, shared.other_values);
    });
  }
};

}  // namespace

std::unique_ptr<Detector> make_simhash_detector() { return std::make_unique<SimhashDetector>(); }

}  // namespace kin

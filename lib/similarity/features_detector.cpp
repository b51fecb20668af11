// features: kin's own way. Which file has most of this one's features? (Douglis and Iyengar, 2003)
//
// The print of a file is what a backup would keep of it: the sketch of each of its segments, up to 16
// features of 1 MiB or so (scanner.h). The file with the most matching features is the best guess at a base;
// similarity is the part of the file's own features that the other has. That is a measure of how much of the
// one is in the other, and not symmetric: a segment that was cut out of a large file has all its features
// there.
//
// Rejected: super-features, which join several features into one and find near-copies only (similarity.md).
#include "lib/similarity/detector.h"
#include "lib/similarity/scanner.h"
#include "lib/similarity/shared_values_index.h"

#include <algorithm>

namespace kin {
namespace {

double part_of_features(const SharedValues& shared) {
  return shared.query_values == 0
             ? 0
             : static_cast<double>(shared.distinct_shared) / static_cast<double>(shared.query_values);
}

class FeaturesDetector : public Detector {
 public:
  // Not a repository's key: what is found here goes nowhere.
  FeaturesDetector() : scanner_(Key{}) {}

  Result<Print> print(ContentReader& content, std::string_view) const override {
    Print out;
    out.file_bytes = content.size();
    Bytes buffer(
        static_cast<std::size_t>(std::clamp<std::uint64_t>(content.size() + 1, 4096, Scanner::kMostBytes)));
    std::size_t filled = 0;
    std::uint64_t offset = 0;
    for (bool ended = false;;) {
      if (!ended) {
        KIN_TRY_ASSIGN(const std::size_t read,
                       content.read_at(offset + filled, std::span(buffer).subspan(filled)));
        filled += read;
        ended = filled < buffer.size();
        if (!ended && buffer.size() < Scanner::kMostBytes) {  // it is longer than its size says
          buffer.resize(std::min(2 * buffer.size(), std::size_t{Scanner::kMostBytes}));
          continue;
        }
      }
      if (filled == 0) break;
      const ByteView bytes = ByteView(buffer).first(filled);
      Scanner::Segment segment;
      if (offset == 0 && ended && filled <= Scanner::kWholeBytes)
        segment = {filled, scanner_.sketch(bytes)};
      else
        segment = scanner_.segment(bytes);
      out.values.insert(out.values.end(), segment.sketch.begin(), segment.sketch.end());
      std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(segment.size),
                buffer.begin() + static_cast<std::ptrdiff_t>(filled), buffer.begin());
      filled -= segment.size;
      offset += segment.size;
    }
    // Each once: zeros have the same few features everywhere.
    std::sort(out.values.begin(), out.values.end());
    out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
    return out;
  }

  Result<std::unique_ptr<PrintIndex>> make_index(const MakeKeyStore&) const override {
    return make_shared_values_index(part_of_features);
  }

 private:
  const Scanner scanner_;
};

}  // namespace

std::unique_ptr<Detector> make_features_detector() { return std::make_unique<FeaturesDetector>(); }

}  // namespace kin

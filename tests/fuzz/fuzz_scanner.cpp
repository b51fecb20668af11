// Segments and sketches of any content.
#include "lib/base/check.h"
#include "lib/similarity/scanner.h"

#include <algorithm>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const kin::Scanner scanner(kin::Key{});
  const kin::ByteView content(data, size);
  const kin::Sketch sketch = scanner.sketch(content);
  KIN_CHECK(sketch.size() <= kin::Scanner::kDefaultFeatures);
  KIN_CHECK(size >= kin::Scanner::kWindowBytes || sketch.empty());
  for (const kin::Feature feature : sketch) {
    KIN_CHECK(feature >> kin::kFeatureBits == 0);
    KIN_CHECK(std::count(sketch.begin(), sketch.end(), feature) == 1);
  }
  // Repeated until it is long enough to be cut.
  if (size == 0) return 0;
  kin::Bytes large;
  while (large.size() < kin::Scanner::kLeastBytes + 4096) kin::append(large, content);
  const kin::Scanner::Segment segment = scanner.segment(large);
  KIN_CHECK(segment.size >= std::min(large.size(), kin::Scanner::kLeastBytes));
  KIN_CHECK(segment.size <= std::min(large.size(), kin::Scanner::kMostBytes));
  KIN_CHECK(segment.sketch == scanner.sketch(kin::ByteView(large).first(segment.size)));
  return 0;
}

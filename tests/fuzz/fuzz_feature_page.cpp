// Pages and shapes of feature runs, as a damaged cache has them: nothing outside of the page is read. The
// first byte is the width of the keys.
#include "lib/base/check.h"
#include "store/feature_page.h"
#include "store/feature_run.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kin::store;
  if (size == 0) return 0;
  const kin::ByteView input(data + 1, size - 1);
  if (const auto shape = FeatureRunShape::decode(input))
    KIN_CHECK(FeatureRunShape::decode(shape->encode()).has_value());
  const PageView page(input, data[0] % 6 + 1);
  if (page.is_damaged()) return 0;
  std::size_t count = 0;
  for (PageView::Cursor at(&page); !at.done(); at.next()) {
    static_cast<void>(page.find(at.key()));
    static_cast<void>(at.postings());
    ++count;
  }
  KIN_CHECK(count == page.size());
  return 0;
}

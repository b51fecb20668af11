#include "tests/support/edits.h"

#include <algorithm>
#include <cstddef>

namespace kin::testing {

Bytes edit(Bytes content, Random& random, int edits) {
  for (; edits > 0 && content.size() > 1000; --edits) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(content.size() - 500));
    const auto length = static_cast<std::ptrdiff_t>(1 + random.below(400));
    const auto begin = content.begin() + at;
    switch (random.below(5)) {
      case 0: {  // insert
        const Bytes added = text_like(random.next(), static_cast<std::size_t>(length));
        content.insert(begin, added.begin(), added.end());
        break;
      }
      case 1:  // delete
        content.erase(begin, begin + length);
        break;
      case 2: {  // move
        const Bytes moved(begin, begin + length);
        content.erase(begin, begin + length);
        const auto to = static_cast<std::ptrdiff_t>(random.below(content.size()));
        content.insert(content.begin() + to, moved.begin(), moved.end());
        break;
      }
      case 3: {  // duplicate
        const Bytes copy(begin, begin + length);
        content.insert(begin, copy.begin(), copy.end());
        break;
      }
      default: {  // scramble
        const Bytes noise = random_bytes(random.next(), static_cast<std::size_t>(length) / 8 + 1);
        std::copy(noise.begin(), noise.end(), begin);
      }
    }
  }
  return content;
}

}  // namespace kin::testing

#include "lib/engine/segmenter.h"

#include "tests/support/expect.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

using testing::value_of;

// The objects that content is cut into, and the most that was asked for at once.
struct Cut {
  std::vector<ObjectId> ids;
  std::size_t largest_read = 0;
};

Cut cut(Segmenter& segmenter, ByteView content, std::uint64_t limit) {
  Cut out;
  std::size_t at = 0;
  const std::uint64_t total = value_of(segmenter.run(
      [&](std::span<std::uint8_t> into) -> Result<std::size_t> {
        out.largest_read = std::max(out.largest_read, into.size());
        const std::size_t size = std::min(into.size(), content.size() - at);
        std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(at), size, into.begin());
        at += size;
        return size;
      },
      limit,
      [&](NewObject object) {
        out.ids.push_back(object.id);
        return true;
      }));
  CHECK(total == content.size());
  return out;
}

}  // namespace

TEST_CASE("content is cut alike whether its size is known or not", "[segmenter]") {
  const Bytes content = testing::text_like(1, 13 << 20);
  Segmenter kept(testing::any_store());  // with the buffer that the last one left
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'535}, std::size_t{65'536}, std::size_t{65'537},
        std::size_t{512} << 10, (std::size_t{512} << 10) + 1, std::size_t{1} << 20,
        (std::size_t{1} << 20) + 1, std::size_t{4} << 20, (std::size_t{4} << 20) + 1, content.size()}) {
    const ByteView part = ByteView(content).first(size);
    Segmenter knows(testing::any_store()), reads(testing::any_store());
    const Cut known = cut(knows, part, size);
    CHECK(cut(reads, part, UINT64_MAX).ids == known.ids);
    CHECK(cut(kept, part, UINT64_MAX).ids == known.ids);
  }
}

TEST_CASE("little content of unknown size takes little memory", "[segmenter]") {
  Segmenter segmenter(testing::any_store());
  CHECK(cut(segmenter, Bytes(700, 'x'), UINT64_MAX).largest_read == 64 << 10);
}

}  // namespace kin

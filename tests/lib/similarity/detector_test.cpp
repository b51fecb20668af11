// What every detector of the table has to do. One that is added is tested by this.
#include "lib/similarity/detector.h"

#include "lib/similarity/sif_anchors.h"
#include "tests/support/expect.h"
#include "tests/support/memory_key_store.h"
#include "tests/support/random_bytes.h"

#include <algorithm>
#include <set>

namespace kin {
namespace {

using testing::MemoryKeyStore;
using testing::value_of;

// Text as that in which sif's anchors are found.
Bytes text_with_anchors(std::uint64_t seed, std::size_t size) {
  Bytes out = testing::text_like(seed, size);
  const auto anchors = usual_anchors();
  for (std::size_t at = 0; at + 150 < size; at += 150)
    std::copy_n(as_bytes(anchors[at / 150 % anchors.size()]).begin(), kAnchorBytes,
                out.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

Print print_of(const Detector& detector, ByteView content, std::string_view name = "file.txt") {
  MemoryContent reader(content);
  return value_of(detector.print(reader, name));
}

}  // namespace

TEST_CASE("every detector has a name of its own, by which it is found", "[detector]") {
  std::set<std::string_view> names;
  for (const DetectorEntry& entry : all_detectors()) {
    CHECK(names.insert(entry.name).second);
    CHECK(find_detector(entry.name) == &entry);
  }
  CHECK(std::string_view(all_detectors().front().name) == "features");
  CHECK(find_detector("none") == nullptr);
}

TEST_CASE("every detector takes an equal file for equal, and finds it first", "[detector]") {
  for (const DetectorEntry& entry : all_detectors()) {
    INFO(entry.name);
    const auto detector = entry.make();
    const auto index = value_of(detector->make_index(MemoryKeyStore::make));
    std::vector<Bytes> files;
    for (std::uint64_t i = 0; i < 20; ++i) files.push_back(text_with_anchors(i, 20'000 + 1'000 * i));
    for (std::uint32_t i = 0; i < files.size(); ++i)
      testing::require_ok(index->add(i, print_of(*detector, files[i])));
    for (std::uint32_t i = 0; i < files.size(); ++i) {
      const auto found = value_of(index->find(print_of(*detector, files[i]), {}));
      REQUIRE_FALSE(found.empty());
      CHECK(found.front().file == i);
      CHECK(found.front().similarity == Approx(1));
      CHECK(found.front().reverse == Approx(1));
      CHECK(std::is_sorted(found.begin(), found.end(),
                           [](const Match& a, const Match& b) { return a.similarity > b.similarity; }));
    }
    CHECK(index->counts().candidates >= files.size());
    CHECK(index->bytes() > 0);
  }
}

TEST_CASE("every detector finds a file that was changed in its midst", "[detector]") {
  for (const DetectorEntry& entry : all_detectors()) {
    INFO(entry.name);
    const auto detector = entry.make();
    const auto index = value_of(detector->make_index(MemoryKeyStore::make));
    Bytes content = text_with_anchors(1, 100'000);
    testing::require_ok(index->add(7, print_of(*detector, content)));
    testing::require_ok(index->add(8, print_of(*detector, testing::random_bytes(2, 100'000))));
    std::copy_n(as_bytes("another text").begin(), 12, content.begin() + 50'000);
    const auto found = value_of(index->find(print_of(*detector, content), {}));
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().file == 7);
    CHECK(found.front().similarity > 0.8);
  }
}

TEST_CASE("every detector takes content of any length, and finds nothing like none", "[detector]") {
  for (const DetectorEntry& entry : all_detectors()) {
    INFO(entry.name);
    const auto detector = entry.make();
    const auto index = value_of(detector->make_index(MemoryKeyStore::make));
    const Bytes content = text_with_anchors(3, 3'000);
    for (std::uint32_t size = 0; size < 200; ++size) {
      const Print print = print_of(*detector, ByteView(content).first(size));
      CHECK(print.file_bytes == size);
      testing::require_ok(index->add(size, print));
    }
    CHECK(value_of(index->find(print_of(*detector, {}), {})).empty());
  }
}

TEST_CASE("prints do not depend on where pieces of the content end", "[detector]") {
  const Bytes content = text_with_anchors(4, 2 * kContentPieceBytes + 12'345);
  struct Dribble : MemoryContent {
    using MemoryContent::MemoryContent;
    // The same content, read by a buffer of another size.
    std::uint64_t size() const override { return 10'000; }
  };
  for (const DetectorEntry& entry : all_detectors()) {
    const std::string_view name = entry.name;
    if (name == "tsa" || name == "pas" || name == "epas") continue;  // their places follow from the size
    INFO(entry.name);
    const auto detector = entry.make();
    Dribble dribble(content);
    MemoryContent whole(content);
    Print a = value_of(detector->print(dribble, "x")), b = value_of(detector->print(whole, "x"));
    a.file_bytes = b.file_bytes;
    // kin's features follow from its segments, which need 4 MiB at a time.
    if (name != "features") CHECK(a == b);
  }
}

}  // namespace kin

#include "lib/object/content.h"

#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/memory_objects.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>

namespace kin {
namespace {

using testing::code_of;
using testing::error_of;
using testing::MemoryObjects;
using testing::require_ok;
using testing::value_of;

// Data and now and then a hole, of odd sizes.
std::vector<Extent> sample(std::size_t count) {
  std::vector<Extent> out(count);
  testing::Random random(count);
  for (Extent& extent : out) {
    extent.size = 1 + random.below(1 << 20);
    if (random.below(10) == 0) {
      extent.kind = Extent::Kind::hole;
    } else {
      extent.id = ObjectId{hash(testing::random_bytes(random.next(), 8))};
    }
  }
  return out;
}

std::uint64_t size_of(const std::vector<Extent>& extents) {
  std::uint64_t sum = 0;
  for (const Extent& extent : extents) sum += extent.size;
  return sum;
}

struct Visited {
  std::vector<Extent> extents;
  bool offsets_right = true;
  std::uint64_t end = 0;
};

Result<Visited> visit_all(ObjectReader& reader, const std::vector<Extent>& extents) {
  Visited out;
  KIN_TRY(for_each_extent(reader, extents, [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
    out.offsets_right = out.offsets_right && offset == out.end;
    out.end += extent.size;
    out.extents.push_back(extent);
    return {};
  }));
  return out;
}

Bytes list_bytes(const std::vector<Extent>& extents, std::uint8_t version = 1) {
  WireWriter out;
  out.u8(version);
  out.varint(extents.size());
  for (const Extent& extent : extents) encode_extent(extent, out);
  return out.take();
}

Extent list_of(MemoryObjects& objects, const std::vector<Extent>& extents) {
  return {Extent::Kind::list, size_of(extents), objects.store(list_bytes(extents))};
}

}  // namespace

TEST_CASE("few extents stay in the node", "[content]") {
  MemoryObjects objects;
  for (std::size_t count = 0; count <= kInlineExtents; ++count) {
    const std::vector<Extent> extents = sample(count);
    CHECK(value_of(fold_extents(extents, objects.storer())) == extents);
  }
  CHECK(objects.all().empty());
}

TEST_CASE("any number of extents folds into a few and unfolds to the same", "[content]") {
  const std::size_t count = GENERATE(17UL, 4095UL, 4096UL, 4097UL, 65536UL, 65537UL, 16UL * 4096, 300'000UL);
  MemoryObjects objects;
  const std::vector<Extent> extents = sample(count);
  const std::vector<Extent> folded = value_of(fold_extents(extents, objects.storer()));
  CHECK(folded.size() <= kInlineExtents);
  CHECK(size_of(folded) == size_of(extents));
  for (const Extent& extent : folded) CHECK(extent.kind == Extent::Kind::list);
  const Visited visited = value_of(visit_all(objects, folded));
  CHECK((visited.extents == extents));
  CHECK(visited.offsets_right);
  std::size_t largest = 0;
  for (const auto& [id, bytes] : objects.all()) largest = std::max(largest, bytes->size());
  CHECK(largest <= 200 << 10);
}

TEST_CASE("the same extents fold into the same objects, and all of them are lists", "[content]") {
  MemoryObjects objects;
  const auto storer = objects.storer();
  std::size_t other_kinds = 0;
  const StoreObject store = [&](ObjectKind kind, Bytes bytes) {
    other_kinds += kind != ObjectKind::list;
    return storer(kind, std::move(bytes));
  };
  const std::vector<Extent> first = value_of(fold_extents(sample(100'000), store));
  const std::size_t stored = objects.all().size();
  CHECK(value_of(fold_extents(sample(100'000), store)) == first);
  CHECK(objects.all().size() == stored);
  CHECK(other_kinds == 0);
}

TEST_CASE("a failure to store a list is the answer", "[content]") {
  const StoreObject full = [](ObjectKind, const Bytes&) -> Result<ObjectId> {
    return Error(ErrorCode::no_space, "full");
  };
  CHECK(code_of(fold_extents(sample(17), full)) == ErrorCode::no_space);
}

TEST_CASE("an error of the visitor ends the visit", "[content]") {
  MemoryObjects objects;
  const std::vector<Extent> folded = value_of(fold_extents(sample(5000), objects.storer()));
  int visits = 0;
  const auto result = for_each_extent(objects, folded, [&](const Extent&, std::uint64_t) -> Result<void> {
    if (++visits == 4500) return Error(ErrorCode::cancelled, "enough");
    return {};
  });
  CHECK(code_of(result) == ErrorCode::cancelled);
  CHECK(visits == 4500);
}

TEST_CASE("lists can be seen before they are loaded, and skipped", "[content]") {
  MemoryObjects objects;
  const std::vector<Extent> extents = sample(3 * kListExtents);
  std::vector<Extent> folded = value_of(fold_extents(std::vector<Extent>(extents), objects.storer()));
  // Three lists in a node: make one unreadable, and skip it.
  REQUIRE(folded.size() == 3);
  objects.remove(folded[1].id);
  std::vector<ObjectId> seen;
  std::uint64_t next_offset = 0;
  std::size_t visited = 0;
  require_ok(for_each_extent(
      objects, folded,
      [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (visited++ == kListExtents)
          next_offset = folded[0].size + folded[1].size;  // what was skipped counts
        if (offset != next_offset) return Error(ErrorCode::corrupt, "wrong offset");
        next_offset += extent.size;
        return {};
      },
      [&](const ObjectId& id) {
        seen.push_back(id);
        return id != folded[1].id;
      }));
  CHECK(seen == std::vector<ObjectId>{folded[0].id, folded[1].id, folded[2].id});
  CHECK(visited == 2 * kListExtents);
  CHECK(code_of(visit_all(objects, folded)) == ErrorCode::corrupt);
}

TEST_CASE("a list that does not add up to its size is corrupt", "[content]") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto with_size = [](const std::vector<Extent>& extents, std::uint64_t size) {
    MemoryObjects objects;
    return visit_all(objects, {{Extent::Kind::list, size, objects.store(list_bytes(extents))}}).has_value();
  };
  const std::vector<Extent> extents = {{Extent::Kind::hole, 10, {}}, {Extent::Kind::hole, 20, {}}};
  CHECK(with_size(extents, 30));
  CHECK_FALSE(with_size(extents, 29));
  CHECK_FALSE(with_size(extents, 31));
  CHECK_FALSE(with_size(extents, 0));
  CHECK_FALSE(with_size({{Extent::Kind::hole, kMost, {}}, {Extent::Kind::hole, 31, {}}}, 30));  // 2^64 + 30
}

TEST_CASE("a list cut at any length, or of a version that there is not, is corrupt", "[content]") {
  const std::vector<Extent> extents = sample(5);
  testing::for_each_cut(list_bytes(extents), [&](const Bytes& cut, const std::string& what) {
    MemoryObjects objects;
    const ObjectId id = objects.store(cut);
    const Error error = error_of(visit_all(objects, {{Extent::Kind::list, size_of(extents), id}}));
    INFO(what);
    CHECK(error.code() == ErrorCode::corrupt);
    CHECK_THAT(error.message(), Catch::Contains(id.short_hex()));
  });
  for (const std::uint8_t version : {0, 2, 255}) {
    MemoryObjects objects;
    CHECK_FALSE(visit_all(
        objects, {{Extent::Kind::list, size_of(extents), objects.store(list_bytes(extents, version))}}));
  }
}

TEST_CASE("a damaged list is refused or keeps to its size", "[content]") {
  const std::vector<Extent> extents = sample(5);
  testing::for_each_flip(list_bytes(extents), [&](const Bytes& damaged, const std::string& what) {
    MemoryObjects objects;
    const auto visited = visit_all(objects, {{Extent::Kind::list, size_of(extents), objects.store(damaged)}});
    if (visited && visited->end != size_of(extents)) FAIL(what);
  });
}

TEST_CASE("lists nested deeper than any file needs are refused", "[content]") {
  MemoryObjects objects;
  Extent extent{Extent::Kind::hole, 100, {}};
  for (int depth = 1; depth <= 8; ++depth) {
    extent = list_of(objects, {extent});
    INFO(depth);
    CHECK(value_of(visit_all(objects, {extent})).end == 100);
  }
  for (int depth = 9; depth < 100; ++depth) extent = list_of(objects, {extent});
  CHECK(code_of(visit_all(objects, {extent})) == ErrorCode::corrupt);
}

TEST_CASE("lists of nothing are refused, however often they are named", "[content]") {
  // Eight levels of a thousand references each take 300 KB, and 10^24 steps to walk: sizes that add up to 0
  // cannot end it.
  MemoryObjects objects;
  Extent extent{Extent::Kind::hole, 0, {}};
  for (int depth = 1; depth <= 8; ++depth) extent = list_of(objects, std::vector<Extent>(1000, extent));
  CHECK(code_of(visit_all(objects, {extent})) == ErrorCode::corrupt);
  // Beside something, too.
  extent = list_of(objects, {{Extent::Kind::hole, 7, {}}, {Extent::Kind::list, 0, extent.id}});
  CHECK(code_of(visit_all(objects, {extent})) == ErrorCode::corrupt);
}

TEST_CASE("no more extents are visited than the size has bytes", "[content]") {
  // The same list again and again, as a file that repeats itself has it.
  MemoryObjects objects;
  Extent extent{Extent::Kind::hole, 1, {}};
  for (int depth = 1; depth <= 3; ++depth) extent = list_of(objects, std::vector<Extent>(10, extent));
  CHECK(value_of(visit_all(objects, {extent})).extents.size() == 1000);
  extent.size = 999;
  CHECK(code_of(visit_all(objects, {extent})) == ErrorCode::corrupt);
}

}  // namespace kin

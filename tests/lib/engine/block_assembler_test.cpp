#include "lib/engine/block_assembler.h"

#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <utility>

namespace kin {
namespace {

using testing::numbered_id;
using testing::random_bytes;
using testing::require_ok;
using testing::text_like;

// Knows chains, and nothing else.
class ChainsOnly : public BlockReader {
 public:
  Result<std::shared_ptr<const Bytes>> load(const ObjectId&) override { return missing(); }
  Result<bool> contains(const ObjectId&) override { return false; }
  Result<BlockRef> locate(const ObjectId&) override { return missing(); }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef&) override { return missing(); }
  Result<Chain> chain(const ObjectId& id) override {
    const auto at = chains.find(id);
    if (at == chains.end()) return missing();
    return at->second;
  }

  std::map<ObjectId, Chain> chains;

 private:
  static Error missing() { return Error(ErrorCode::not_found, "missing"); }
};

struct Fixture {
  ChainsOnly store;
  GroupRatio ratio;
  std::size_t tenths = 4;  // what is left of a group's content
  std::vector<PlannedBlock> blocks;
  BlockAssembler assembler{store, ratio, [this](PlannedBlock block) {
                             if (block.group_number)
                               ratio.report(*block.group_number, block.content->size(),
                                            block.content->size() * tenths / 10);
                             blocks.push_back(std::move(block));
                             return true;
                           }};
};

TriedObject object(std::uint64_t number, std::size_t size) {
  TriedObject out;
  out.content = std::make_shared<const Bytes>(random_bytes(number, size));
  out.object = {numbered_id(number), ObjectKind::data, size, {}};
  return out;
}

TriedObject with_delta(TriedObject tried, const ObjectId& base, std::size_t delta_size) {
  tried.deltas.push_back(
      {base, std::make_shared<const Bytes>(Bytes(10)), {CodecId::zstd, Bytes(delta_size)}});
  return tried;
}

TriedObject with_whole(TriedObject tried, std::size_t size) {
  tried.whole = Encoding{CodecId::zstd, Bytes(size)};
  return tried;
}

}  // namespace

TEST_CASE("small objects without kin join a group in their order", "[assembler]") {
  Fixture f;
  for (std::uint64_t i = 0; i < 5; ++i) require_ok(f.assembler.add(object(i, 1000 + i)));
  CHECK(f.blocks.empty());
  require_ok(f.assembler.flush());
  REQUIRE(f.blocks.size() == 1);
  CHECK(f.blocks[0].objects.size() == 5);
  CHECK(f.blocks[0].content->size() == 5010);
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(f.blocks[0].objects[i].id == numbered_id(i));
}

TEST_CASE("no group grows beyond its bytes", "[assembler]") {
  Fixture f;
  for (std::uint64_t i = 0; i < 30; ++i) require_ok(f.assembler.add(object(i, 200'000)));
  require_ok(f.assembler.flush());
  CHECK(f.blocks.size() == 3);
  for (const PlannedBlock& block : f.blocks) CHECK(block.content->size() <= BlockAssembler::kGroupBytes);
}

TEST_CASE("a group of trees is small, so that one of them is read cheaply", "[assembler]") {
  Fixture f;
  for (std::uint64_t i = 0; i < 30; ++i) {
    TriedObject tree = object(i, 60'000);
    tree.object.kind = ObjectKind::tree;
    require_ok(f.assembler.add(std::move(tree)));
  }
  require_ok(f.assembler.flush());
  CHECK(f.blocks.size() == 8);
  for (const PlannedBlock& block : f.blocks)
    CHECK(block.content->size() <= BlockAssembler::kMetadataGroupBytes);
}

TEST_CASE("trees are never in one group with content", "[assembler]") {
  Fixture f;
  TriedObject tree = object(1, 100);
  tree.object.kind = ObjectKind::tree;
  require_ok(f.assembler.add(std::move(tree)));
  require_ok(f.assembler.add(object(2, 100)));
  require_ok(f.assembler.flush());
  CHECK(f.blocks.size() == 2);
}

TEST_CASE("a good delta has a block of its own, a weak one does not", "[assembler]") {
  Fixture f;
  f.store.chains[numbered_id(100)] = {0, 10'000};
  require_ok(f.assembler.add(with_delta(object(1, 10'000), numbered_id(100), 500)));
  REQUIRE(f.blocks.size() == 1);
  CHECK(f.blocks[0].base == numbered_id(100));
  // A group takes 0.4 of the content; this saves too little of that.
  require_ok(f.assembler.add(with_delta(object(2, 10'000), numbered_id(100), 3'000)));
  CHECK(f.blocks.size() == 1);
}

TEST_CASE("a large object is a delta only if that is smaller than compressing it", "[assembler]") {
  Fixture f;
  f.store.chains[numbered_id(100)] = {0, 10'000};
  require_ok(f.assembler.add(with_whole(with_delta(object(1, 300'000), numbered_id(100), 50'000), 40'000)));
  require_ok(f.assembler.add(with_whole(with_delta(object(2, 300'000), numbered_id(100), 30'000), 40'000)));
  REQUIRE(f.blocks.size() == 2);
  CHECK_FALSE(f.blocks[0].base);
  CHECK(f.blocks[0].encoding->payload.size() == 40'000);
  CHECK(f.blocks[1].base == numbered_id(100));
}

TEST_CASE("of two equal deltas the one with the shorter chain is chosen", "[assembler]") {
  Fixture f;
  f.store.chains[numbered_id(100)] = {8, 10'000};
  f.store.chains[numbered_id(101)] = {2, 10'000};
  require_ok(f.assembler.add(
      with_delta(with_delta(object(1, 50'000), numbered_id(100), 500), numbered_id(101), 510)));
  REQUIRE(f.blocks.size() == 1);
  CHECK(f.blocks[0].base == numbered_id(101));
}

TEST_CASE("no chain is longer than the longest, however similar the objects", "[assembler]") {
  Fixture f;
  f.store.chains[numbered_id(0)] = {0, 10'000};
  for (std::uint64_t i = 1; i < 60; ++i)
    require_ok(f.assembler.add(with_delta(object(i, 50'000), numbered_id(i - 1), 10)));
  require_ok(f.assembler.flush());
  std::map<ObjectId, unsigned> depth{{numbered_id(0), 0}};
  for (const PlannedBlock& block : f.blocks)
    for (const BlockObject& object : block.objects) {
      depth[object.id] = block.base ? depth.at(*block.base) + 1 : 0;
      CHECK(depth[object.id] <= BlockAssembler::kMostDepth);
    }
  CHECK(depth.size() == 60);
  CHECK(f.blocks.size() > 40);
}

TEST_CASE("a chain of large objects ends before a reader decodes too many bytes", "[assembler]") {
  Fixture f;
  constexpr std::size_t kSize = 4 << 20;
  f.store.chains[numbered_id(0)] = {0, kSize};
  std::uint64_t bytes = kSize;
  for (std::uint64_t i = 1; i < 30; ++i) {
    require_ok(f.assembler.add(with_whole(with_delta(object(i, kSize), numbered_id(i - 1), 10), kSize / 2)));
    bytes = f.blocks.back().base ? bytes + kSize : kSize;
    CHECK(bytes <= 16 * kSize);
  }
}

TEST_CASE("a base whose chain is unknown is none", "[assembler]") {
  Fixture f;
  require_ok(f.assembler.add(with_delta(object(1, 10'000), numbered_id(100), 10)));
  CHECK(f.blocks.empty());
}

TEST_CASE("the price of a group follows from the groups before the last two", "[assembler]") {
  Fixture f;
  f.tenths = 9;
  f.store.chains[numbered_id(1'000'000)] = {0, 10'000};
  std::uint64_t next = 0;
  const auto fill_group = [&] {
    for (const std::size_t before = f.blocks.size(); f.blocks.size() == before;)
      require_ok(f.assembler.add(object(next++, 200'000)));
  };
  // More than half of what it would take in a group of text, and less in one of these.
  const auto takes_delta = [&] {
    const std::size_t before = f.blocks.size();
    require_ok(f.assembler.add(with_delta(object(next++, 10'000), numbered_id(1'000'000), 3'000)));
    return f.blocks.size() > before;
  };
  CHECK_FALSE(takes_delta());
  fill_group();
  CHECK_FALSE(takes_delta());
  fill_group();
  CHECK_FALSE(takes_delta());
  fill_group();
  CHECK(takes_delta());
  // And back, once groups of text have outweighed them.
  f.tenths = 3;
  fill_group();
  fill_group();
  CHECK(takes_delta());
  for (int i = 0; i < 4; ++i) fill_group();
  CHECK_FALSE(takes_delta());
}

TEST_CASE("the ratio of groups waits for those that it follows from, in whichever order they come",
          "[assembler]") {
  GroupRatio ratio;
  ratio.report(1, 1000, 900);
  ratio.report(0, 1000, 100);
  CHECK(ratio.after(0) == Approx(0.4));
  CHECK(ratio.after(1) == Approx(0.1).margin(0.001));
  CHECK(ratio.after(2) == Approx((70 + 900) / 1700.0).margin(0.001));
  ratio.cancel();
  ratio.after(9);  // does not wait for what never comes
}

TEST_CASE("a base is in an earlier block than its deltas, however long its group takes to fill",
          "[assembler]") {
  Fixture f;
  require_ok(f.assembler.add(object(0, 1000)));
  std::uint64_t next = 1;
  const auto add_family = [&](std::size_t size) {
    const std::uint64_t first = std::exchange(next, next + 4);
    require_ok(f.assembler.add(object(first, 1000)));
    require_ok(f.assembler.add(with_delta(object(first + 1, size), numbered_id(first), 10)));
    require_ok(f.assembler.add(with_delta(object(first + 2, size), numbered_id(first + 1), 10)));
    require_ok(f.assembler.add(
        with_delta(with_whole(object(first + 3, 300'000), 200'000), numbered_id(first + 2), 10)));
  };
  for (int i = 0; i < 40; ++i) add_family(5000 + 50 * static_cast<std::size_t>(i));
  require_ok(f.assembler.flush());

  std::set<ObjectId> stored;
  std::size_t deltas = 0;
  for (const PlannedBlock& block : f.blocks) {
    if (block.base) {
      ++deltas;
      CHECK(stored.contains(*block.base));
    }
    for (const BlockObject& object : block.objects) CHECK(stored.insert(object.id).second);
  }
  CHECK(stored.size() == next);
  CHECK(deltas == 120);
  // The waiting deltas are bounded, so the group was closed before it was full.
  CHECK(f.blocks.front().content->size() < BlockAssembler::kGroupBytes / 2);
}

}  // namespace kin

#include "store/object_storage.h"

#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

namespace kin::store {
namespace {

using namespace kin::testing;  // the whole of the fixture

// A group, a delta against an object of it, and a delta against that one.
struct StoredBlocks {
  FaultyDisk disk;
  std::unique_ptr<Repository> repository;
  std::vector<Bytes> group;
  std::vector<EncodedBlock> blocks;

  explicit StoredBlocks(Mode mode) {
    create_repository(disk, mode);
    repository = reopen(disk);
    for (std::uint64_t i = 0; i < 150; ++i) group.push_back(text_like(i, 200));  // a header of 5 KiB
    add(plain_block(*repository, group));
    Bytes content = group[7];
    for (std::size_t i = 0; i < 2; ++i) {
      const Bytes base = content;
      content[50 + i] ^= 0x5a;
      EncodedBlock block = delta_block(*repository, repository->id_of(base), base, content);
      block.header.objects[0].features = {10 + i, 20, 30};
      add(block);
    }
  }

  void add(const EncodedBlock& block) {
    value_of(repository->append(block));
    blocks.push_back(block);
  }
  ObjectId id(std::size_t block) const { return blocks[block].header.objects[0].id; }
};

TEST_CASE("a block's header reads alone, before and after its pack is finished", "[repository][storage]") {
  StoredBlocks sample(GENERATE(Mode::plain, Mode::encrypted));
  const auto check_all = [&](Repository& repository) {
    for (std::size_t i = 0; i < sample.blocks.size(); ++i)
      CHECK(value_of(repository.block_header(value_of(repository.locate(sample.id(i))))) ==
            sample.blocks[i].header);
  };
  check_all(*sample.repository);
  require_ok(sample.repository->flush());
  check_all(*sample.repository);
  check_all(*reopen(sample.disk));
}

TEST_CASE("a damaged pack gives a block's header or an error that names the pack, never another header",
          "[repository][storage]") {
  StoredBlocks sample(GENERATE(Mode::plain, Mode::encrypted));
  require_ok(sample.repository->flush());
  const FileName pack = sample.disk.names(FileKind::pack).at(0);
  const BlockRef last = value_of(sample.repository->locate(sample.id(2)));
  const std::size_t size = sample.disk.file(pack).size();
  std::size_t damaged = 0;
  const auto reader = reopen(sample.disk);  // keeps nothing of a pack but its first bytes
  for (std::size_t at = static_cast<std::size_t>(last.offset); at < size; ++at) {
    sample.disk.flip(pack, at);
    const auto header = reader->block_header(last);
    sample.disk.heal();
    if (header) CHECK(*header == sample.blocks[2].header);
    if (header) continue;
    ++damaged;
    CHECK(header.error().code() == ErrorCode::corrupt);
    CHECK_THAT(header.error().message(), Catch::Contains("pack " + pack.name.substr(0, 8)));
  }
  CHECK(damaged > 60);
  CHECK(damaged < last.stored_size);  // the payload is not looked at
  sample.disk.cut(pack, static_cast<std::size_t>(last.offset) + 20);
  CHECK(code_of(reopen(sample.disk)->block_header(last)) == ErrorCode::corrupt);
  sample.disk.erase(pack);
  CHECK(code_of(reopen(sample.disk)->block_header(last)) == ErrorCode::corrupt);
}

TEST_CASE("a storage chain goes down to the block without a base", "[repository][storage]") {
  StoredBlocks sample(Mode::plain);
  require_ok(sample.repository->flush());
  const StorageChain chain = value_of(StorageChains(*sample.repository).of(sample.id(2)));
  CHECK_FALSE(chain.damage.has_value());
  REQUIRE(chain.links.size() == 3);
  CHECK(chain.links[0].form() == BlockForm::delta);
  CHECK(chain.links[0].share() == chain.links[0].block.stored_size);
  CHECK(chain.links[1].id == sample.id(1));
  CHECK(matching_features(chain.links[0].features, chain.links[1].features) == 2);
  CHECK(chain.links[2].form() == BlockForm::group);
  CHECK(chain.links[2].block_objects == 150);
  CHECK(chain.links[2].size == 200);
  CHECK(chain.links[2].share() == chain.links[2].block.stored_size / 150);
}

TEST_CASE("chains read one after another are those that are read alone", "[repository][storage]") {
  StoredBlocks sample(Mode::plain);
  // More blocks than headers are kept of.
  for (std::uint64_t i = 0; i < 40; ++i)
    sample.add(plain_block(*sample.repository, {text_like(1000 + i, 300), text_like(2000 + i, 300)}));
  require_ok(sample.repository->flush());
  StorageChains chains(*sample.repository);
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<BlockObject>& objects =
        sample.blocks[random.below(sample.blocks.size())].header.objects;
    const BlockObject& object = objects[random.below(objects.size())];
    const StorageChain chain = value_of(chains.of(object.id));
    const StorageChain alone = value_of(StorageChains(*sample.repository).of(object.id));
    REQUIRE(chain.links.size() == alone.links.size());
    for (std::size_t i = 0; i < chain.links.size(); ++i) {
      CHECK(chain.links[i].id == alone.links[i].id);
      CHECK(chain.links[i].size == alone.links[i].size);
      CHECK(chain.links[i].block == alone.links[i].block);
      CHECK(chain.links[i].block_objects == alone.links[i].block_objects);
      CHECK(chain.links[i].base == alone.links[i].base);
      CHECK(chain.links[i].features == alone.links[i].features);
    }
    CHECK(chain.links[0].id == object.id);
    CHECK(chain.links[0].size == object.size);
  }
}

TEST_CASE("a chain whose base is nowhere tells what it can, and names the base", "[repository][storage]") {
  StoredBlocks sample(Mode::plain);
  const Bytes base = random_bytes(1, 100), content = random_bytes(2, 100);
  const EncodedBlock block = delta_block(*sample.repository, sample.repository->id_of(base), base, content);
  sample.add(block);
  const StorageChain chain = value_of(StorageChains(*sample.repository).of(block.header.objects[0].id));
  CHECK(chain.links.size() == 1);
  REQUIRE(chain.damage.has_value());
  CHECK_THAT(chain.damage->message(), Catch::Contains("base " + sample.repository->id_of(base).short_hex()));
}

TEST_CASE("blocks are counted by encoding, each once however many segments list them",
          "[repository][storage]") {
  StoredBlocks sample(Mode::plain);
  require_ok(sample.repository->flush());
  // The same pack in a second segment, as two processes leave it that find it at once.
  const FileName index = sample.disk.names(FileKind::index).at(0);
  const Bytes file = sample.disk.file(index);
  const auto check_all = [&](Repository& repository) {
    const EncodingTable table = value_of(count_encodings(repository));
    std::uint64_t stored = 0;
    for (const auto& [key, totals] : table) stored += totals.stored_bytes;
    const auto plain = static_cast<std::uint8_t>(CodecId::plain),
               zstd = static_cast<std::uint8_t>(CodecId::zstd);
    REQUIRE(table.size() == 2);
    CHECK(table.at({plain, BlockForm::group}).objects == 150);
    CHECK(table.at({plain, BlockForm::group}).content_bytes == 150 * 200);
    CHECK(table.at({zstd, BlockForm::delta}).blocks == 2);
    CHECK(stored + PackBuilder::kPrefixBytes ==
          sample.disk.file(sample.disk.names(FileKind::pack).at(0)).size());
  };
  check_all(*sample.repository);
  value_of(sample.repository->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  REQUIRE(sample.disk.names(FileKind::index).size() == 1);
  sample.disk.write(index, file);
  REQUIRE(sample.disk.names(FileKind::index).size() == 2);
  check_all(*reopen(sample.disk));
}

TEST_CASE("an object's share of a block is its part of the content", "[storage]") {
  CHECK(share_of(0, 100, 0) == 100);
  CHECK(share_of(10, 100, 10) == 100);
  CHECK(share_of(5, 100, 10) == 50);
  CHECK(share_of(1, 0xffffffff, 3) == 0x55555555);
}

}  // namespace
}  // namespace kin::store

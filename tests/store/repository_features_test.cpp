// A repository's features: how their cache is lost, and how it is filled from packs.
#include "store/repository.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace kin::store {

using namespace kin::testing;

TEST_CASE("a feature cache that cannot be had or fails later is told once, and another serves",
          "[repository][cache]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  OpenOptions options;
  options.cache_directory = caches / "a";
  int told = 0;
  options.on_cache_lost = [&](const Error&) { ++told; };
  const auto repository = value_of(Repository::open(disk.open(), options));
  const std::string directory = caches / ("a/" + repository->id() + "/features-1");
  const bool from_the_start = GENERATE(false, true);
  if (from_the_start) std::ofstream(directory) << "in the way";
  require_ok(repository->refresh_index());
  value_of(repository->begin_writing());
  CHECK(told == (from_the_start ? 1 : 0));
  if (!from_the_start) std::filesystem::remove_all(directory);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const ObjectId id = value_of(store_object(*repository, text_like(i, 1000)));
    require_ok(repository->features().add(id, {100 * i, 100 * i + 1}));
    require_ok(repository->flush());
    require_ok(repository->features().add(id, {100 * i + 2}));
    CHECK(value_of(repository->features().candidates({100 * i + 2}, 1)).at(0).id == id);
  }
  CHECK(told == 1);
}

TEST_CASE("features of a pack that could not be read just now are read the next time",
          "[repository][faults]") {
  const std::uint64_t nth =
      GENERATE(1, 2, 3, 4);  // the segment, the pack's start, a block's sizes, its header
  INFO(nth);
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  const Sketch sketch{1, 2, 3};
  ObjectId id;
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->begin_writing());
    EncodedBlock block = plain_block(*repository, {text_like(1, 1000)});
    block.header.objects[0].features = sketch;
    id = block.header.objects[0].id;
    value_of(repository->append(block));
    value_of(repository->commit(snapshot_named("h")));
  }
  {
    const auto repository = reopen(disk, caches / "b");
    disk.fail(Operation::get, nth);
    value_of(repository->begin_writing());
    CHECK(value_of(repository->features().candidates(sketch, 1)).empty());
  }
  const auto repository = reopen(disk, caches / "b");
  value_of(repository->begin_writing());
  const auto candidates = value_of(repository->features().candidates(sketch, 1));
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].id == id);
}

TEST_CASE("a pack that is damaged or gone is not read for its features again and again",
          "[repository][faults]") {
  const bool gone = GENERATE(false, true);
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->begin_writing());
    value_of(store_object(*repository, text_like(1, 1000)));
    value_of(repository->commit(snapshot_named("h")));
  }
  const FileName pack = disk.names(FileKind::pack).at(0);
  if (gone) {
    disk.erase(pack);
  } else {
    disk.flip(pack, 40);
  }
  value_of(reopen(disk, caches / "b")->begin_writing());
  const auto repository = reopen(disk, caches / "b");
  CHECK(repository->features().segments() == repository->index().segments());
  CHECK(repository->features().segments().size() == 1);
}

}  // namespace kin::store

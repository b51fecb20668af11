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

}  // namespace kin::store

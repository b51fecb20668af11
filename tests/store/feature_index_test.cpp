#include "store/feature_index.h"

#include "store/cache_directory.h"
#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"
#include "tests/support/ruin.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

namespace kin::store {
namespace {

using testing::code_of;
using testing::entries_in;
using testing::numbered_id;
using testing::Random;
using testing::require_ok;
using testing::ruin;
using testing::TempDir;
using testing::value_of;

// As little as the index works with: it spills every few dozen objects.
constexpr FeatureIndexLimits kTiny{16 << 10, 16 << 10};

Sketch sketch(std::uint64_t first, std::uint64_t count = 16) {
  Sketch out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

std::vector<ObjectId> found(FeatureIndex& index, const Sketch& of, std::size_t most = 4) {
  std::vector<ObjectId> out;
  for (const Candidate& candidate : value_of(index.candidates(of, most))) out.push_back(candidate.id);
  return out;
}

bool has_object(FeatureIndex& index, std::uint64_t number) {
  return found(index, sketch(100 * number), 1) == std::vector{numbered_id(number)};
}

void add_objects(FeatureIndex& index, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i)
    require_ok(index.add(numbered_id(i), sketch(100 * i)));
}

// The runs of the index in `directory`.
std::vector<std::string> run_files(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/features-1/runs"))
    if (entry.is_regular_file()) out.push_back(entry.path().string());
  return out;
}

// Objects as they might be: some like another, some features very common. The answers, as text.
std::string answers(FeatureIndex& index, std::uint64_t objects, std::uint64_t commit_every) {
  Random random(7);
  std::vector<Sketch> sketches;
  std::string out;
  for (std::uint64_t first = 0; first < objects; first += 16) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      Sketch made;
      const Sketch like = sketches.empty() ? Sketch() : sketches[random.below(sketches.size())];
      for (std::uint64_t feature = 0; feature < 16; ++feature)
        made.push_back(!like.empty() && random.below(2) == 0 ? like[feature] : random.next() >> 24);
      made[15] = random.below(3);  // of more than 4096 objects, after a while
      sketches.push_back(made);
    }
    std::vector<const Sketch*> batch;
    for (std::uint64_t i = 0; i < 12; ++i)
      batch.push_back(&sketches[first + i]);  // the last four are not fetched
    require_ok(index.prefetch(batch));
    for (std::uint64_t i = first; i < first + 16; ++i) {
      for (const Candidate& candidate : value_of(index.candidates(sketches[i], 3)))
        out += candidate.id.short_hex() + ":" + std::to_string(candidate.matches) + " ";
      out += "\n";
      require_ok(index.add(numbered_id(i), sketches[i]));
      if ((i + 1) % commit_every == 0) index.commit(std::to_string(i));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the object with the most matching features comes first", "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path());
  require_ok(index->add(numbered_id(1), sketch(0, 4)));
  require_ok(index->add(numbered_id(2), sketch(0, 8)));
  require_ok(index->add(numbered_id(3), sketch(6, 4)));
  const auto candidates = value_of(index->candidates(sketch(0, 8), 10));
  REQUIRE(candidates.size() == 3);
  CHECK(candidates[0].id == numbered_id(2));
  CHECK(candidates[0].matches == 8);
  CHECK(candidates[1].id == numbered_id(1));
  CHECK(candidates[1].matches == 4);
  CHECK(candidates[2].id == numbered_id(3));
  CHECK(candidates[2].matches == 2);
  CHECK(found(*index, sketch(0, 8), 2) == std::vector{numbered_id(2), numbered_id(1)});
  CHECK(found(*index, sketch(0, 8), 0).empty());
  CHECK(found(*index, sketch(50)).empty());
  CHECK(found(*index, {}).empty());
}

TEST_CASE("of equal matches the rarer feature wins, then the newer object", "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path());
  require_ok(index->add(numbered_id(1), {1000}));
  for (std::uint64_t i = 2; i < 6; ++i) require_ok(index->add(numbered_id(i), {2000}));
  CHECK(found(*index, {1000, 2000}, 3) == std::vector{numbered_id(1), numbered_id(5), numbered_id(4)});
}

TEST_CASE("a feature names its eight newest objects", "[feature_index]") {
  const TempDir directory;
  for (const FeatureIndexLimits& limits : {FeatureIndexLimits(), kTiny}) {
    const auto index = FeatureIndex::open_temporary(directory.path(), limits);
    std::vector<ObjectId> expected;
    for (std::uint64_t i = 0; i < 100; ++i) require_ok(index->add(numbered_id(i), {42}));
    for (std::uint64_t i = 100; i-- > 92;) expected.push_back(numbered_id(i));
    CHECK(found(*index, {42}, 100) == expected);
  }
}

TEST_CASE("a feature of more than 4096 objects names none", "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path());
  for (std::uint64_t i = 0; i < 4096; ++i) {
    require_ok(index->add(numbered_id(i), {42}));
    if (i % 1000 == 0) index->commit(std::to_string(i));
  }
  CHECK(found(*index, {42}, 100).size() == 8);
  require_ok(index->add(numbered_id(4096), {42, 43}));
  CHECK(found(*index, {42}).empty());
  CHECK(found(*index, {42, 43}) == std::vector{numbered_id(4096)});
  index->commit("last");
  require_ok(index->add(numbered_id(4097), {42}));
  CHECK(found(*index, {42}).empty());
}

TEST_CASE("an object that was added twice is one candidate", "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path());
  require_ok(index->add(numbered_id(1), sketch(0)));
  require_ok(index->add(numbered_id(2), sketch(0, 4)));
  require_ok(index->add(numbered_id(1), sketch(0)));
  CHECK(found(*index, sketch(0)) == std::vector{numbered_id(1), numbered_id(2)});
}

TEST_CASE("features beyond 40 bits, doubled ones and long sketches are taken as they are",
          "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path(), kTiny);
  require_ok(index->add(numbered_id(1), {~Feature{0}, 0, 0, 0}));
  require_ok(index->add(numbered_id(2), {}));
  require_ok(index->add(numbered_id(3), sketch(1'000'000, 5000)));
  index->commit("one");
  const auto candidates = value_of(index->candidates({0, 0, ~Feature{0}}, 10));
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].id == numbered_id(1));
  CHECK(candidates[0].matches == 2);
  CHECK(value_of(index->candidates(sketch(1'000'000, 5000), 1)).at(0).matches == 5000);
}

TEST_CASE("neither spilling nor committing changes an answer", "[feature_index]") {
  const TempDir directory;
  constexpr std::uint64_t kObjects = 14'000;  // so that the three features of all become too common
  const std::string expected =
      answers(*FeatureIndex::open_temporary(directory.path()), kObjects, kObjects * 2);
  CHECK(expected.size() > 400'000);
  const bool commits = answers(*FeatureIndex::open_temporary(directory.path()), kObjects, 300) == expected;
  CHECK(commits);
  const bool spills =
      answers(*FeatureIndex::open_temporary(directory.path(), kTiny), kObjects, kObjects * 2) == expected;
  CHECK(spills);
  const bool both =
      answers(*FeatureIndex::open_temporary(directory.path(), kTiny), kObjects, 777) == expected;
  CHECK(both);
}

TEST_CASE("what was prefetched stays complete when memory is spilled", "[feature_index]") {
  const TempDir directory;
  const auto index = FeatureIndex::open_temporary(directory.path());
  require_ok(index->add(numbered_id(1), sketch(0)));
  const Sketch wanted = sketch(0);
  const Sketch* const batch[] = {&wanted};
  require_ok(index->prefetch(batch));
  require_ok(index->add(numbered_id(2), sketch(0)));
  index->commit("one");
  require_ok(index->add(numbered_id(3), sketch(0)));
  CHECK(found(*index, wanted) == std::vector{numbered_id(3), numbered_id(2), numbered_id(1)});
  index->commit("two");
  index->commit("three");
  CHECK(found(*index, wanted) == std::vector{numbered_id(3), numbered_id(2), numbered_id(1)});
}

TEST_CASE("what is committed is there after opening again, with the segments' names", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory / "cache"));
    CHECK(index->segments().empty());
    add_objects(*index, 0, 100);
    index->commit("one");
    add_objects(*index, 100, 100);
    index->commit("two");
    index->commit("nothing new");
    add_objects(*index, 200, 10);  // not committed
  }
  const auto index = value_of(FeatureIndex::open(directory / "cache"));
  CHECK(index->segments() == std::set<std::string>{"one", "two", "nothing new"});
  for (std::uint64_t i = 0; i < 200; ++i) REQUIRE(has_object(*index, i));
  CHECK(found(*index, sketch(100 * 205)).empty());
  // Numbers go on where they were: nothing new hides what is old.
  add_objects(*index, 300, 100);
  index->commit("three");
  for (std::uint64_t i = 0; i < 200; ++i) REQUIRE(has_object(*index, i));
  for (std::uint64_t i = 300; i < 400; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("objects that were spilled and never committed do not take the place of others",
          "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path(), kTiny));
    add_objects(*index, 0, 500);
  }
  const auto index = value_of(FeatureIndex::open(directory.path(), kTiny));
  CHECK(index->segments().empty());
  add_objects(*index, 1000, 500);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto before = found(*index, sketch(100 * i), 1);
    if (!before.empty()) REQUIRE(before[0] == numbered_id(i));
    REQUIRE(has_object(*index, 1000 + i));
  }
}

TEST_CASE("a run that the catalogue does not list is removed", "[feature_index]") {
  // As after a crash between writing a run and what makes it count, which is in RocksDB's log: that goes.
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  CHECK(run_files(directory.path()).size() == 1);
  for (const auto& entry : std::filesystem::directory_iterator(directory / "features-1/runs/catalogue"))
    if (entry.path().extension() == ".log") std::filesystem::remove(entry.path());
  const auto index = value_of(FeatureIndex::open(directory.path()));
  CHECK(index->segments().empty());
  CHECK(run_files(directory.path()).empty());
  add_objects(*index, 50, 100);
  index->commit("two");
  CHECK(found(*index, sketch(100)).empty());
  for (std::uint64_t i = 50; i < 150; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("a feature index that is only asked leaves its files as they are", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  value_of(FeatureIndex::open(directory.path()));  // and nothing is left in the catalogue's log
  const auto times = [&] {
    std::map<std::string, std::filesystem::file_time_type> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "features-1"))
      if (entry.path().filename() != "lock") out[entry.path().string()] = entry.last_write_time();
    return out;
  };
  // What an interrupted process left stays until someone writes.
  const std::string unlisted = directory / "features-1/runs/run-0000000077";
  std::ofstream(unlisted) << "rubbish";
  const auto before = times();
  for (int turn = 0; turn < 3; ++turn) {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    CHECK(index->segments() == std::set<std::string>{"one"});
    for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(has_object(*index, i));
    CHECK(code_of(FeatureIndex::open(directory.path())) == ErrorCode::busy);
  }
  CHECK(times() == before);
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 100, 100);
    index->commit("two");
    CHECK_FALSE(std::filesystem::exists(unlisted));
    // As it is left by kill -9.
    std::filesystem::create_directory(directory / "killed");
    std::filesystem::copy(directory / "features-1", directory / "killed/features-1",
                          std::filesystem::copy_options::recursive);
  }
  for (const std::string& place : {directory.path(), directory / "killed"}) {
    const auto index = value_of(FeatureIndex::open(place));
    CHECK(index->segments() == std::set<std::string>{"one", "two"});
    for (std::uint64_t i = 0; i < 200; ++i) REQUIRE(has_object(*index, i));
  }
}

TEST_CASE("a feature index that cannot be opened for writing goes on in memory", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  value_of(FeatureIndex::open(directory.path()));
  const std::string obstacle = directory / "features-1/runs/catalogue/LOCK";
  std::filesystem::remove(obstacle);
  std::filesystem::create_directory(obstacle);
  {
    int told = 0;
    const auto index = value_of(FeatureIndex::open(directory.path(), {}, [&](const Error&) { ++told; }));
    for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(has_object(*index, i));
    add_objects(*index, 100, 10);
    index->commit("two");
    CHECK(told == 1);
    add_objects(*index, 200, 10);
    CHECK(has_object(*index, 205));
  }
  std::filesystem::remove(obstacle);
  const auto index = value_of(FeatureIndex::open(directory.path()));
  CHECK(index->segments() == std::set<std::string>{"one"});
  for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("many commits leave few files", "[feature_index]") {
  const TempDir directory;
  const auto index = value_of(FeatureIndex::open(directory.path()));
  for (std::uint64_t i = 0; i < 60; ++i) {
    add_objects(*index, 10 * i, 10);
    index->commit(std::to_string(i));
  }
  CHECK(run_files(directory.path()).size() < 4);
  for (std::uint64_t i = 0; i < 600; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("a feature index that is in use is busy, and free again afterwards", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory / "cache"));
    CHECK(code_of(FeatureIndex::open(directory / "cache")) == ErrorCode::busy);
    add_objects(*index, 0, 10);
    index->commit("one");  // undisturbed
  }
  CHECK(has_object(*value_of(FeatureIndex::open(directory / "cache")), 5));
}

TEST_CASE("who opens a feature index while caches are removed has the one that others find",
          "[feature_index]") {
  const TempDir directory;
  std::atomic<bool> stop = false;
  std::thread remover([&] {
    while (!stop) static_cast<void>(remove_cache(directory / "cache"));
  });
  std::vector<std::string> failures;
  for (int round = 0; round < 100; ++round) {
    const auto index = FeatureIndex::open(directory / "cache");
    if (!index && index.error().code() != ErrorCode::busy) failures.push_back(index.error().message());
    if (index && code_of(FeatureIndex::open(directory / "cache")) != ErrorCode::busy)
      failures.push_back("two have it");
  }
  stop = true;
  remover.join();
  CHECK(failures == std::vector<std::string>{});
}

TEST_CASE("who empties an index that was taken away does not touch the one made in its place",
          "[feature_index]") {
  const TempDir directory;
  const auto index = value_of(FeatureIndex::open(directory / "cache"));
  add_objects(*index, 0, 10);
  std::filesystem::remove_all(directory / "cache");
  std::filesystem::create_directories(directory / "cache/features-1");
  std::ofstream(directory / "cache/features-1/lock");
  std::ofstream(directory / "cache/features-1/ids") << "of another";
  index->clear();
  CHECK(std::filesystem::file_size(directory / "cache/features-1/ids") == 10);
  CHECK(entries_in(directory / "cache/features-1") == 2);
  CHECK(found(*index, sketch(500)).empty());
  add_objects(*index, 20, 10);
  CHECK(has_object(*index, 25));
}

TEST_CASE("a temporary feature index leaves nothing behind", "[feature_index]") {
  const TempDir directory;
  {
    const auto first = FeatureIndex::open_temporary(directory.path());
    const auto second = FeatureIndex::open_temporary(directory.path(), kTiny);
    add_objects(*first, 0, 10);
    add_objects(*second, 10, 1000);
    CHECK(found(*second, sketch(0)).empty());
    CHECK(has_object(*second, 12));
    CHECK(entries_in(directory.path()) == 2);
  }
  CHECK(entries_in(directory.path()) == 0);
}

TEST_CASE("a cleared feature index knows nothing and can be filled again", "[feature_index]") {
  const TempDir directory;
  const auto index = value_of(FeatureIndex::open(directory.path()));
  add_objects(*index, 0, 10);
  index->commit("one");
  add_objects(*index, 10, 10);
  index->clear();
  CHECK(index->segments().empty());
  CHECK(found(*index, sketch(100)).empty());
  CHECK(found(*index, sketch(1100)).empty());
  add_objects(*index, 5, 10);
  index->commit("two");
  CHECK(has_object(*index, 7));
  CHECK(index->segments() == std::set<std::string>{"two"});
}

TEST_CASE("a damaged feature index is emptied, whichever of its files is rubbish", "[feature_index]") {
  const std::string part = GENERATE(as<std::string>(), "CURRENT", "MANIFEST", ".log", "run-", "");
  INFO(part);
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 1000);
    index->commit("one");
  }
  ruin(directory / "features-1/runs", part);
  const auto index = value_of(FeatureIndex::open(directory.path()));
  for (std::uint64_t i = 0; i < 1000; i += 100) {
    const auto known = found(*index, sketch(100 * i), 1);  // no error, and nothing wrong
    if (!known.empty()) CHECK(known[0] == numbered_id(i));
  }
  if (!index->segments().contains("one")) {
    add_objects(*index, 0, 1000);
    index->commit("one");
  }
  for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("damage that shows late empties the index, and what was lost is not recorded", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory / "whole"));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  const auto files = run_files(directory / "whole");
  REQUIRE(files.size() == 1);
  const auto size = std::filesystem::file_size(files[0]);
  const std::string name = std::filesystem::path(files[0]).filename().string();
  std::size_t emptied = 0, kept = 0;
  for (std::uint64_t at = 0; at < size; at += std::max<std::uint64_t>(1, size / 150)) {
    const std::string copy = directory / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(directory / "whole", copy, std::filesystem::copy_options::recursive);
    {
      std::fstream damaged(copy + "/features-1/runs/" + name,
                           std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekg(static_cast<std::streamoff>(at));
      const char before = static_cast<char>(damaged.get());
      damaged.seekp(static_cast<std::streamoff>(at));
      damaged.put(static_cast<char>(before ^ 0x55));
    }
    const auto index = value_of(FeatureIndex::open(copy));
    require_ok(index->add(numbered_id(1000), sketch(100'000)));
    bool all = true;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto known = found(*index, sketch(100 * i), 1);
      if (!known.empty()) REQUIRE(known[0] == numbered_id(i));
      all = all && !known.empty();
    }
    index->commit("two");
    const std::set<std::string> segments = index->segments();
    if (all) {
      REQUIRE(segments == std::set<std::string>{"one", "two"});
      ++kept;  // a damaged filter is made again
    } else {
      REQUIRE(segments.empty());
      ++emptied;
    }
    require_ok(index->add(numbered_id(1001), sketch(100'100)));
    index->commit("three");
    REQUIRE(index->segments().contains("three"));
    REQUIRE(has_object(*index, 1001));
  }
  CHECK(emptied > 50);
  CHECK(kept > 5);
}

TEST_CASE("a run that was cut short or is gone empties the index", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  const auto files = run_files(directory.path());
  REQUIRE(files.size() == 1);
  SECTION("cut short") { std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) - 1); }
  SECTION("empty") { std::filesystem::resize_file(files[0], 0); }
  SECTION("gone") { std::filesystem::remove(files[0]); }
  const auto index = value_of(FeatureIndex::open(directory.path()));
  CHECK(index->segments().empty());
  add_objects(*index, 0, 100);
  index->commit("one");
  CHECK(has_object(*index, 50));
}

TEST_CASE("a run that is cut short while it is open empties the index", "[feature_index]") {
  const TempDir directory;
  const auto index = value_of(FeatureIndex::open(directory.path()));
  add_objects(*index, 0, 100);
  index->commit("one");
  std::filesystem::resize_file(run_files(directory.path()).at(0), 100);
  add_objects(*index, 100, 10);
  const Sketch wanted = sketch(100);
  const Sketch* const batch[] = {&wanted};
  require_ok(index->prefetch(batch));
  CHECK(index->segments().empty());
  index->commit("two");
  CHECK(index->segments().empty());  // the ten are lost as well
}

TEST_CASE("ids that are missing or rubbish do no harm", "[feature_index]") {
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  SECTION("a short file empties the index") {
    std::filesystem::resize_file(directory / "features-1/ids", 99 * 32);
    const auto index = value_of(FeatureIndex::open(directory.path()));
    CHECK(index->segments().empty());
    CHECK(found(*index, sketch(100)).empty());
  }
  SECTION("a file that shrinks later does too") {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    std::filesystem::resize_file(directory / "features-1/ids", 32);
    CHECK(found(*index, sketch(100)).empty());
    CHECK(index->segments().empty());
  }
  SECTION("rubbish names objects that are not there") {
    ruin(directory / "features-1", "ids");
    const auto index = value_of(FeatureIndex::open(directory.path()));
    CHECK(found(*index, sketch(100)).size() == 1);
  }
}

TEST_CASE("a foreign database in the place of the features is emptied", "[feature_index]") {
  const TempDir directory;
  std::filesystem::create_directories(directory / "features-1/runs/catalogue");
  std::filesystem::create_directories(directory / "features-1/ids");
  std::ofstream(directory / "features-1/runs/catalogue/CURRENT") << "MANIFEST-000099\n";
  const auto index = value_of(FeatureIndex::open(directory.path()));
  add_objects(*index, 0, 10);
  CHECK(has_object(*index, 5));
}

TEST_CASE("a feature index that cannot be made is an error, not a crash", "[feature_index]") {
  const TempDir directory;
  std::ofstream(directory / "file") << "x";
  CHECK_FALSE(FeatureIndex::open(directory / "file"));
}

TEST_CASE("a feature index that cannot be read just now is an error, and keeps what it has",
          "[feature_index]") {
  const std::string part =
      GENERATE(as<std::string>(), "ids", "runs/run-0000000001", "runs/catalogue/LOCK", "runs");
  INFO(part);
  const TempDir directory;
  {
    const auto index = value_of(FeatureIndex::open(directory.path()));
    add_objects(*index, 0, 100);
    index->commit("one");
  }
  const std::string path = directory / ("features-1/" + part);
  std::filesystem::rename(path, directory / "aside");
  std::filesystem::create_symlink(path, path);  // to itself, which not even root can open
  CHECK(code_of(FeatureIndex::open(directory.path())) == ErrorCode::io);
  std::filesystem::remove(path);
  std::filesystem::rename(directory / "aside", path);
  const auto index = value_of(FeatureIndex::open(directory.path()));
  CHECK(index->segments() == std::set<std::string>{"one"});
  for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(has_object(*index, i));
}

TEST_CASE("without a directory there is an index in memory, which forgets what does not fit",
          "[feature_index]") {
  const TempDir directory;
  const std::string parent = GENERATE(as<std::string>(), "", "missing");
  const auto index = FeatureIndex::open_temporary(parent.empty() ? parent : directory / parent, kTiny);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    add_objects(*index, i, 1);
    if (i % 50 == 0) index->commit(std::to_string(i));
  }
  CHECK(found(*index, sketch(100)).empty());
  CHECK(has_object(*index, 999));
  CHECK(index->segments().empty());
  index->clear();
  CHECK(found(*index, sketch(99'900)).empty());
  add_objects(*index, 7, 1);
  CHECK(has_object(*index, 7));
}

TEST_CASE("an object that did not fit into an index in memory does not stand for another",
          "[feature_index]") {
  const auto index = FeatureIndex::open_temporary("", kTiny);
  std::uint64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t oldest = next;
    do {
      REQUIRE(next < 10'000);
      add_objects(*index, next++, 1);
    } while (has_object(*index, oldest));
    const std::uint64_t overflowed = next - 1;
    add_objects(*index, next, 40);  // as many as fit
    CHECK(found(*index, sketch(100 * overflowed)).empty());
    for (std::uint64_t i = next; i < next + 40; ++i) REQUIRE(has_object(*index, i));
    next += 40;
    index->clear();
  }
}

TEST_CASE("an index whose directory is taken away goes on in memory", "[feature_index]") {
  const TempDir directory;
  const auto index = value_of(FeatureIndex::open(directory / "cache", kTiny));
  add_objects(*index, 0, 1000);
  index->commit("one");
  std::filesystem::remove_all(directory / "cache");
  add_objects(*index, 1000, 1000);
  index->commit("two");
  add_objects(*index, 2000, 10);
  CHECK(has_object(*index, 2005));
  CHECK(index->segments().empty());
}

}  // namespace kin::store

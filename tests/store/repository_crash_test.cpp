// A repository through crashes, failing operations, a full disk, and several writers.
#include "store/local_backend.h"
#include "store/repository.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

namespace kin::store {
namespace {

using namespace kin::testing;

using Contents = std::vector<std::pair<ObjectKind, Bytes>>;

// What each snapshot, known by its host, names. Large contents are there to fill packs.
const std::map<std::string, Contents>& script() {
  static const std::map<std::string, Contents> kScript = {
      {"1", {{ObjectKind::data, text_like(1, 1000)}, {ObjectKind::tree, text_like(2, 1000)}}},
      {"2",
       {{ObjectKind::data, random_bytes(3, 9 << 20)},
        {ObjectKind::tree, text_like(4, 500)},
        {ObjectKind::data, random_bytes(5, 8 << 20)},
        {ObjectKind::data, text_like(6, 700)},
        {ObjectKind::list, text_like(7, 300)}}},
      {"3",
       {{ObjectKind::data, text_like(6, 700)},
        {ObjectKind::data, text_like(8, 100)},
        {ObjectKind::tree, text_like(9, 500)}}},
  };
  return kScript;
}

// Writes one snapshot of the script, with a flush on the way.
Result<void> write_snapshot(Repository& repository, const std::string& host) {
  KIN_TRY(repository.begin_writing());
  bool first = true;
  for (const auto& [kind, content] : script().at(host)) {
    KIN_TRY(store_object(repository, content, kind));
    if (std::exchange(first, false)) KIN_TRY(repository.flush());
  }
  KIN_TRY(repository.commit(snapshot_named(host)));
  return {};
}

// All that the snapshots of the repository name is there. Gives their hosts.
std::vector<std::string> check_snapshots(Repository& repository) {
  std::vector<std::string> hosts;
  for (const SnapshotId& id : value_of(repository.list_snapshots())) {
    const Snapshot snapshot = value_of(repository.load_snapshot(id));
    hosts.push_back(snapshot.host);
    for (const auto& [kind, content] : script().at(snapshot.host)) {
      INFO("snapshot " << snapshot.host);
      REQUIRE(loads(repository, repository.id_of(content), content));
    }
  }
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

// Every object that a durable pack holds, whether an index knows it or not.
std::vector<ObjectId> objects_in_packs(FaultyDisk& disk, const Repository& repository) {
  std::vector<ObjectId> out;
  const auto backend = disk.open();
  for (const FileInfo& pack : value_of(backend->list(FileKind::pack)))
    require_ok(scan_pack(repository.sealer(), *backend, pack,
                         [&](const BlockHeader& header, BlockRange) -> Result<void> {
                           for (const BlockObject& object : header.objects) out.push_back(object.id);
                           return {};
                         }));
  return out;
}

}  // namespace

TEST_CASE("after a crash at any step, what snapshots name is there, and the work can go on",
          "[repository][crash]") {
  const TempDir caches;
  bool finished = false;
  int crashes = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    INFO("crash after step " << steps);
    FaultyDisk disk;
    const std::string cache = caches / std::to_string(steps);
    create_repository(disk);
    {
      const auto repository = reopen(disk, cache);
      require_ok(write_snapshot(*repository, "1"));
      disk.crash_after(steps);
      finished = write_snapshot(*repository, "2") && write_snapshot(*repository, "3");
      REQUIRE(finished == !disk.crashed());
      crashes += disk.crashed();
    }
    disk.restart();
    // The same machine comes back with its cache, and another one looks at it without.
    const std::string reader_cache = steps % 2 == 0 ? cache : "";
    {
      const auto repository = reopen(disk, reader_cache);
      const std::vector<std::string> hosts = check_snapshots(*repository);
      REQUIRE_FALSE(hosts.empty());
      CHECK(hosts.front() == "1");
      if (finished) CHECK(hosts == std::vector<std::string>{"1", "2", "3"});

      value_of(repository->begin_writing());
      for (const ObjectId& id : objects_in_packs(disk, *repository))
        CHECK(value_of(repository->contains(id)));
      require_ok(write_snapshot(*repository, "2"));
      require_ok(write_snapshot(*repository, "3"));
    }
    // Nothing was stored twice.
    const auto repository = reopen(disk);
    std::vector<ObjectId> objects = objects_in_packs(disk, *repository);
    std::sort(objects.begin(), objects.end());
    CHECK(std::adjacent_find(objects.begin(), objects.end()) == objects.end());
    const std::vector<std::string> hosts = check_snapshots(*repository);
    for (const char* host : {"1", "2", "3"})
      CHECK(std::find(hosts.begin(), hosts.end(), host) != hosts.end());
  }
  CHECK(crashes >= 15);
}

TEST_CASE("after a crash while a repository is made, it opens or is not there", "[repository][crash]") {
  const Mode mode = GENERATE(Mode::plain, Mode::encrypted);
  bool finished = false;
  int crashes = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    FaultyDisk disk;
    disk.crash_after(steps);
    finished = Repository::create(*disk.open(), password_of(mode), kCheapPassword).has_value();
    crashes += disk.crashed();
    disk.restart();
    const auto opened = open_repository(disk.open());
    INFO(steps);
    if (finished) CHECK(opened.has_value());
    if (!opened) CHECK(code_of(opened) == ErrorCode::no_repository);
    // What is there of it is never overwritten.
    const auto before = disk.files();
    if (!Repository::create(*disk.open(), password_of(mode), kCheapPassword)) CHECK(disk.files() == before);
  }
  CHECK(crashes >= 2);
}

TEST_CASE("a pack that was synced but not indexed is adopted by the next writer", "[repository][crash]") {
  const bool same_cache = GENERATE(true, false);
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  const Bytes content = text_like(1, 1000), tree = text_like(2, 1000);
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->begin_writing());
    value_of(store_object(*repository, content, ObjectKind::data));
    value_of(store_object(*repository, tree, ObjectKind::tree));
    disk.crash_after(6);  // two packs written, put, durable
    CHECK_FALSE(repository->flush());
  }
  disk.restart();
  REQUIRE(disk.names(FileKind::pack).size() == 2);
  REQUIRE(disk.names(FileKind::index).empty());
  {
    const auto repository = reopen(disk, same_cache ? caches / "a" : "");
    const ObjectId id = repository->id_of(content);
    CHECK_FALSE(value_of(repository->contains(id)));
    CHECK(value_of(repository->begin_writing()) == 2);
    CHECK(value_of(repository->contains(id)));
    CHECK_FALSE(value_of(repository->claim(id)));
    CHECK(loads(*repository, id, content));
    CHECK(loads(*repository, repository->id_of(tree), tree));
  }
  const auto other = reopen(disk);
  CHECK(loads(*other, other->id_of(content), content));
  CHECK(value_of(other->begin_writing()) == 0);
}

TEST_CASE("a damaged pack that nobody refers to does not stop a backup", "[repository][crash]") {
  FaultyDisk disk;
  create_repository(disk);
  const Bytes content = text_like(1, 1000);
  {
    const auto repository = reopen(disk);
    value_of(store_object(*repository, content));
    disk.crash_after(3);
    CHECK_FALSE(repository->flush());
  }
  disk.restart();
  const FileName pack = disk.names(FileKind::pack).front();
  const bool cut = GENERATE(true, false);
  cut ? disk.cut(pack, 10) : disk.flip(pack, 40);
  disk.write({FileKind::pack, hex(hash(as_bytes("rubbish")))}, Bytes(5));
  const auto repository = reopen(disk);
  CHECK(value_of(repository->begin_writing()) == 0);
  CHECK(value_of(store_object(*repository, content)) == repository->id_of(content));
  value_of(repository->commit(snapshot_named("h")));
  CHECK(loads(*repository, repository->id_of(content), content));
}

TEST_CASE("after a run that ended well, no pack is read to look for lost ones", "[repository][crash]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->begin_writing());
    value_of(store_object(*repository, text_like(1, 100)));
    value_of(repository->commit(snapshot_named("h")));
  }
  const auto repository = reopen(disk, caches / "a");
  const std::uint64_t lists = disk.count(Operation::list), gets = disk.count(Operation::get);
  CHECK(value_of(repository->begin_writing()) == 0);
  CHECK(disk.count(Operation::list) ==
        lists + 1);  // of packs: those that are missing are known by their names
  CHECK(disk.count(Operation::get) == gets);
}

TEST_CASE("packs that are written after a commit are adopted, too", "[repository][crash]") {
  const bool by_same_process = GENERATE(true, false);
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  auto repository = reopen(disk, caches / "a");
  value_of(repository->begin_writing());
  value_of(store_object(*repository, text_like(1, 100)));
  value_of(repository->commit(snapshot_named("h")));
  if (!by_same_process) {
    repository.reset();
    repository = reopen(disk, caches / "a");
  }
  value_of(store_object(*repository, text_like(2, 100)));
  disk.crash_after(3);  // written, put, and durable
  CHECK_FALSE(repository->flush());
  repository.reset();
  disk.restart();
  CHECK(value_of(reopen(disk, caches / "a")->begin_writing()) == 1);
}

TEST_CASE("who did not look for lost packs does not say that there are none", "[repository][crash]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(store_object(*repository, text_like(1, 100)));
    disk.crash_after(3);
    CHECK_FALSE(repository->flush());
  }
  disk.restart();
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->commit(snapshot_named("h")));
  }
  CHECK(value_of(reopen(disk, caches / "a")->begin_writing()) == 1);
}

TEST_CASE("a cache that is deleted while it is in use is told once, and costs nothing else",
          "[repository][cache]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  int told = 0;
  {
    OpenOptions options;
    options.cache_directory = caches / "a";
    options.on_cache_lost = [&](const Error&) { ++told; };
    const auto repository = value_of(Repository::open(disk.open(), options));
    require_ok(repository->refresh_index());
    value_of(repository->begin_writing());
    for (std::uint64_t i = 0; i < 6; ++i) {
      if (i % 2 == 1) std::filesystem::remove_all(caches / "a");
      value_of(store_object(*repository, text_like(i, 1000)));
      require_ok(repository->flush());
      for (std::uint64_t j = 0; j <= i; ++j) {
        const Bytes content = text_like(j, 1000);
        CHECK(loads(*repository, repository->id_of(content), content));
        CHECK_FALSE(value_of(repository->claim(repository->id_of(content))));
      }
    }
    require_ok(repository->index().record({{"/a", {1}}}));
    value_of(repository->commit(snapshot_named("h")));
  }
  CHECK(told == 1);
  const auto repository = reopen(disk);
  for (std::uint64_t i = 0; i < 6; ++i)
    CHECK(loads(*repository, repository->id_of(text_like(i, 1000)), text_like(i, 1000)));
}

TEST_CASE("a flush that failed once can be tried again, and nothing is lost", "[repository][faults]") {
  const auto [operation, nth] =
      GENERATE(std::pair{Operation::put, 1}, std::pair{Operation::put, 2}, std::pair{Operation::put, 3},
               std::pair{Operation::append, 1}, std::pair{Operation::append, 2},
               std::pair{Operation::sync, 1}, std::pair{Operation::sync, 2});
  INFO("operation " << static_cast<int>(operation) << ", " << nth);
  FaultyDisk disk;
  create_repository(disk);
  const Bytes content = text_like(1, 1000), tree = text_like(2, 1000);
  {
    const auto repository = reopen(disk);
    value_of(repository->begin_writing());
    value_of(store_object(*repository, content, ObjectKind::data));
    value_of(store_object(*repository, tree, ObjectKind::tree));
    disk.fail(operation, static_cast<std::uint64_t>(nth));
    CHECK(code_of(repository->flush()) == ErrorCode::io);
    CHECK(loads(*repository, repository->id_of(content), content));
    CHECK(loads(*repository, repository->id_of(tree), tree));
    CHECK_FALSE(value_of(repository->claim(repository->id_of(content))));
    value_of(repository->commit(snapshot_named("h")));
    CHECK(loads(*repository, repository->id_of(content), content));
  }
  const auto repository = reopen(disk);
  CHECK(loads(*repository, repository->id_of(content), content));
  CHECK(loads(*repository, repository->id_of(tree), tree));
  CHECK(value_of(repository->list_snapshots()).size() == 1);
}

TEST_CASE("a commit that fails leaves no snapshot", "[repository][faults]") {
  for (const std::uint64_t nth : {1, 2, 3}) {
    FaultyDisk disk;
    create_repository(disk);
    {
      const auto repository = reopen(disk);
      value_of(store_object(*repository, text_like(1, 100)));
      disk.fail(Operation::sync, nth);
      CHECK(code_of(repository->commit(snapshot_named("h"))) == ErrorCode::io);
    }
    INFO(nth);
    CHECK(value_of(reopen(disk)->list_snapshots()).empty());
  }
}

TEST_CASE("a full disk is no_space, and the repository stays valid and goes on once there is room",
          "[repository][full]") {
  FaultyDisk disk;
  create_repository(disk);
  {
    const auto repository = reopen(disk);
    require_ok(write_snapshot(*repository, "1"));
  }
  disk.set_quota(disk.used_bytes() + (10 << 20));
  {
    const auto repository = reopen(disk);
    CHECK(code_of(write_snapshot(*repository, "2")) == ErrorCode::no_space);
    // What is there can be read, by this process and by others.
    CHECK(check_snapshots(*repository) == std::vector<std::string>{"1"});
    CHECK(check_snapshots(*reopen(disk)) == std::vector<std::string>{"1"});
    disk.lift_quota();
    require_ok(write_snapshot(*repository, "2"));
    require_ok(write_snapshot(*repository, "3"));
  }
  CHECK(check_snapshots(*reopen(disk)) == std::vector<std::string>{"1", "2", "3"});
}

TEST_CASE("what did not fit is stored again before a snapshot is saved, and what fitted is kept",
          "[repository][full]") {
  FaultyDisk disk;
  create_repository(disk);
  const Bytes content = random_bytes(1, 300'000), tree = text_like(2, 1000);
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  value_of(store_object(*repository, content, ObjectKind::data));
  value_of(store_object(*repository, tree, ObjectKind::tree));
  disk.set_quota(disk.used_bytes() + 100'000);
  CHECK(code_of(repository->flush()) == ErrorCode::no_space);
  // The tree's pack is indexed, and the content's is gone.
  CHECK(disk.names(FileKind::pack).size() == 1);
  CHECK(disk.names(FileKind::index).size() == 1);
  CHECK_FALSE(value_of(repository->contains(repository->id_of(content))));
  CHECK(loads(*repository, repository->id_of(tree), tree));
  disk.lift_quota();
  CHECK(code_of(repository->commit(snapshot_named("h"))) == ErrorCode::no_space);
  value_of(store_object(*repository, random_bytes(3, 300'000), ObjectKind::data));
  disk.fail(Operation::append, 1, ErrorCode::no_space);  // of that, to make room for the next
  CHECK(code_of(store_object(*repository, content, ObjectKind::data)) == ErrorCode::no_space);
  CHECK(code_of(repository->commit(snapshot_named("h"))) == ErrorCode::no_space);
  CHECK(value_of(repository->list_snapshots()).empty());
  SECTION("by who it did not fit for") {
    value_of(store_object(*repository, content, ObjectKind::data));
    value_of(repository->commit(snapshot_named("h")));
  }
  SECTION("by another") {
    const auto other = reopen(disk);
    value_of(store_object(*other, content, ObjectKind::data));
    require_ok(other->flush());
    value_of(repository->commit(snapshot_named("h")));
  }
  CHECK(loads(*reopen(disk), repository->id_of(content), content));
}

TEST_CASE("a disk that is full at any moment leaves a valid repository", "[repository][full]") {
  const Bytes content = text_like(1, 4000), tree = text_like(2, 3000);
  bool finished = false;
  int full = 0;
  for (std::uint64_t room = 0; !finished; room += 1000) {
    FaultyDisk disk;
    create_repository(disk);
    disk.set_quota(disk.used_bytes() + room);
    {
      const auto repository = reopen(disk);
      value_of(repository->begin_writing());
      value_of(store_object(*repository, content, ObjectKind::data));
      value_of(store_object(*repository, tree, ObjectKind::tree));
      const auto committed = repository->commit(snapshot_named("h"));
      finished = committed.has_value();
      INFO(room);
      if (!finished) CHECK(code_of(committed) == ErrorCode::no_space);
      full += !finished;
    }
    const auto repository = reopen(disk);
    for (const SnapshotId& id : value_of(repository->list_snapshots())) {
      value_of(repository->load_snapshot(id));
      CHECK(loads(*repository, repository->id_of(content), content));
      CHECK(loads(*repository, repository->id_of(tree), tree));
    }
  }
  CHECK(full >= 7);
}

TEST_CASE("two processes that write at once both commit, and all of it can be read",
          "[repository][concurrent]") {
  const bool on_disk = GENERATE(false, true);
  const bool share_cache = GENERATE(false, true);
  INFO((on_disk ? "in a directory" : "in memory") << (share_cache ? ", one cache" : ", two caches"));
  FaultyDisk disk;
  const TempDir directory;
  const auto open_backend_here = [&]() -> std::unique_ptr<Backend> {
    if (!on_disk) return disk.open();
    return std::make_unique<LocalBackend>(directory / "repository");
  };
  require_ok(Repository::create(*open_backend_here(), std::nullopt));

  std::vector<std::string> failures(2);
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < 2; ++writer)
    writers.emplace_back([&, writer] {
      const auto run = [&]() -> Result<void> {
        KIN_TRY_ASSIGN(
            const auto repository,
            open_repository(open_backend_here(),
                            directory / (share_cache ? "cache" : "cache" + std::to_string(writer))));
        KIN_TRY(repository->refresh_index());
        KIN_TRY(repository->begin_writing());
        for (std::uint64_t i = 0; i < 60; ++i) {
          // A third of it is what the other one writes, too.
          const std::uint64_t seed = i % 3 == 0 ? i : 1000 * (writer + 1) + i;
          KIN_TRY(store_object(*repository, text_like(seed, 2000),
                               i % 5 == 0 ? ObjectKind::tree : ObjectKind::data));
          if (i % 20 == 19) KIN_TRY(repository->flush());
        }
        KIN_TRY(repository->commit(snapshot_named(std::to_string(writer))));
        return {};
      };
      if (const auto done = run(); !done) failures[writer] = done.error().message();
    });
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == std::vector<std::string>(2));

  const auto repository = value_of(open_repository(open_backend_here()));
  require_ok(repository->refresh_index());
  CHECK(value_of(repository->list_snapshots()).size() == 2);
  std::size_t missing = 0;
  for (std::uint64_t i = 0; i < 60; ++i)
    for (const std::uint64_t writer : {1, 2}) {
      const Bytes content = text_like(i % 3 == 0 ? i : 1000 * writer + i, 2000);
      missing += !loads(*repository, repository->id_of(content), content);
    }
  CHECK(missing == 0);
}

TEST_CASE("after a crash at any step of a new index, all of it can be read or made again",
          "[repository][crash][rebuild]") {
  bool finished = false;
  int crashes = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    FaultyDisk disk;
    create_repository(disk);
    std::vector<std::pair<ObjectId, Bytes>> objects;
    {
      const auto repository = reopen(disk);
      for (std::uint64_t i = 0; i < 4; ++i) {  // four segments, so that the old ones go one by one
        const Bytes content = text_like(i, 200);
        objects.emplace_back(value_of(store_object(*repository, content)), content);
        require_ok(repository->flush());
      }
      disk.crash_after(steps);
      finished = repository->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}).has_value();
      crashes += disk.crashed();
    }
    disk.restart();
    const auto repository = reopen(disk);
    INFO(steps);
    for (const auto& [id, content] : objects) CHECK(loads(*repository, id, content));
  }
  CHECK(crashes >= 5);
}

TEST_CASE("a read that fails while a new index is made costs no object", "[repository][faults][rebuild]") {
  FaultyDisk disk;
  create_repository(disk);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  {
    const auto repository = reopen(disk);
    for (std::uint64_t i = 0; i < 2; ++i) {
      const Bytes content = text_like(i, 200);
      objects.emplace_back(value_of(store_object(*repository, content)), content);
      require_ok(repository->flush());
    }
  }
  bool finished = false;
  for (std::uint64_t nth = 1; !finished; ++nth) {
    const auto repository = reopen(disk);
    const std::uint64_t reads = disk.count(Operation::get);
    disk.fail(Operation::get, nth);
    const auto rebuilt = repository->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {});
    finished = disk.count(Operation::get) - reads < nth;
    disk.restart();  // forgets the failure that was not needed
    const auto reader = reopen(disk);
    INFO("read " << nth << (rebuilt ? " was taken for damage" : " stopped it"));
    for (const auto& [id, content] : objects) REQUIRE(loads(*reader, id, content));
  }
}

}  // namespace kin::store

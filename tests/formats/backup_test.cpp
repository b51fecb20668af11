// Containers through backup, restore and check, over a real Repository in memory.
#include "lib/engine/backup.h"

#include "lib/engine/dry_run_store.h"
#include "lib/engine/restore.h"
#include "store/check.h"
#include "tests/support/edits.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;
using kin::store::Repository;

namespace {

struct Observer : BackupObserver, RestoreObserver {
  void on_skipped(const std::string& path, const Error& error) override { note(path, error); }
  void on_failed(const std::string& path, const Error& error) override { note(path, error); }
  void note(const std::string& path, const Error& error) {
    MutexLock lock(mutex);
    failed[path] = error.message();
  }

  Mutex mutex;
  std::map<std::string, std::string> failed;
};

BackupRequest request_for(const std::string& path) {
  BackupRequest request;
  request.formats = formats::all();
  request.walk.sources = {{path, {"tree"}}};
  request.snapshot.time = {1'700'000'000, 0};
  request.snapshot.paths = {path};
  return request;
}

BackupResult back_up(BlockStore& store, const BackupRequest& request) {
  MemoryResumeLog log;
  Observer observer;
  BackupResult result = value_of(backup(store, log, request, observer, {}));
  CHECK(observer.failed.empty());
  return result;
}

std::map<std::string, std::string> restore_to(Repository& repository, const ObjectId& tree,
                                              const std::string& target, bool verify = true) {
  RestoreRequest request;
  request.formats = formats::all();
  request.tree = tree;
  request.target = target;
  request.verify = verify;
  Observer observer;
  value_of(restore(repository, request, observer, {}));
  return observer.failed;
}

std::uint64_t problems_of(Repository& repository) {
  const store::CheckObserver observer{[](const std::string& problem) { WARN(problem); },
                                      [](const std::string&, std::uint64_t, std::uint64_t) {}};
  return value_of(store::check(repository, {store::ReadSubset::Kind::all}, observer, {})).problems;
}

void check_same(const TempDir& dir, const std::string& a, const std::string& b) {
  run_in(dir, "diff -r " + a + " " + b);
}

// Two versions of a tree, archived.
void make_versions(const TempDir& dir) {
  Random random(3);
  for (int i = 0; i < 40; ++i) {
    const Bytes text = text_like(static_cast<std::uint64_t>(i) + 100, 20000);
    run_in(dir, "mkdir -p v1 v2");
    write_bytes(dir / ("v1/f" + std::to_string(i)), text);
    write_bytes(dir / ("v2/f" + std::to_string(i)), i % 10 == 0 ? edit(text, random, 2) : text);
  }
  run_in(dir,
         "mkdir in && tar -czf in/a.tgz v1 && tar -czf in/b.tgz v2 && cp v1/f3 in/loose &&"
         "(cd v1 && zip -qr ../in/c.zip .) && gzip -c in/c.zip >in/d.gz");
}

}  // namespace

TEST_CASE("containers are backed up, checked and restored exactly", "[containers]") {
  TempDir dir;
  make_versions(dir);
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const BackupResult result = back_up(*repository, request_for(dir / "in"));
  CHECK(restore_to(*repository, result.tree, dir / "out").empty());
  check_same(dir, "in", "out/tree");
  CHECK(problems_of(*repository) == 0);

  SECTION("a file that is there and right passes, one that is not is replaced") {
    run_in(dir, "printf x | dd of=out/tree/a.tgz bs=1 seek=100 conv=notrunc 2>&1");
    CHECK(restore_to(*repository, result.tree, dir / "out").empty());
    check_same(dir, "in", "out/tree");
  }
  SECTION("a kin that does not know the coding says so, of that file alone") {
    RestoreRequest request;
    request.tree = result.tree;
    request.target = dir / "other";
    Observer observer;
    const RestoreStats stats = value_of(restore(*repository, request, observer, {}));
    CHECK(stats.failed == 4);
    CHECK(observer.failed.contains("tree/a.tgz"));
    CHECK_FALSE(observer.failed.contains("tree/loose"));
    run_in(dir, "cmp in/loose other/tree/loose && ! test -e other/tree/a.tgz");
  }
  SECTION("a second backup reads nothing and makes the same tree") {
    BackupRequest request = request_for(dir / "in");
    request.parent_tree = result.tree;
    const BackupResult second = back_up(*repository, request);
    CHECK(second.tree == result.tree);
    CHECK(second.summary.bytes_read == 0);
  }
  SECTION("a dry run after it stores nothing") {
    DryRunStore dry(*repository, repository->features());
    const BackupResult again = back_up(dry, request_for(dir / "in"));
    CHECK(again.summary.objects_added == 0);
    CHECK(again.tree == result.tree);
  }
}

TEST_CASE("a member that is a file elsewhere is stored once, and versions of an archive share",
          "[containers]") {
  TempDir dir;
  make_versions(dir);
  const auto stored = [&](const std::string& command, const Formats& formats) {
    run_in(dir, "rm -rf some && mkdir some && " + command);
    FaultyDisk disk;
    create_repository(disk);
    const auto repository = reopen(disk);
    BackupRequest request = request_for(dir / "some");
    request.formats = formats;
    return back_up(*repository, request).summary.bytes_stored;
  };
  const std::uint64_t one = stored("cp in/a.tgz some", formats::all());
  CHECK(stored("cp in/a.tgz in/loose some", formats::all()) < one + 1000);
  CHECK(stored("cp in/a.tgz in/b.tgz some", formats::all()) < one + one / 10);
  CHECK(stored("cp in/a.tgz in/c.zip some", formats::all()) < one + one / 10);
  CHECK(stored("cp in/c.zip in/d.gz some", formats::all()) < one + one / 5);
  const std::uint64_t closed = stored("cp in/a.tgz in/b.tgz some", {});
  CHECK(closed > one + one / 2);
}

TEST_CASE("one thread and eight store containers in the same packs", "[containers]") {
  TempDir dir;
  make_versions(dir);
  FaultyDisk blank;
  create_repository(blank);
  const Bytes config = value_of(blank.open()->get(store::config_name()));
  std::vector<std::vector<FileName>> packs;
  for (const unsigned jobs : {1U, 8U}) {
    FaultyDisk disk;
    disk.write(store::config_name(), config);
    const auto repository = reopen(disk);
    BackupRequest request = request_for(dir / "in");
    request.jobs = jobs;
    back_up(*repository, request);
    packs.push_back(disk.names(FileKind::pack));
  }
  CHECK_FALSE(packs[0].empty());
  CHECK((packs[0] == packs[1]));
}

TEST_CASE("a backup that was stopped amid containers goes on from there", "[containers]") {
  TempDir dir;
  make_versions(dir);
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  MemoryResumeLog log;
  struct Stopping : BackupObserver {
    void on_entry(const WalkEntry& entry, Change) override {
      if (entry.path.ends_with("a.tgz")) stop.request_stop();
    }
    std::stop_source stop;
  } stopping;
  BackupRequest request = request_for(dir / "in");
  CHECK(code_of(backup(*repository, log, request, stopping, stopping.stop.get_token())) ==
        ErrorCode::cancelled);
  Observer observer;
  const BackupResult result = value_of(backup(*repository, log, request, observer, {}));
  CHECK(restore_to(*repository, result.tree, dir / "out").empty());
  check_same(dir, "in", "out/tree");
}

TEST_CASE("a member that is gone is found by check, and fails its containers alone", "[containers]") {
  TempDir dir;
  write_bytes(dir / "member", random_bytes(1, 300'000));
  run_in(dir, "mkdir in && gzip -c member >a.gz && tar -cf b.tar member && printf loose >c && cp member in");
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk);
  back_up(*repository, request_for(dir / "in"));
  const std::vector<FileName> with_member = disk.names(FileKind::pack);
  run_in(dir, "rm in/member && cp a.gz b.tar c in");
  const BackupResult result = back_up(*repository, request_for(dir / "in"));
  for (const FileName& pack : with_member) disk.erase(pack);
  repository = reopen(disk);
  std::vector<std::string> problems;
  const store::CheckObserver observer{[&](const std::string& problem) { problems.push_back(problem); },
                                      [](const std::string&, std::uint64_t, std::uint64_t) {}};
  value_of(store::check(*repository, {}, observer, {}));
  std::size_t named = 0;
  for (const std::string& problem : problems) named += problem.find("a.gz") != std::string::npos;
  CHECK(named > 0);
  const auto failed = restore_to(*repository, result.tree, dir / "out");
  CHECK(failed.size() == 2);
  CHECK(failed.contains("tree/a.gz"));
  CHECK(failed.contains("tree/b.tar"));
  run_in(dir, "cmp c out/tree/c && ! test -e out/tree/a.gz");
  // The next backup stores it again, and all is well.
  BackupRequest request = request_for(dir / "in");
  request.parent_tree = result.tree;
  const BackupResult healed = back_up(*repository, request);
  CHECK(restore_to(*repository, healed.tree, dir / "healed").empty());
  check_same(dir, "in", "healed/tree");
}

TEST_CASE("a file that fails as a container is kept as it is", "[containers]") {
  TempDir dir;
  run_in(dir, "mkdir in");
  Bytes fake = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
  append(fake, random_bytes(2, 5'000'000));
  write_bytes(dir / "in/fake.gz", fake);
  write_bytes(dir / "in/large", compressible_bytes(3, 60 << 20));
  run_in(dir, "gzip -1 in/large && truncate -s -100 in/large.gz");  // fails when most of it was handed out
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const BackupResult result = back_up(*repository, request_for(dir / "in"));
  CHECK(restore_to(*repository, result.tree, dir / "out").empty());
  check_same(dir, "in", "out/tree");
  CHECK(problems_of(*repository) == 0);
}

// Containers through backup, restore and check, over a real Repository in memory.
#include "lib/engine/backup.h"

#include "lib/engine/dry_run_store.h"
#include "lib/engine/previous_members.h"
#include "lib/engine/restore.h"
#include "store/check.h"
#include "tests/support/edits.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"
#include "tests/support/source_directory.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>

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
  return value_of(store::check(repository, formats::all(), {store::ReadSubset::Kind::all}, observer, {}))
      .problems;
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

TEST_CASE("containers are backed up, checked and restored exactly", "[containers][backup]") {
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
          "[containers][backup]") {
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

TEST_CASE("a changed member has the same member of the earlier container as a base, even without features",
          "[containers][backup]") {
  TempDir dir;
  // Incompressible, and no window of 32 bytes is the same: only who knows the base can tell that it is one.
  const Bytes before = random_bytes(8, 60'000);
  Bytes after = before;
  for (std::size_t i = 20; i < after.size(); i += 24) after[i] ^= 0x55;
  run_in(dir, "mkdir in pack");
  const auto archive = [&](const Bytes& content, const std::string& name) {
    run_in(dir, "rm -rf pack/*");
    write_bytes(dir / ("pack/" + name), content);
    // A member of the same name comes first, then one within another container.
    run_in(dir, "echo short >note && tar -cf in.tar note -C pack " + name +
                    " && gzip -c in.tar >in/a.tgz && rm -f in/b.zip && zip -qj in/b.zip in.tar note");
  };
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  archive(before, "file");
  const BackupResult first = back_up(*repository, request_for(dir / "in"));
  BackupRequest request = request_for(dir / "in");
  request.parent_tree = first.tree;

  SECTION("under its name") {
    archive(after, "file");
    const BackupResult second = back_up(*repository, request);
    CHECK(second.summary.bytes_stored < 45'000);
    CHECK(restore_to(*repository, second.tree, dir / "out").empty());
    check_same(dir, "in", "out/tree");
    CHECK(problems_of(*repository) == 0);
  }
  SECTION("not under another") {
    archive(after, "other");
    CHECK(back_up(*repository, request).summary.bytes_stored > 59'000);
  }
}

TEST_CASE("previous members are told apart by name and order, and bad recipes have none",
          "[containers][backup]") {
  TempDir dir;
  run_in(
      dir,
      "echo one >f && tar -cf t.tar f && echo two >f && tar -rf t.tar f && echo three >g && tar -rf t.tar g");
  OpenedContainer opened = open_container(read_bytes(dir / "t.tar"));
  REQUIRE(opened.extent);
  const auto id_of = [](const std::string& text) { return any_store().id_of(as_bytes(text)); };
  PreviousMembers previous(opened.objects, opened.extent);
  CHECK(data_at(previous.next("f"), 0) == id_of("one\n"));
  CHECK(data_at(previous.next("g"), 0) == id_of("three\n"));
  CHECK(data_at(previous.next("f"), 0) == id_of("two\n"));
  CHECK(previous.next("f").empty());
  CHECK(previous.next("h").empty());

  opened.objects.objects[opened.extent->id].resize(40);
  CHECK(PreviousMembers(opened.objects, opened.extent).next("f").empty());
  opened.objects.objects.clear();
  CHECK(PreviousMembers(opened.objects, opened.extent).next("f").empty());
  CHECK(PreviousMembers(opened.objects, std::nullopt).next("f").empty());
}

TEST_CASE("one thread and eight store containers in the same packs", "[containers][backup]") {
  TempDir dir;
  make_versions(dir);
  // Changed members, whose previous ones are among their candidates.
  run_in(dir,
         "cp -r in later && for i in 1 2 3 4; do echo changed >>v1/f$i; done && tar -czf later/a.tgz v1 &&"
         "printf more >>later/loose");
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
    request.parent_tree = back_up(*repository, request).tree;
    request.walk.sources = {{dir / "later", {"tree"}}};
    back_up(*repository, request);
    packs.push_back(disk.names(FileKind::pack));
  }
  CHECK_FALSE(packs[0].empty());
  CHECK((packs[0] == packs[1]));
}

TEST_CASE("a backup that was stopped amid containers goes on from there", "[containers][backup]") {
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

TEST_CASE("a member that is gone is found by check, and fails its containers alone", "[containers][backup]") {
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
  value_of(store::check(*repository, formats::all(), {}, observer, {}));
  std::size_t named = 0;
  for (const std::string& problem : problems) named += problem.find("a.gz") != std::string::npos;
  CHECK(named > 0);
  const auto failed = restore_to(*repository, result.tree, dir / "out");
  CHECK(failed.size() == 2);
  CHECK(failed.contains("tree/a.gz"));
  REQUIRE(failed.contains("tree/b.tar"));
  CHECK(failed.at("tree/b.tar").find("member member: ") != std::string::npos);
  run_in(dir, "cmp c out/tree/c && ! test -e out/tree/a.gz");
  // The next backup stores it again, and all is well.
  BackupRequest request = request_for(dir / "in");
  request.parent_tree = result.tree;
  const BackupResult healed = back_up(*repository, request);
  CHECK(restore_to(*repository, healed.tree, dir / "healed").empty());
  check_same(dir, "in", "healed/tree");
}

TEST_CASE("a file that fails as a container is kept as it is", "[containers][backup]") {
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
  struct Counter : Observer {
    void on_read(const std::string&, std::uint64_t bytes) override { read += bytes; }
    std::atomic<std::uint64_t> read{0};
  } counter;
  MemoryResumeLog log;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), counter, {}));
  CHECK(counter.failed.empty());
  CHECK(counter.read == result.summary.bytes);  // what is read twice is told once
  CHECK(restore_to(*repository, result.tree, dir / "out").empty());
  check_same(dir, "in", "out/tree");
  CHECK(problems_of(*repository) == 0);
}

TEST_CASE("a check of all data tells that a container does not come out as it went in",
          "[containers][backup]") {
  TempDir dir;
  run_in(dir, "mkdir in && printf 'some words of text, some words' | gzip -n >in/a.gz");
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  // A coding whose rebuilding is another one than it was: as if the code had changed.
  class Nothing : public ByteSource {
    Result<std::size_t> read(std::span<std::uint8_t>) override { return std::size_t{0}; }
  };
  static const Coding kWrong[] = {
      {CodingId::deflate, "deflate",
       [](std::unique_ptr<ByteSource>, std::unique_ptr<ByteSource>, SearchBudget*) {
         return std::unique_ptr<ByteSource>(std::make_unique<Nothing>());
       }}};
  back_up(*repository, request_for(dir / "in"));
  std::vector<std::string> problems;
  const store::CheckObserver observer{[&](const std::string& problem) { problems.push_back(problem); },
                                      [](const std::string&, std::uint64_t, std::uint64_t) {}};
  const store::ReadSubset all{store::ReadSubset::Kind::all};
  CHECK(value_of(store::check(*repository, formats::all(), all, observer, {})).containers == 1);
  CHECK(problems.empty());
  value_of(store::check(*repository, {formats::all().containers, kWrong}, {}, observer, {}));
  CHECK(problems.empty());  // which does not look so closely
  value_of(store::check(*repository, {formats::all().containers, kWrong}, all, observer, {}));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("tree/a.gz") != std::string::npos);
}

// Containers of this project's own pages, by real programs at random levels; some are then appended to, cut,
// spliced or damaged.
void make_at_random(const TempDir& dir, Random& random, int count) {
  static const char* const kMakers[] = {
      "gzip -LEVEL -nc a >OUT",
      "gzip -LEVEL -nc a b >OUT && gzip -nc c >>OUT",
      "tar -cf - a b c | gzip -n -LEVEL >OUT",
      "tar --format=pax -cf OUT c b a",
      "zip -q -LEVEL OUT.zip a b c && mv OUT.zip OUT",
      "zip -q -LEVEL - a b | cat >OUT",
      "tar -cf t a b && zip -q -LEVEL OUT.zip t c && mv OUT.zip OUT",
      "bzip2 -LEVEL -c a >OUT",
      "ar rcD OUT a b c",
      "ls a b c | cpio --quiet -oH newc >OUT",
      ("zip -q -LEVEL z.zip a b && (printf 'From: a\\nSubject: b\\nContent-Transfer-Encoding: base64\\n\\n';"
       " base64 z.zip) >OUT; rm z.zip"),
  };
  const std::string pages = source_directory() + "/docs/";
  for (int i = 0; i < count; ++i) {
    for (const char* name : {"a", "b", "c"}) {
      static const char* const kPages[] = {"cli.md", "format.md", "similarity.md", "architecture.md"};
      Bytes page = read_bytes(pages + kPages[random.below(std::size(kPages))]);
      if (random.below(2) == 0) page = edit(std::move(page), random, 1 + static_cast<int>(random.below(5)));
      write_bytes(dir / name, page);
    }
    std::string command = kMakers[random.below(std::size(kMakers))];
    const auto replace = [&](const std::string& what, const std::string& with) {
      for (std::size_t at = 0; (at = command.find(what, at)) != std::string::npos; at += with.size())
        command.replace(at, what.size(), with);
    };
    const std::string out = "in/" + std::to_string(i);
    run_in(dir, "rm -f " + out + " && touch -d @1700000000 a b c");  // the same for the same seed
    replace("OUT", out);
    replace("LEVEL", std::to_string(1 + random.below(9)));
    run_in(dir, command);
    Bytes bytes = read_bytes(dir / out);
    const std::size_t place = random.below(bytes.size());
    switch (random.below(8)) {
      case 0:
        append(bytes, random_bytes(random.next(), 1 + random.below(3000)));
        break;
      case 1:
        append(bytes, Bytes(bytes));
        break;
      case 2:
        bytes.resize(place);
        break;
      case 3:
        bytes[place] ^= 0x10;
        break;
      case 4: {  // the rest is another's
        if (i == 0) break;
        const Bytes other =
            read_bytes(dir / ("in/" + std::to_string(random.below(static_cast<std::uint64_t>(i)))));
        bytes.resize(place);
        append(bytes, ByteView(other).subspan(std::min(place, other.size())));
        break;
      }
      default:
        break;
    }
    write_bytes(dir / out, bytes);
  }
}

TEST_CASE("containers made again, appended to, cut and spliced at random come back", "[containers][backup]") {
  const std::uint64_t seed = GENERATE(1, 2);
  CAPTURE(seed);
  TempDir dir;
  run_in(dir, "mkdir in");
  Random random(seed);
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  BackupRequest request = request_for(dir / "in");
  for (int version = 0; version < 3; ++version) {
    make_at_random(dir, random, 25);
    const BackupResult result = back_up(*repository, request);
    request.parent_tree = result.tree;
    const std::string out = "out" + std::to_string(version);
    CHECK(restore_to(*repository, result.tree, dir / out).empty());
    check_same(dir, "in", out + "/tree");
  }
  CHECK(problems_of(*repository) == 0);
}

TEST_CASE("a container that grows while it is read is kept as far as it went at first",
          "[containers][backup]") {
  TempDir dir;
  run_in(dir, "mkdir in");
  write_bytes(dir / "member", random_bytes(5, 40 << 20));  // too large to be held until all of it is known
  run_in(dir, "tar -cf in/a.tar member && cp in/a.tar before");
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  struct Writer : Observer {
    void on_read(const std::string& path, std::uint64_t) override {
      if (times++ > 20) return;
      std::ofstream(path, std::ios::app | std::ios::binary) << std::string(1 << 20, 'x');
    }
    std::atomic<int> times = 0;
  } writer;
  MemoryResumeLog log;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), writer, {}));
  CHECK(writer.failed.size() == 1);  // told, as of any file that changes
  CHECK(restore_to(*repository, result.tree, dir / "out").empty());
  run_in(dir, "cmp before out/tree/a.tar");
}

// What no snapshot needs goes; what one needs never does, whoever else is at work and wherever it stops.
#include "store/prune.h"

#include "lib/engine/backup.h"
#include "lib/engine/restore.h"
#include "lib/object/tree.h"
#include "store/marks.h"
#include "tests/support/backup_request.h"
#include "tests/support/edits.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>

namespace kin::testing {
namespace {

using store::Prune;
using store::PruneOptions;
using store::PruneReport;
using store::Repository;

constexpr int kGenerations = 5;

struct Quiet : BackupObserver, RestoreObserver {};

using Files = std::map<std::string, Bytes>;

// Directories that resemble each other: some files stay, some change, some go and some come.
class Generations {
 public:
  Generations() {
    Random random(7);
    Files files;
    for (std::uint64_t i = 0; i < 12; ++i) files["small" + std::to_string(i)] = text_like(i, 4'000);
    for (std::uint64_t i = 0; i < 3; ++i) files["large" + std::to_string(i)] = text_like(100 + i, 300'000);
    for (int generation = 0; generation < kGenerations; ++generation) {
      files["only" + std::to_string(generation)] =
          random_bytes(static_cast<std::uint64_t>(generation), 70'000);
      files.erase("only" + std::to_string(generation - 1));
      std::filesystem::create_directories(path(generation));
      for (const auto& [name, bytes] : files)
        std::ofstream(path(generation) + "/" + name, std::ios::binary) << as_text(bytes);
      contents_.push_back(files);
      int number = 0;
      for (auto& [name, bytes] : files)
        if (++number % 3 == generation % 3) bytes = edit(std::move(bytes), random, 2);
    }
  }

  std::string path(int generation) const { return dir_ / std::to_string(generation); }

  Result<SnapshotId> back_up(Repository& repository, int generation) const {
    KIN_TRY(repository.begin_writing());
    MemoryResumeLog log;
    Quiet observer;
    KIN_TRY_ASSIGN(const BackupResult result,
                   backup(repository, log, request_for(path(generation)), observer, {}));
    return *result.snapshot;
  }

  // All snapshots, by one who has only what is on the disk.
  void require_restorable(FaultyDisk& disk, std::size_t count) {
    const auto repository = reopen(disk);
    const auto ids = value_of(repository->list_snapshots());
    CHECK(ids.size() == count);
    for (const SnapshotId& id : ids) {
      const Snapshot snapshot = value_of(repository->load_snapshot(id));
      const int generation = std::stoi(snapshot.paths.at(0).substr(snapshot.paths.at(0).rfind('/') + 1));
      RestoreRequest request;
      request.tree = snapshot.tree;
      request.target = dir_ / ("out" + std::to_string(++outputs_));
      Quiet observer;
      CHECK(value_of(restore(*repository, request, observer, {})).failed == 0);
      for (const auto& [name, bytes] : contents_[static_cast<std::size_t>(generation)])
        CHECK(value_of(read_file(request.target + "/tree/" + name, 1 << 20)) == bytes);
      std::filesystem::remove_all(request.target);
    }
  }

 private:
  TempDir dir_;
  std::vector<Files> contents_;
  int outputs_ = 0;
};

using OnProgress = std::function<void(std::string_view)>;

Result<PruneReport> prune(Repository& repository, std::uint64_t grace, const OnProgress& on_progress = {}) {
  PruneOptions options;
  options.grace = grace;
  options.most_unused_share = 0;
  Prune work(repository, options, [&](std::string_view doing, std::uint64_t, std::uint64_t) {
    if (on_progress) on_progress(doing);
  });
  return work.run({});
}

Result<PruneReport> prune(FaultyDisk& disk, std::uint64_t grace, const OnProgress& on_progress = {}) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(disk.open()));
  return prune(*repository, grace, on_progress);
}

std::uint64_t pack_bytes(const FaultyDisk& disk) {
  std::uint64_t out = 0;
  for (const auto& [name, bytes] : disk.files())
    if (name.kind == store::FileKind::pack) out += bytes.size();
  return out;
}

// Backups of all generations; all but the last two are forgotten.
std::vector<SnapshotId> fill(FaultyDisk& disk, const Generations& generations) {
  create_repository(disk);
  std::vector<SnapshotId> ids;
  for (int generation = 0; generation < kGenerations; ++generation)
    ids.push_back(value_of(generations.back_up(*reopen(disk), generation)));
  const auto repository = reopen(disk);
  for (std::size_t i = 0; i + 2 < ids.size(); ++i) require_ok(repository->forget_snapshot(ids[i]));
  return ids;
}

}  // namespace

TEST_CASE("a prune marks what is needless, and the next one removes it", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  const std::uint64_t before = pack_bytes(disk);
  const PruneReport first = value_of(prune(disk, 1));
  CHECK(first.removed.packs == 0);
  CHECK(first.marked.packs > 0);
  CHECK(pack_bytes(disk) >= before);
  generations.require_restorable(disk, 2);
  const PruneReport second = value_of(prune(disk, 1));
  CHECK(second.removed.packs == first.marked.packs);
  CHECK(second.removed.bytes == first.marked.bytes);
  CHECK(second.forgotten_removed == kGenerations - 2);
  CHECK(disk.names(store::FileKind::forgotten).empty());
  generations.require_restorable(disk, 2);
  require_sound(disk);

  // What is left is about what these two take alone.
  FaultyDisk fresh;
  create_repository(fresh);
  for (int generation = kGenerations - 2; generation < kGenerations; ++generation)
    value_of(generations.back_up(*reopen(fresh), generation));
  CHECK(pack_bytes(disk) < pack_bytes(fresh) * 11 / 10);
  // And again there is nothing to do.
  CHECK(value_of(prune(disk, 0)).removed.packs == 0);
  CHECK(disk.names(store::FileKind::mark).size() == 1);
}

TEST_CASE("a rewritten pack that comes out as one that is there replaces the others", "[repository][prune]") {
  // Which of two places counts follows from the keys and from hashes.
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    INFO("seed " << seed);
    FaultyDisk disk;
    create_repository(disk);
    const Bytes first = random_bytes(3 * seed, 8'000), second = random_bytes(3 * seed + 1, 8'000),
                dead = random_bytes(3 * seed + 2, 8'000);
    std::vector<std::vector<Bytes>> packs{{first, dead}, {second, first}};
    if (seed % 2 == 0) std::swap(packs[1][0], packs[1][1]);
    for (const auto& contents : packs) {
      const auto writer = value_of(open_repository(disk.open()));
      for (const Bytes& content : contents) value_of(writer->append(plain_block(*writer, {content})));
      require_ok(writer->flush());
    }
    {
      const auto writer = reopen(disk);
      Snapshot snapshot = snapshot_named("here");
      TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(*writer, bytes, kind); });
      for (const Bytes* content : {&first, &second}) {
        Node node;
        node.name = content == &first ? "a" : "b";
        node.type = NodeType::file;
        node.size = content->size();
        node.content = {{Extent::Kind::data, content->size(), writer->id_of(*content)}};
        require_ok(tree.add(node));
      }
      snapshot.tree = value_of(tree.finish());
      value_of(writer->commit(snapshot));
    }
    for (int i = 0; i < 3; ++i) value_of(prune(disk, 0));
    CHECK(pack_bytes(disk) < 18'000);
    require_sound(disk);
  }
}

TEST_CASE("a dry run of a prune changes nothing", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  const auto before = disk.files();
  const auto repository = reopen(disk);
  PruneOptions options;
  options.dry_run = true;
  options.grace = 0;
  Prune work(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {});
  CHECK(value_of(work.run({})).removed.packs > 0);
  CHECK(disk.files() == before);
}

TEST_CASE("wherever a prune stops, nothing is lost and the next one ends it", "[repository][prune][crash]") {
  Generations generations;
  const std::uint64_t grace = GENERATE(std::uint64_t{0}, std::uint64_t{1});
  FaultyDisk model;
  fill(model, generations);
  const auto files = model.files();
  bool finished = false;
  int crashes = 0;
  std::uint64_t least = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    INFO("crash after step " << steps << ", grace " << grace);
    FaultyDisk disk;
    for (const auto& [name, bytes] : files) disk.write(name, bytes);
    disk.crash_after(steps);
    finished = prune(disk, grace).has_value() && prune(disk, grace).has_value();
    crashes += disk.crashed();
    disk.restart();
    generations.require_restorable(disk, 2);
    // Those who write and who forget go on as if nothing had been.
    value_of(generations.back_up(*reopen(disk), 0));
    generations.require_restorable(disk, 3);
    for (int i = 0; i < 4; ++i) value_of(prune(disk, grace));
    generations.require_restorable(disk, 3);
    require_sound(disk);
    if (steps == 1) least = pack_bytes(disk);
    CHECK(pack_bytes(disk) < least * 21 / 20);
  }
  CHECK(crashes >= 15);
}

TEST_CASE("a snapshot that comes while a prune looks is spared", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  // It began before, and took all that was forgotten for stored.
  const auto writer = reopen(disk);
  bool done = false;
  const auto report = value_of(prune(disk, 0, [&](std::string_view doing) {
    if (doing == "looking at snapshots" && !std::exchange(done, true))
      value_of(generations.back_up(*writer, 0));
  }));
  CHECK(done);
  CHECK(report.marked.packs + report.removed.packs > 0);
  generations.require_restorable(disk, 3);
  require_sound(disk);
}

TEST_CASE("who finishes a backup after a prune removed what it needs is told to run it again",
          "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  const auto writer = reopen(disk);
  value_of(writer->begin_writing());
  // All of it counts as stored there.
  CHECK(value_of(prune(disk, 0)).removed.packs > 0);
  const auto made = generations.back_up(*writer, 1);
  if (!made) {
    CHECK(made.error().code() == ErrorCode::busy);
    CHECK_THAT(made.error().message(), Catch::Contains("run it again"));
    generations.require_restorable(disk, 2);
    value_of(generations.back_up(*reopen(disk), 1));
  }
  generations.require_restorable(disk, 3);
  require_sound(disk);
}

TEST_CASE("who begins after a mark does not lean on what is marked", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  CHECK(value_of(prune(disk, 1)).marked.packs > 0);
  const auto writer = reopen(disk);
  value_of(writer->begin_writing());
  CHECK(value_of(prune(disk, 1)).removed.packs > 0);
  value_of(generations.back_up(*writer, 0));
  generations.require_restorable(disk, 3);
  require_sound(disk);
}

TEST_CASE("of two prunes at once, one gives way", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  bool done = false;
  const std::string_view at = GENERATE("looking at snapshots", "rewriting packs");
  const auto report = prune(disk, 0, [&](std::string_view doing) {
    if (doing == at && !std::exchange(done, true)) value_of(prune(disk, 0));
  });
  CHECK(done);
  REQUIRE_FALSE(report);
  CHECK(report.error().code() == ErrorCode::busy);
  generations.require_restorable(disk, 2);
  value_of(prune(disk, 0));
  generations.require_restorable(disk, 2);
  require_sound(disk);
}

TEST_CASE("a forgotten snapshot can be brought back until it is swept", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  const auto ids = fill(disk, generations);
  value_of(prune(disk, 1));
  require_ok(reopen(disk)->recall_snapshot(ids[0]));
  generations.require_restorable(disk, 3);
  value_of(prune(disk, 1));
  value_of(prune(disk, 1));
  generations.require_restorable(disk, 3);
  const auto recalled = reopen(disk)->recall_snapshot(ids[1]);
  REQUIRE_FALSE(recalled);
  CHECK(recalled.error().code() == ErrorCode::not_found);
  require_sound(disk);
}

TEST_CASE("a snapshot does not come back without what it needs", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  const auto ids = fill(disk, generations);
  const auto late = reopen(disk);
  // Someone has a copy of the file and puts it back after the sweep.
  const store::FileName name{store::FileKind::forgotten, ids[0].hex()};
  const Bytes file = disk.file(name);
  value_of(prune(disk, 0));
  disk.write(name, file);
  const auto recalled =
      GENERATE(true, false) ? late->recall_snapshot(ids[0]) : reopen(disk)->recall_snapshot(ids[0]);
  CHECK_FALSE(recalled);
  generations.require_restorable(disk, 2);
}

TEST_CASE("a reader goes on while packs are rewritten and removed", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  const auto ids = fill(disk, generations);
  const auto reader = reopen(disk, "", 0);
  const Snapshot snapshot = value_of(reader->load_snapshot(ids.back()));
  const PruneReport report = value_of(prune(disk, 0));
  CHECK(report.rewritten.packs > 0);
  CHECK(report.removed.packs >= report.rewritten.packs);
  TempDir out;
  RestoreRequest request;
  request.tree = snapshot.tree;
  request.target = out / "here";
  Quiet observer;
  CHECK(value_of(restore(*reader, request, observer, {})).failed == 0);
}

TEST_CASE("where anything cannot be read, nothing is removed", "[repository][prune]") {
  Generations generations;
  FaultyDisk disk;
  fill(disk, generations);
  const auto before = disk.files();
  const bool flips = GENERATE(true, false);
  for (const auto& [name, bytes] : before) {
    if (name.kind == store::FileKind::config || name.kind == store::FileKind::key) continue;
    INFO(name.text());
    if (flips)
      disk.flip(name, bytes.size() / 2);
    else
      disk.cut(name, bytes.size() / 2);
    // A pack that nothing is read of may be damaged: then it goes, or stays as it is.
    const auto report = prune(disk, 0);
    disk.heal();
    for (const auto& [kept, ignored] : before)
      if (!report) CHECK(disk.files().contains(kept));
    generations.require_restorable(disk, 2);
    for (const auto& [kept, content] : before) disk.write(kept, content);
    for (const auto& [other, ignored] : disk.files())
      if (!before.contains(other)) disk.erase(other);
  }
}

TEST_CASE("marks say of no generation that it is the last there can be", "[prune]") {
  store::Marks marks;
  marks.generation = marks.last_sweep = 7;
  CHECK(value_of(store::decode_marks(store::encode_marks(marks))) == marks);
  marks.generation = ~std::uint64_t{0};
  CHECK_FALSE(store::decode_marks(store::encode_marks(marks)));
}

}  // namespace kin::testing

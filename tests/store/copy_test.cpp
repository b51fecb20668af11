// A copy has all that its snapshots have, as it was stored, and nothing else; the next one adds what is new.
#include "store/copy.h"

#include "lib/engine/backup.h"
#include "lib/engine/restore.h"
#include "store/prune.h"
#include "tests/support/backup_request.h"
#include "tests/support/copied_repositories.h"
#include "tests/support/edits.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

namespace kin::testing {
namespace {

using store::CopyReport;

struct SilentObserver : BackupObserver, RestoreObserver {};

constexpr int kBackups = 4;

// Generations of files that resemble each other, small ones for groups and large ones; backed up by the
// engine.
class RealBackups {
 public:
  explicit RealBackups(Mode mode) {
    create_repository(disk, mode);
    Random random(11);
    NamedContents files;
    for (std::uint64_t i = 0; i < 12; ++i) files["small" + std::to_string(i)] = text_like(i, 4'000);
    for (std::uint64_t i = 0; i < 3; ++i) files["large" + std::to_string(i)] = text_like(100 + i, 300'000);
    for (int generation = 0; generation < kBackups; ++generation) {
      files["only" + std::to_string(generation)] =
          random_bytes(static_cast<std::uint64_t>(generation), 70'000);
      files.erase("only" + std::to_string(generation - 1));
      const std::filesystem::path path = dir_ / std::to_string(generation);
      std::filesystem::create_directories(path / "below");
      for (const auto& [name, bytes] : files) {
        std::ofstream(path / name, std::ios::binary) << as_text(bytes);
        std::ofstream(path / "below" / name, std::ios::binary) << as_text(bytes) << "and more";
      }
      for (auto& [name, bytes] : files) bytes = edit(std::move(bytes), random, 2);
    }
  }

  SnapshotId back_up(int generation) {
    const auto repository = reopen(disk);
    value_of(repository->begin_writing());
    MemoryResumeLog log;
    SilentObserver observer;
    BackupRequest request = request_for(dir_ / std::to_string(generation));
    request.snapshot.time.seconds += generation;
    request.snapshot.tags = {"tag" + std::to_string(generation)};
    return *value_of(backup(*repository, log, request, observer, {})).snapshot;
  }

  std::vector<SnapshotId> back_up_all() {
    std::vector<SnapshotId> out;
    for (int generation = 0; generation < kBackups; ++generation) out.push_back(back_up(generation));
    return out;
  }

  // Restores it from there, and compares it with what was backed up.
  void require_restorable(FaultyDisk& from, const SnapshotId& id, int generation) {
    const auto repository = reopen(from);
    RestoreRequest request;
    request.tree = value_of(repository->load_snapshot(id)).tree;
    request.target = dir_ / "out";
    SilentObserver observer;
    CHECK(value_of(restore(*repository, request, observer, {})).failed == 0);
    const std::filesystem::path original = dir_ / std::to_string(generation);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(original)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = entry.path().lexically_relative(original);
      CHECK(value_of(read_file(request.target + "/tree/" + name, 1 << 20)) ==
            value_of(read_file(entry.path(), 1 << 20)));
      ++files;
    }
    CHECK(files == 32);
    std::filesystem::remove_all(request.target);
  }

  FaultyDisk disk;

 private:
  TempDir dir_;
};

struct StoredBlock {
  std::uint8_t codec;
  bool is_delta;
  std::uint64_t content_size, payload_size, objects;
  auto operator<=>(const StoredBlock&) const = default;
};

// Of content, with their payloads' sizes.
std::multiset<StoredBlock> content_blocks(FaultyDisk& disk) {
  const auto repository = reopen(disk);
  std::multiset<StoredBlock> out;
  for (const store::FileName& name : disk.names(store::FileKind::pack)) {
    const store::FileInfo file{name.name, disk.file(name).size()};
    require_ok(store::scan_pack(repository->sealer(), repository->backend(), file,
                                [&](const BlockHeader& header, store::BlockRange range) -> Result<void> {
                                  if (is_metadata(header.objects.front().kind)) return {};
                                  const std::uint64_t others =
                                      8 + encode_block_header(header).size() + 32;  // sizes, header, two tags
                                  out.insert({header.codec, header.base.has_value(), header.content_size,
                                              range.size - others, header.objects.size()});
                                  return {};
                                }));
  }
  return out;
}

std::uint64_t deltas_among(const std::multiset<StoredBlock>& blocks) {
  return static_cast<std::uint64_t>(
      std::count_if(blocks.begin(), blocks.end(), [](const StoredBlock& block) { return block.is_delta; }));
}

std::size_t index_of(const std::vector<SnapshotId>& all, const SnapshotId& id) {
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), id) - all.begin());
}

}  // namespace

TEST_CASE("a copy restores as what it is a copy of, and a second one adds nothing", "[repository][copy]") {
  const Mode from = GENERATE(Mode::plain, Mode::encrypted), to = GENERATE(Mode::plain, Mode::encrypted);
  RealBackups source(from);
  const std::vector<SnapshotId> ids = source.back_up_all();
  FaultyDisk target;
  create_repository(target, to);
  const auto source_files = source.disk.files();
  CopyOutcome outcome;
  const CopyReport report = value_of(copy_all(source.disk, target, &outcome));
  CHECK(report.copied == kBackups);
  CHECK(report.there + report.left_out == 0);
  CHECK(outcome.copied == ids);
  CHECK(source.disk.files() == source_files);
  require_sound(target);
  const auto repository = reopen(target), original = reopen(source.disk);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    source.require_restorable(target, outcome.copies[i], static_cast<int>(i));
    const Snapshot was = value_of(original->load_snapshot(ids[i]));
    Snapshot is = value_of(repository->load_snapshot(outcome.copies[i]));
    CHECK(is.original == ids[i]);
    CHECK(is.tree != was.tree);
    is.original.reset();
    is.tree = was.tree;
    CHECK(encode_snapshot(is) == encode_snapshot(was));
  }

  const auto before = target.files();
  CopyOutcome again;
  const CopyReport nothing = value_of(copy_all(source.disk, target, &again));
  CHECK(nothing.copied == 0);
  CHECK(nothing.there == kBackups);
  CHECK(again.there == ids);
  CHECK(target.files() == before);
}

TEST_CASE("every block of content is copied as it is stored, so that deltas stay deltas",
          "[repository][copy]") {
  RealBackups source(Mode::encrypted);
  source.back_up_all();
  FaultyDisk target;
  create_repository(target, Mode::encrypted);
  const CopyReport report = value_of(copy_all(source.disk, target));
  const auto blocks = content_blocks(source.disk);
  CHECK(deltas_among(blocks) > 10);
  CHECK(content_blocks(target) == blocks);
  CHECK(report.content.deltas_kept == deltas_among(blocks));
  CHECK(report.content.deltas_replaced == 0);
}

TEST_CASE("the next copy reads and adds only what is new", "[repository][copy]") {
  RealBackups source(Mode::plain);
  for (int generation = 0; generation + 1 < kBackups; ++generation) source.back_up(generation);
  FaultyDisk target;
  create_repository(target, Mode::encrypted);
  const CopyReport first = value_of(copy_all(source.disk, target));
  const SnapshotId last = source.back_up(kBackups - 1);
  CopyOutcome outcome;
  const CopyReport next = value_of(copy_all(source.disk, target, &outcome));
  CHECK(outcome.copied == std::vector<SnapshotId>{last});
  CHECK(next.there == kBackups - 1);
  // 70,000 bytes are random; the rest are deltas of what is there.
  CHECK(next.content.read_bytes < 90'000);
  CHECK(first.content.read_bytes > 250'000);
  CHECK(next.content.deltas_kept > 10);
  CHECK(next.content.deltas_replaced == 0);
  CHECK(content_blocks(target) == content_blocks(source.disk));
  source.require_restorable(target, outcome.copies.front(), kBackups - 1);
  require_sound(target);
}

TEST_CASE("one snapshot is copied without what only others have", "[repository][copy]") {
  RealBackups source(Mode::plain);
  const std::vector<SnapshotId> ids = source.back_up_all();
  FaultyDisk target;
  create_repository(target);
  CopyOutcome outcome;
  const CopyReport report = value_of(copy_all(source.disk, target, &outcome, {ids[2]}));
  CHECK(outcome.copied == std::vector<SnapshotId>{ids[2]});
  CHECK(report.content.deltas_replaced > 0);
  source.require_restorable(target, outcome.copies.front(), 2);
  require_sound(target);
  // Nothing is there that a prune would remove.
  store::PruneOptions options;
  options.dry_run = true;
  options.grace = 0;
  const auto pruned = value_of(store::Prune(*reopen(target), options, [](auto...) {}).run({}));
  CHECK(pruned.removed.packs == 0);
  CHECK(pruned.unused_bytes == 0);
  // The others come later, in whatever order.
  value_of(copy_all(source.disk, target, &outcome, {ids[3]}));
  value_of(copy_all(source.disk, target, &outcome));
  CHECK(outcome.copied.size() == kBackups);
  for (std::size_t i = 0; i < outcome.copied.size(); ++i)
    source.require_restorable(target, outcome.copies[i], static_cast<int>(index_of(ids, outcome.copied[i])));
  require_sound(target);
}

TEST_CASE("a base that nobody asked for does not come along, unless it is there", "[repository][copy]") {
  FaultyDisk source;
  create_repository(source, Mode::encrypted);
  const Bytes old_content = text_like(1, 50'000);
  Bytes new_content = old_content;
  new_content[25'000] ^= 1;
  SnapshotId old_snapshot, new_snapshot;
  {
    const auto repository = reopen(source);
    value_of(repository->begin_writing());
    const ObjectId base = value_of(store_object(*repository, old_content));
    old_snapshot = value_of(commit_nodes(*repository, {file_of("a", base, old_content.size())}, 1));
    const EncodedBlock delta = delta_block(*repository, base, old_content, new_content);
    const ObjectId id = delta.header.objects.front().id;
    CHECK(value_of(repository->claim(id)));
    value_of(repository->append(delta));
    new_snapshot = value_of(commit_nodes(*repository, {file_of("a", id, new_content.size())}, 2));
  }
  SECTION("it is not there") {
    FaultyDisk target;
    create_repository(target);
    const CopyReport report = value_of(copy_all(source, target, nullptr, {new_snapshot}));
    CHECK(report.content.deltas_kept == 0);
    CHECK(report.content.deltas_replaced == 1);
    const auto repository = reopen(target);
    CHECK_FALSE(value_of(repository->contains(repository->id_of(old_content))));
    CHECK(files_of(target, copies_in(target).at(new_snapshot)) == NamedContents{{"a", new_content}});
    // When it comes, it is a delta of what has come before it.
    value_of(copy_all(source, target, nullptr, {old_snapshot}));
    CHECK(files_of(target, copies_in(target).at(old_snapshot)) == NamedContents{{"a", old_content}});
    require_sound(target);
  }
  SECTION("it came with an earlier copy") {
    FaultyDisk target;
    create_repository(target);
    value_of(copy_all(source, target, nullptr, {old_snapshot}));
    const CopyReport report = value_of(copy_all(source, target, nullptr, {new_snapshot}));
    CHECK(report.content.deltas_kept == 1);
    CHECK(report.content.deltas_replaced == 0);
    require_sound(target);
  }
  SECTION("it came by itself") {
    FaultyDisk target;
    create_repository(target);
    commit_files(target, {{"other", old_content}}, 5);
    const CopyReport report = value_of(copy_all(source, target, nullptr, {new_snapshot}));
    CHECK(report.content.deltas_kept == 1);
    CHECK(files_of(target, copies_in(target).at(new_snapshot)) == NamedContents{{"a", new_content}});
    require_sound(target);
  }
}

TEST_CASE("a copy that comes back to where it is from is there already", "[repository][copy]") {
  FaultyDisk source, target;
  create_repository(source);
  create_repository(target, Mode::encrypted);
  commit_files(source, {{"a", random_bytes(1, 100)}}, 1);
  value_of(copy_all(source, target));
  const CopyReport back = value_of(copy_all(target, source));
  CHECK(back.copied == 0);
  CHECK(back.there == 1);
}

TEST_CASE("a snapshot with other tags is there already, and one that was repaired is not",
          "[repository][copy]") {
  FaultyDisk source, target;
  create_repository(source);
  create_repository(target);
  const SnapshotId id = commit_files(source, {{"a", random_bytes(1, 100)}}, 1);
  value_of(copy_all(source, target));
  {
    const auto repository = reopen(source);
    Snapshot tagged = value_of(repository->load_snapshot(id));
    tagged.tags = {"kept"};
    tagged.original = id;
    value_of(repository->replace_snapshot(id, tagged));
  }
  CHECK(value_of(copy_all(source, target)).there == 1);
  {
    const auto repository = reopen(target);
    const SnapshotId copy = value_of(repository->list_snapshots()).front();
    Snapshot repaired = value_of(repository->load_snapshot(copy));
    repaired.tags = {"repaired"};
    repaired.summary.files = 0;
    value_of(repository->replace_snapshot(copy, repaired));
  }
  CHECK(value_of(copy_all(source, target)).copied == 1);
  CHECK(value_of(reopen(target)->list_snapshots()).size() == 2);
}

TEST_CASE("a copy names its parent's copy, if there is one", "[repository][copy]") {
  FaultyDisk source, target;
  create_repository(source);
  create_repository(target);
  const SnapshotId first = commit_files(source, {{"a", random_bytes(1, 100)}}, 1);
  const auto repository = reopen(source);
  Snapshot next = value_of(repository->load_snapshot(first));
  next.time.seconds = 2;
  next.parent = first;
  const SnapshotId second = value_of(repository->save_snapshot(next));
  next.time.seconds = 3;
  next.parent = SnapshotId{store::random_key()};
  const SnapshotId third = value_of(repository->save_snapshot(next));
  value_of(copy_all(source, target));
  const auto copies = copies_in(target);
  const auto there = reopen(target);
  CHECK(value_of(there->load_snapshot(copies.at(second))).parent == copies.at(first));
  CHECK_FALSE(value_of(there->load_snapshot(copies.at(third))).parent);
}

TEST_CASE("a repository is not copied into itself, nor into one that is read-only", "[repository][copy]") {
  FaultyDisk source, target;
  create_repository(source);
  create_repository(target);
  const SnapshotId id = commit_files(source, {{"a", random_bytes(1, 100)}}, 1);
  CHECK(code_of(copy_all(source, source)) == ErrorCode::invalid_argument);
  require_ok(reopen(target)->set_access(store::Access::read_only));
  const auto before = target.files();
  CHECK(code_of(copy_all(source, target)) == ErrorCode::refused);
  CHECK(target.files() == before);
  // Rehearsing is reading.
  CHECK(value_of(copy_all(*reopen(source), *reopen(target), nullptr, {}, true)).copied == 1);
  CHECK(target.files() == before);
  require_ok(reopen(target)->set_access(store::Access::append_only));
  require_ok(reopen(source)->set_access(store::Access::read_only));
  CHECK(value_of(copy_all(source, target)).copied == 1);
  CHECK(copies_in(target).contains(id));
}

TEST_CASE("a rehearsal tells what a copy would read, and writes nothing", "[repository][copy]") {
  RealBackups source(Mode::plain);
  const std::vector<SnapshotId> ids = source.back_up_all();
  FaultyDisk target;
  create_repository(target);
  value_of(copy_all(source.disk, target, nullptr, {ids[0], ids[1]}));
  const auto before = target.files();
  const auto rehearsed = value_of(copy_all(*reopen(source.disk), *reopen(target), nullptr, {}, true));
  CHECK(target.files() == before);
  CHECK(rehearsed.copied == 2);
  CHECK(rehearsed.there == 2);
  const CopyReport done = value_of(copy_all(source.disk, target));
  CHECK(done.copied == 2);
  CHECK(done.content.read_bytes <= rehearsed.content.read_bytes);
  CHECK(done.content.read_bytes > rehearsed.content.read_bytes / 2);
}

}  // namespace kin::testing

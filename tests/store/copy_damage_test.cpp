// Damage of the source costs the snapshots that have it; wherever a copy stops, the target is sound, and the
// next one goes on.
#include "store/check.h"
#include "tests/support/copied_repositories.h"

#include <catch2/catch.hpp>

namespace kin::testing {
namespace {

using store::CopyReport;
using store::FileKind;

// Some snapshots, each with two files of the one before, a changed one, and one of its own; some as deltas.
class DeltaSource {
 public:
  explicit DeltaSource(std::size_t count = 5) {
    create_repository(disk, Mode::encrypted);
    NamedContents files{{"a", text_like(1, 3000)}, {"b", random_bytes(2, 2000)}, {"c", text_like(3, 2500)}};
    for (std::size_t i = 0; i < count; ++i) {
      files["own"] = random_bytes(100 + i, 1500);
      const Bytes before = files["c"];
      files["c"][7 * i] ^= 0x55;
      const auto repository = reopen(disk);
      value_of(repository->begin_writing());
      if (i > 0) {
        const EncodedBlock delta = delta_block(*repository, repository->id_of(before), before, files["c"]);
        CHECK(value_of(repository->claim(delta.header.objects.front().id)));
        value_of(repository->append(delta));
      }
      std::vector<Node> nodes;
      for (const auto& [name, bytes] : files)
        nodes.push_back(file_of(name, value_of(store_object(*repository, bytes)), bytes.size()));
      const auto known = disk.names(FileKind::pack);
      snapshots.push_back(value_of(commit_nodes(*repository, nodes, static_cast<std::int64_t>(i))));
      contents.push_back(files);
      std::vector<store::FileName> packs;
      for (const store::FileName& pack : disk.names(FileKind::pack))
        if (std::find(known.begin(), known.end(), pack) == known.end()) packs.push_back(pack);
      new_packs.push_back(packs);
    }
  }

  // Every copy that is there is whole; gives how many these are.
  std::size_t require_whole(FaultyDisk& target) {
    const auto repository = reopen(target);
    const auto copies = copies_in(*repository);
    for (std::size_t i = 0; i < snapshots.size(); ++i)
      if (const auto copy = copies.find(snapshots[i]); copy != copies.end())
        CHECK(files_of(*repository, copy->second) == contents[i]);
    return copies.size();
  }

  FaultyDisk disk;
  std::vector<SnapshotId> snapshots;
  std::vector<NamedContents> contents;
  std::vector<std::vector<store::FileName>> new_packs;  // of each snapshot
};

}  // namespace

TEST_CASE("what is damaged in the source is named, and costs only the snapshots that have it",
          "[repository][copy]") {
  DeltaSource source;
  FaultyDisk target;
  create_repository(target);
  // What the third snapshot has brought is gone; the fourth and the fifth lean on it.
  for (const store::FileName& pack : source.new_packs[2]) source.disk.erase(pack);
  CopyOutcome outcome;
  const CopyReport report = value_of(copy_all(source.disk, target, &outcome));
  CHECK(report.copied == 2);
  CHECK(report.left_out == 3);
  CHECK(outcome.left_out ==
        std::vector<SnapshotId>{source.snapshots[2], source.snapshots[3], source.snapshots[4]});
  CHECK_THAT(outcome.faults.back(), Catch::StartsWith("c: object "));
  CHECK_THAT(outcome.faults.back(), Catch::Contains("is missing"));
  CHECK(source.require_whole(target) == 2);
  require_sound(target);
}

TEST_CASE("one damaged file costs one snapshot", "[repository][copy]") {
  DeltaSource source;
  FaultyDisk target;
  create_repository(target);
  // Each in turn, by a byte in the midst of the file that only the first snapshot has.
  const auto repository = reopen(source.disk);
  const BlockRef at = value_of(repository->locate(repository->id_of(source.contents[0].at("own"))));
  source.disk.flip({FileKind::pack, at.pack.hex()}, at.offset + at.stored_size / 2);
  CopyOutcome outcome;
  value_of(copy_all(source.disk, target, &outcome));
  CHECK(outcome.left_out == std::vector<SnapshotId>{source.snapshots[0]});
  CHECK_THAT(outcome.faults.front(), Catch::StartsWith("own: object "));
  CHECK(source.require_whole(target) == 4);
  require_sound(target);
  // When it is whole again, it follows.
  source.disk.heal();
  CHECK(value_of(copy_all(source.disk, target)).copied == 1);
  CHECK(source.require_whole(target) == 5);
  require_sound(target);
}

TEST_CASE("a copy that is interrupted has whole snapshots, and the next one copies the rest",
          "[repository][copy]") {
  DeltaSource source;
  FaultyDisk target;
  create_repository(target);
  std::stop_source stop;
  CHECK(code_of(copy_all(*reopen(source.disk), *reopen(target), nullptr, {}, false, &stop)) ==
        ErrorCode::cancelled);
  CHECK(source.require_whole(target) == 1);
  require_sound(target);
  const CopyReport rest = value_of(copy_all(source.disk, target));
  CHECK(rest.there == 1);
  CHECK(rest.copied == 4);
  CHECK(source.require_whole(target) == 5);
  require_sound(target);
}

TEST_CASE("wherever a copy crashes, the target is sound, and the next one finishes it",
          "[repository][copy][crash]") {
  using Unsynced = FaultyDisk::Unsynced;
  const auto [unsynced, mode] =
      GENERATE(std::pair(Unsynced::lost, Mode::plain), std::pair(Unsynced::kept, Mode::encrypted),
               std::pair(Unsynced::every_other, Mode::plain));
  DeltaSource source(3);
  bool finished = false;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    INFO(steps);
    REQUIRE(steps < 200);
    FaultyDisk target;
    create_repository(target, mode);
    commit_files(target, {{"before", random_bytes(77, 500)}}, 0);
    target.leave(unsynced);
    target.crash_after(steps);
    finished = copy_all(source.disk, target).has_value() && !target.crashed();
    if (!finished) target.restart();
    require_sound(target);
    const std::size_t whole = source.require_whole(target);
    CHECK(whole <= (finished ? 3 : steps / 5));  // each takes more than five changes
    value_of(copy_all(source.disk, target));
    CHECK(source.require_whole(target) == 3);
    require_sound(target);
    if (!finished) continue;
    CHECK(steps > 20);
    CHECK(value_of(copy_all(source.disk, target)).there == 3);
  }
}

TEST_CASE("a copy that finds no room leaves the target sound, and fits later", "[repository][copy][crash]") {
  DeltaSource source;
  FaultyDisk whole;
  create_repository(whole);
  value_of(copy_all(source.disk, whole));
  const std::uint64_t most = whole.used_bytes();
  for (std::uint64_t room = 1000; room < most; room += 1777) {
    INFO(room);
    FaultyDisk target;
    create_repository(target);
    target.set_quota(room);
    CHECK(code_of(copy_all(source.disk, target)) == ErrorCode::no_space);
    target.lift_quota();
    require_sound(target);
    value_of(copy_all(source.disk, target));
    CHECK(source.require_whole(target) == 5);
    require_sound(target);
  }
}

TEST_CASE("what the target has lost is stored again by a copy that has it", "[repository][copy]") {
  DeltaSource source;
  FaultyDisk target;
  create_repository(target);
  value_of(copy_all(source.disk, target, nullptr, {source.snapshots[0], source.snapshots[1]}));
  for (const store::FileName& pack : target.names(FileKind::pack)) target.erase(pack);
  value_of(copy_all(source.disk, target));
  // The copies of before have their content again, and so do the new ones, as far as these share it.
  const auto copies = copies_in(target);
  for (const std::size_t i : {2U, 3U, 4U})
    CHECK(files_of(target, copies.at(source.snapshots[i])) == source.contents[i]);
}

}  // namespace kin::testing

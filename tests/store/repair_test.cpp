// What is sound stays, whatever else is damaged and wherever the repair stops.
#include "store/repair.h"

#include "lib/object/tree.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <map>

namespace kin::testing {
namespace {

using store::FileKind;
using store::PackRepair;
using store::RepairObserver;
using store::Repository;
using store::SnapshotRepair;

// Files, each a block of its own, but "delta", which leans on "base".
class Sample {
 public:
  explicit Sample(Mode mode = Mode::plain) {
    create_repository(disk_, mode);
    const auto writer = reopen(disk_);
    for (const char* name : {"a", "b", "base", "c"}) files_[name] = random_bytes(files_.size(), 3'000);
    files_["delta"] = files_["base"];
    files_["delta"][1'000] ^= 1;
    for (const auto& [name, content] : files_) {
      if (name == "delta")
        value_of(
            writer->append(delta_block(*writer, writer->id_of(files_["base"]), files_["base"], content)));
      else
        value_of(writer->append(plain_block(*writer, {content})));
    }
    TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(*writer, bytes, kind); });
    for (const auto& [name, content] : files_) {
      Node node;
      node.name = name;
      node.type = NodeType::file;
      node.size = content.size();
      node.content = {{Extent::Kind::data, content.size(), writer->id_of(content)}};
      require_ok(tree.add(node));
    }
    Snapshot snapshot = snapshot_named("here");
    snapshot.tree = value_of(tree.finish());
    snapshot.summary.files = files_.size();
    value_of(writer->commit(snapshot));
    for (const auto& [name, bytes] : disk_.files())
      if (name.kind == FileKind::pack && bytes.size() > 10'000) pack_ = name;
  }

  Sample(const Sample& other) : files_(other.files_), pack_(other.pack_) {
    for (const auto& [name, bytes] : other.disk_.files()) disk_.write(name, bytes);
  }

  FaultyDisk& disk() { return disk_; }
  const store::FileName& pack() const { return pack_; }
  const Bytes& content(const std::string& name) const { return files_.at(name); }
  static constexpr std::size_t kInBlock = 500;
  void damage(std::size_t number) { disk_.flip(pack_, number * 3'080 + kInBlock); }  // of the order of names

  // What the only snapshot has; its content is what it was.
  std::vector<std::string> names() {
    const auto repository = reopen(disk_);
    const auto ids = value_of(repository->list_snapshots());
    REQUIRE(ids.size() == 1);
    TreeCursor cursor(*repository, value_of(repository->load_snapshot(ids[0])).tree);
    std::vector<std::string> out;
    while (const auto node = value_of(cursor.next())) {
      CHECK(loads(*repository, node->content.at(0).id, files_.at(node->name)));
      out.push_back(node->name);
    }
    return out;
  }

 private:
  FaultyDisk disk_;
  std::map<std::string, Bytes> files_;
  store::FileName pack_;
};

const RepairObserver kQuiet{[](const std::string&) {}, [](std::string_view, std::uint64_t, std::uint64_t) {}};

Result<PackRepair> repair_packs(FaultyDisk& disk) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(disk.open()));
  KIN_TRY(repository->refresh_index());
  KIN_TRY(repository->begin_writing());
  return store::repair_packs(*repository, false, kQuiet, {});
}

Result<SnapshotRepair> repair_snapshots(FaultyDisk& disk) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(disk.open()));
  KIN_TRY(repository->refresh_index());
  KIN_TRY(repository->begin_writing());
  return store::repair_snapshots(*repository, false, kQuiet, {});
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("of a damaged pack, all but the damaged block is stored again", "[repository][repair]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  sample.damage(1);
  const PackRepair packs = value_of(repair_packs(sample.disk()));
  CHECK(packs.damaged == 1);
  CHECK(packs.saved_blocks == 4);
  CHECK(packs.lost_blocks == 1);
  const SnapshotRepair snapshots = value_of(repair_snapshots(sample.disk()));
  CHECK(snapshots.repaired == 1);
  CHECK(snapshots.lost == 1);
  CHECK(sample.names() == Names{"a", "base", "c", "delta"});
  require_sound(sample.disk());
  // And again there is nothing to do.
  CHECK(value_of(repair_packs(sample.disk())).lost_blocks == 0);
  CHECK(value_of(repair_snapshots(sample.disk())).repaired == 0);
}

TEST_CASE("what leans on a lost base is lost with it", "[repository][repair]") {
  Sample sample;
  sample.damage(2);
  CHECK(value_of(repair_packs(sample.disk())).lost_blocks == 2);
  CHECK(value_of(repair_snapshots(sample.disk())).lost == 2);
  CHECK(sample.names() == Names{"a", "b", "c"});
  require_sound(sample.disk());
}

TEST_CASE("what is sound in another pack is not stored again, nor lost", "[repository][repair]") {
  const Mode mode = any_mode();
  // Unless that one is marked to be removed: then only what is nowhere else counts as there.
  const bool is_marked = GENERATE(false, true);
  Sample sample(mode);
  {
    const auto writer = reopen(sample.disk());
    for (const char* name : {"a", "b"})
      value_of(writer->append(plain_block(*writer, {sample.content(name)})));
    require_ok(writer->flush());
    store::Marks marks;
    for (const ObjectId& pack : writer->written_packs()) marks.packs[pack] = marks.generation = 1;
    if (is_marked) value_of(store::put_marks(writer->backend(), writer->sealer(), marks));
  }
  sample.damage(1);
  const PackRepair packs = value_of(repair_packs(sample.disk()));
  CHECK(packs.doubled_blocks == (is_marked ? 1 : 2));
  CHECK(packs.saved_blocks == (is_marked ? 4 : 3));
  CHECK(packs.lost_blocks == 0);
  CHECK(value_of(repair_snapshots(sample.disk())).repaired == 0);
  CHECK(sample.names().size() == 5);
  require_sound(sample.disk());
}

TEST_CASE("a delta in another pack is no other place where its base is lost", "[repository][repair]") {
  Sample sample;
  {
    // Now "b" is stored a second time, against what is lost.
    const auto writer = reopen(sample.disk());
    const Bytes base = sample.content("base");
    value_of(writer->append(delta_block(*writer, writer->id_of(base), base, sample.content("b"))));
    require_ok(writer->flush());
  }
  sample.damage(2);
  const PackRepair packs = value_of(repair_packs(sample.disk()));
  CHECK(packs.saved_blocks == 3);
  CHECK(packs.doubled_blocks == 1);  // the delta, once its base is given up
  CHECK(value_of(repair_snapshots(sample.disk())).lost == 2);
  CHECK(sample.names() == Names{"a", "b", "c"});
  require_sound(sample.disk());
}

TEST_CASE("a pack with damage outside of its blocks loses nothing", "[repository][repair]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  Bytes file = sample.disk().file(sample.pack());
  file.push_back(0);
  sample.disk().write(sample.pack(), file);
  const PackRepair packs = value_of(repair_packs(sample.disk()));
  CHECK(packs.damaged == 1);
  CHECK(packs.lost_blocks == 0);
  CHECK(value_of(repair_snapshots(sample.disk())).repaired == 0);
  CHECK(sample.names().size() == 5);
  require_sound(sample.disk());
}

TEST_CASE("a mended snapshot says what it lacks", "[repository][repair]") {
  Sample sample;
  sample.damage(0);
  value_of(repair_packs(sample.disk()));
  const auto ids = value_of(reopen(sample.disk())->list_snapshots());
  value_of(repair_snapshots(sample.disk()));
  const auto repository = reopen(sample.disk());
  const Snapshot snapshot = value_of(repository->load_snapshot(value_of(repository->list_snapshots()).at(0)));
  CHECK(snapshot.tags == Names{"repaired"});
  CHECK(snapshot.original == ids.at(0));
  CHECK(snapshot.summary.files == 4);
  CHECK(snapshot.summary.skipped == 1);
  CHECK(value_of(repository->list_forgotten()) == ids);
}

TEST_CASE("wherever a repair stops, the next one ends it and what is sound is there",
          "[repository][repair][crash]") {
  const Sample model;
  bool finished = false;
  int crashes = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    INFO("crash after step " << steps);
    Sample sample(model);
    sample.damage(1);
    sample.disk().crash_after(steps);
    finished = repair_packs(sample.disk()).has_value() && repair_snapshots(sample.disk()).has_value();
    crashes += sample.disk().crashed();
    sample.disk().restart();
    value_of(repair_packs(sample.disk()));
    value_of(repair_snapshots(sample.disk()));
    CHECK(sample.names() == Names{"a", "base", "c", "delta"});
    require_sound(sample.disk());
  }
  CHECK(crashes >= 10);
}

}  // namespace kin::testing

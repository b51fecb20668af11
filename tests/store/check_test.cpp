// What check reads, in which order, and whether it names the files that damage hits.
#include "store/check.h"

#include "lib/object/tree.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace kin::testing {
namespace {

using store::CheckStats;
using store::FileKind;
using store::ReadSubset;

// Snapshots of one file each, "0", "1" and so on, in packs and a segment of their own.
class PackedSnapshots {
 public:
  explicit PackedSnapshots(int snapshots) {
    create_repository(disk_);
    for (int i = 0; i < snapshots; ++i) {
      const auto writer = reopen(disk_);
      const Bytes content = random_bytes(static_cast<std::uint64_t>(i), 3'000);
      Node node;
      node.name = std::to_string(i);
      node.type = NodeType::file;
      node.size = content.size();
      node.content = {{Extent::Kind::data, content.size(), value_of(store_object(*writer, content))}};
      TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(*writer, bytes, kind); });
      require_ok(tree.add(node));
      Snapshot snapshot = snapshot_named("host " + node.name);
      snapshot.tree = value_of(tree.finish());
      const std::set<FileName> before = files();
      ids_.push_back(value_of(writer->commit(snapshot)));
      for (const FileName& name : files())
        if (!before.contains(name)) owners_[name] = i;
    }
  }

  FaultyDisk& disk() { return disk_; }
  const SnapshotId& snapshot(int i) const { return ids_.at(static_cast<std::size_t>(i)); }
  std::vector<FileName> of(int snapshot, FileKind kind) const {
    std::vector<FileName> out;
    for (const auto& [name, owner] : owners_)
      if (owner == snapshot && name.kind == kind) out.push_back(name);
    return out;
  }
  // Content, then metadata.
  std::vector<FileName> packs_of(int snapshot) {
    std::vector<FileName> out = of(snapshot, FileKind::pack);
    std::sort(out.begin(), out.end(), [&](const FileName& a, const FileName& b) {
      return disk_.file(a).size() > disk_.file(b).size();
    });
    return out;
  }

  struct Outcome {
    CheckStats stats;
    std::vector<std::string> problems, notes;
    bool names(const std::string& what) const {
      return std::any_of(problems.begin(), problems.end(),
                         [&](const std::string& one) { return one.find(what) != std::string::npos; });
    }
  };
  Outcome check(const ReadSubset& subset) {
    // Not refreshed: damage must not hinder it.
    const auto repository = value_of(open_repository(disk_.open(), cache_.path()));
    Outcome out;
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { out.problems.push_back(problem); };
    observer.on_note = [&](const std::string& note) { out.notes.push_back(note); };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    out.stats = value_of(store::check(*repository, {}, subset, observer, {}));
    return out;
  }
  std::map<ObjectId, std::int64_t> read_so_far() {
    return value_of(open_repository(disk_.open(), cache_.path()))->index().sound_packs();
  }

 private:
  std::set<FileName> files() const {
    std::set<FileName> out;
    for (const auto& [name, bytes] : disk_.files()) out.insert(name);
    return out;
  }

  FaultyDisk disk_;
  TempDir cache_;
  std::map<FileName, int> owners_;
  std::vector<SnapshotId> ids_;
};

constexpr ReadSubset kOldest{ReadSubset::Kind::oldest};  // for no time: a pack each

}  // namespace

TEST_CASE("a check for a time reads each pack once before any twice", "[repository][check]") {
  PackedSnapshots sample(3);
  std::map<ObjectId, std::int64_t> read;
  for (std::uint64_t done = 1; done <= 6; ++done) {
    const auto checked = sample.check(kOldest);
    CHECK(checked.problems.empty());
    CHECK(checked.stats.packs_read == 1);
    CHECK(checked.stats.packs_to_read == 6);
    CHECK(checked.stats.packs_never_read == 6 - done);
    read = sample.read_so_far();
    CHECK(read.size() == done);
  }
  // From here on, the one whose time is the oldest.
  const auto repository = value_of(open_repository(sample.disk().open()));
  CHECK(sample.check({ReadSubset::Kind::oldest, 0, 0, 0, 0, 3'600}).stats.packs_read == 6);
}

TEST_CASE("the pack that was longest not read comes first", "[repository][check]") {
  PackedSnapshots sample(2);
  TempDir cache;
  const auto repository = value_of(open_repository(sample.disk().open(), cache.path()));
  require_ok(repository->refresh_index());
  const auto packs = sample.disk().names(FileKind::pack);
  std::int64_t seconds = 1'700'000'000;
  for (const FileName& pack : packs)
    repository->index().note_sound(*ObjectId::from_hex(pack.name), seconds += pack == packs[2] ? -5'000 : 10);
  store::CheckObserver observer;
  observer.on_problem = [](const std::string& problem) { FAIL_CHECK(problem); };
  observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
  const CheckStats stats = value_of(store::check(*repository, {}, kOldest, observer, {}));
  CHECK(stats.packs_read == 1);
  CHECK(repository->index().sound_packs().at(*ObjectId::from_hex(packs[2].name)) > seconds + 1'000'000);
  REQUIRE(stats.oldest_check);
  CHECK(*stats.oldest_check < 1'700'000'100);
}

TEST_CASE("a pack that was read while the clock was ahead has its turn as if it never had been",
          "[repository][check]") {
  PackedSnapshots sample(2);
  TempDir cache;
  const auto repository = value_of(open_repository(sample.disk().open(), cache.path()));
  require_ok(repository->refresh_index());
  const auto packs = sample.disk().names(FileKind::pack);
  const std::int64_t ahead = now().seconds + 100'000'000;
  for (const FileName& pack : packs)
    repository->index().note_sound(*ObjectId::from_hex(pack.name), pack == packs[1] ? ahead : 1'700'000'000);
  store::CheckObserver observer;
  observer.on_problem = [](const std::string& problem) { FAIL_CHECK(problem); };
  observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
  const CheckStats stats = value_of(store::check(*repository, {}, kOldest, observer, {}));
  CHECK(stats.packs_read == 1);
  CHECK(stats.packs_never_read == 0);
  CHECK(repository->index().sound_packs().at(*ObjectId::from_hex(packs[1].name)) < ahead);
}

TEST_CASE("when packs were read stays known when the index is filled again", "[repository][check]") {
  PackedSnapshots sample(2);
  sample.check({ReadSubset::Kind::all});
  REQUIRE(sample.read_so_far().size() == 4);
  // A segment is gone, as after a prune: the cache starts over.
  sample.disk().erase(sample.of(0, FileKind::index).at(0));
  sample.check({});
  CHECK(sample.read_so_far().size() == 4);
  // Of packs that are gone nothing is kept.
  for (const FileName& pack : sample.packs_of(0)) sample.disk().erase(pack);
  sample.check(kOldest);
  CHECK(sample.read_so_far().size() == 2);
}

TEST_CASE("a pack with damage counts as not read", "[repository][check]") {
  PackedSnapshots sample(1);
  sample.check({ReadSubset::Kind::all});
  sample.disk().flip(sample.packs_of(0).at(0), 2'000);
  CHECK(sample.check({ReadSubset::Kind::all}).names("snapshot " + sample.snapshot(0).short_hex() + ":/0"));
  CHECK(sample.read_so_far().size() == 1);
  sample.disk().heal();
  CHECK(sample.check(kOldest).problems.empty());
  CHECK(sample.read_so_far().size() == 2);
}

TEST_CASE("packs that are known to be damaged leave time for others", "[repository][check]") {
  PackedSnapshots sample(3);
  for (const int snapshot : {0, 1}) sample.disk().flip(sample.packs_of(snapshot).at(0), 2'000);
  sample.check({ReadSubset::Kind::all});
  const FileName other = sample.packs_of(2).at(0);
  const std::int64_t before = sample.read_so_far().at(*ObjectId::from_hex(other.name));
  // No time at all: one of the two is read, and the other told of.
  const auto checked = sample.check(kOldest);
  CHECK(checked.stats.packs_read == 1);
  for (const int snapshot : {0, 1}) CHECK(checked.names(sample.packs_of(snapshot).at(0).text()));
  CHECK(checked.names("no time"));
  const auto all = sample.check({ReadSubset::Kind::oldest, 0, 0, 0, 0, 3'600});
  CHECK(all.stats.packs_read == 6);
  CHECK_FALSE(all.names("no time"));
  CHECK(sample.read_so_far().at(*ObjectId::from_hex(other.name)) >= before);
}

TEST_CASE("whatever is damaged, check names the snapshot and the file, however little it reads",
          "[repository][check][damage]") {
  const auto way = GENERATE(0, 1, 2);
  for (const bool metadata : {false, true}) {
    PackedSnapshots sample(3);
    const FileName pack = sample.packs_of(1).at(metadata ? 1 : 0);
    sample.disk().flip(pack, sample.disk().file(pack).size() - 10);
    const std::string file = "snapshot " + sample.snapshot(1).short_hex() + (metadata ? ":" : ":/1");
    // The subset is the one that this pack is in; of the oldest, it is among the first six.
    const auto start = static_cast<std::uint64_t>(std::stoul(pack.name.substr(0, 8), nullptr, 16));
    const ReadSubset subsets[] = {{ReadSubset::Kind::all},
                                  {ReadSubset::Kind::nth, start % 2 + 1, 2},
                                  {ReadSubset::Kind::oldest, 0, 0, 0, 0, 3'600}};
    const auto checked = sample.check(subsets[way]);
    INFO((metadata ? "metadata" : "content") << ", way " << way);
    CHECK(checked.names(pack.text()));
    CHECK(checked.names(file));
    for (const int other : {0, 2})
      CHECK_FALSE(checked.names("snapshot " + sample.snapshot(other).short_hex()));
  }
}

TEST_CASE("of a damaged segment, the snapshots are named that need what it lists",
          "[repository][check][damage]") {
  PackedSnapshots sample(3);
  const FileName segment = sample.of(1, FileKind::index).at(0);
  sample.disk().flip(segment, 50);
  const auto checked = sample.check({});
  CHECK(checked.names(segment.text()));
  CHECK(checked.names("snapshot " + sample.snapshot(1).short_hex()));
  CHECK_FALSE(checked.names("snapshot " + sample.snapshot(0).short_hex()));
  // Who has read it while it was whole can read the files, and is told that others cannot.
  sample.disk().heal();
  sample.check({});
  sample.disk().flip(segment, 50);
  const auto again = sample.check({});
  CHECK(again.names("the local cache knows"));
  CHECK_FALSE(again.names("snapshot "));
}

TEST_CASE("chains are counted: the longest, loops and missing bases", "[repository][check]") {
  FaultyDisk disk;
  create_repository(disk);
  std::vector<Bytes> versions{random_bytes(1, 4'000)};
  Snapshot snapshot = snapshot_named("here");
  FileName first_segment;
  {
    const auto writer = reopen(disk);
    value_of(store_object(*writer, versions[0]));
    require_ok(writer->flush());  // a pack and a segment of its own
    first_segment = disk.names(FileKind::index).at(0);
    TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(*writer, bytes, kind); });
    for (std::size_t i = 1; i < 6; ++i) {
      versions.push_back(versions.back());
      versions.back()[i * 10] ^= 1;
      value_of(
          writer->append(delta_block(*writer, writer->id_of(versions[i - 1]), versions[i - 1], versions[i])));
      Node node;
      node.name = std::to_string(i);
      node.type = NodeType::file;
      node.size = versions[i].size();
      node.content = {{Extent::Kind::data, node.size, writer->id_of(versions[i])}};
      require_ok(tree.add(node));
    }
    snapshot.tree = value_of(tree.finish());
    value_of(writer->commit(snapshot));
  }
  const auto check = [&] {
    const auto repository = reopen(disk);
    store::CheckObserver observer;
    observer.on_problem = [](const std::string&) {};
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    return value_of(store::check(*repository, {}, {}, observer, {}));
  };
  CHECK(check().chains.longest == 5);
  CHECK(check().chains.missing_bases == 0);
  disk.erase(first_segment);
  const CheckStats stats = check();
  CHECK(stats.chains.missing_bases == 1);
  CHECK(stats.chains.longest == 0);
  CHECK(stats.problems == 5);
}

TEST_CASE("a damaged forgotten snapshot is told of, also when it is marked", "[repository][check][prune]") {
  PackedSnapshots sample(2);
  {
    const auto repository = reopen(sample.disk());
    require_ok(repository->forget_snapshot(sample.snapshot(0)));
  }
  const FileName forgotten{FileKind::forgotten, sample.snapshot(0).hex()};
  sample.disk().flip(forgotten, 50);
  auto checked = sample.check({});
  CHECK(checked.stats.problems == 1);
  CHECK(checked.names(forgotten.text()));
  {
    const auto repository = reopen(sample.disk());
    store::Marks marks;
    marks.generation = 1;
    marks.forgotten.emplace(sample.snapshot(0), 1);
    value_of(store::put_marks(repository->backend(), repository->sealer(), marks));
  }
  checked = sample.check({});
  CHECK(checked.stats.problems == 0);
  CHECK(checked.stats.lost_forgotten == 1);
  REQUIRE(checked.notes.size() == 1);
  CHECK_THAT(checked.notes[0],
             Catch::Contains(forgotten.text()) && Catch::Contains("cannot be brought back"));
}

TEST_CASE("durations are read, and nothing that only looks like one", "[repository][check]") {
  CHECK(value_of(store::parse_duration("90s")) == 90);
  CHECK(value_of(store::parse_duration("30m")) == 1'800);
  CHECK(value_of(store::parse_duration("1h30m")) == 5'400);
  CHECK(value_of(store::parse_duration("2d")) == 172'800);
  for (const char* text : {"", "0s", "m", "30", "-1h", "1h ", "1.5h", "99999999999d", "1000000000s1s"})
    CHECK(error_of(store::parse_duration(text)).code() == ErrorCode::invalid_argument);
}

}  // namespace kin::testing

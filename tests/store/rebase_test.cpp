// Bases that nothing names go where their deltas take less elsewhere, and no delta loses what it leans on.
#include "store/rebase.h"

#include "lib/object/tree.h"
#include "store/prune.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

namespace kin::testing {
namespace {

using store::FileName;
using store::Prune;
using store::PruneOptions;
using store::PruneReport;
using store::Repository;

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes out;
  for (const Bytes& part : parts) append(out, part);
  return out;
}

// Contents by name, each in a snapshot of its own and a delta against the one that it is given.
class Family {
 public:
  explicit Family(Mode mode = Mode::plain) { create_repository(disk, mode); }

  // `beside`: so many bytes of other content, in the same pack, that are needed as long as anything is.
  void add(const std::string& name, Bytes content, const std::string& base = "", bool with_features = false,
           std::size_t beside = 0) {
    const auto repository = reopen(disk);
    value_of(repository->begin_writing());
    EncodedBlock block = plain_block(*repository, {content});
    if (!base.empty()) block = delta_block(*repository, id(*repository, base), contents.at(base), content);
    if (with_features) block.header.objects[0].features = sketch_of(content);
    CHECK(value_of(repository->claim(block.header.objects[0].id)));
    value_of(repository->append(block));
    if (beside > 0) {
      others.push_back(random_bytes(1000 + others.size(), beside));
      value_of(store_object(*repository, others.back()));
    }
    contents[name] = std::move(content);
    commit(*repository, name);
  }

  void commit(Repository& repository, const std::string& name) {
    TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(repository, bytes, kind); });
    Node node;
    node.name = name;
    node.type = NodeType::file;
    node.size = contents.at(name).size();
    node.content = {{Extent::Kind::data, node.size, id(repository, name)}};
    require_ok(tree.add(node));
    for (std::size_t i = 0; i < others.size(); ++i) {
      node.name = "with " + name + std::to_string(i);
      node.size = others[i].size();
      node.content = {{Extent::Kind::data, node.size, repository.id_of(others[i])}};
      require_ok(tree.add(node));
    }
    Snapshot snapshot = snapshot_named(name);
    snapshot.tree = value_of(tree.finish());
    snapshots[name] = value_of(repository.commit(snapshot));
  }

  void forget(const std::string& name) { require_ok(reopen(disk)->forget_snapshot(snapshots.at(name))); }

  Result<PruneReport> prune_as_usual(bool rebase) {
    PruneOptions options;
    options.rebase = rebase;
    KIN_TRY_ASSIGN(const auto repository, open_repository(disk.open()));
    return Prune(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({});
  }
  Result<PruneReport> prune(bool rebase = true, bool dry_run = false) {
    PruneOptions options;
    options.grace = 0;
    options.most_unused_share = 0;
    options.rebase = rebase;
    options.dry_run = dry_run;
    KIN_TRY_ASSIGN(const auto repository, open_repository(disk.open()));
    return Prune(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({});
  }

  ObjectId id(const Repository& repository, const std::string& name) const {
    return repository.id_of(contents.at(name));
  }
  bool has(const std::string& name) {
    const auto repository = reopen(disk);
    return value_of(repository->contains(id(*repository, name)));
  }
  std::optional<ObjectId> base_of(const std::string& name) {
    const auto repository = reopen(disk);
    return value_of(repository->find_location(id(*repository, name)))->base;
  }
  bool leans_on(const std::string& name, const std::string& base) {
    return base_of(name) == std::optional(id(*reopen(disk), base));
  }

  // By one who has only what is on the disk.
  void require_all_but(const std::vector<std::string>& gone) {
    require_sound(disk);
    const auto repository = reopen(disk);
    for (const auto& [name, content] : contents)
      if (std::find(gone.begin(), gone.end(), name) == gone.end())
        CHECK(loads(*repository, id(*repository, name), content));
  }

  FaultyDisk disk;
  std::map<std::string, Bytes> contents;
  std::map<std::string, SnapshotId> snapshots;
  std::vector<Bytes> others;

 private:
  Sketch sketch_of(ByteView content) const {
    const auto repository = reopen(const_cast<FaultyDisk&>(disk));
    return repository->scanner().sketch(content);
  }
};

const Bytes kShared = random_bytes(1, 20'000), kMore = random_bytes(2, 60'000),
            kOther = random_bytes(3, 5'000);

}  // namespace

TEST_CASE("a base that nothing names goes where its delta takes less on the base below it",
          "[repository][rebase]") {
  Family family(any_mode());
  family.add("old", kShared);
  family.add("middle", joined({kShared, kMore}), "old");
  family.add("new", joined({kShared, kOther}), "middle");
  family.forget("middle");
  SECTION("if that is asked for") {
    const PruneReport report = value_of(family.prune());
    CHECK(report.rebase.kept == 1);
    CHECK(report.rebase.freed == 1);
    CHECK(report.rebase.written == 1);
    CHECK_FALSE(family.has("middle"));
    CHECK(family.leans_on("new", "old"));
    family.require_all_but({"middle"});
    CHECK(value_of(family.prune()).rebase.kept == 0);
  }
  SECTION("and else stays, and is told of") {
    const PruneReport report = value_of(family.prune(false));
    CHECK(report.rebase.kept == 1);
    CHECK(report.rebase.kept_bytes > kMore.size());
    CHECK(report.rebase.freed == 0);
    CHECK(family.leans_on("new", "middle"));
    family.require_all_but({});
  }
  SECTION("and a dry run tells the same, and changes nothing") {
    const auto before = family.disk.files();
    const PruneReport dry = value_of(family.prune(true, true));
    CHECK((family.disk.files() == before));
    const PruneReport real = value_of(family.prune());
    CHECK(dry.rebase.freed_bytes == real.rebase.freed_bytes);
    CHECK(dry.rebase.written_bytes == real.rebase.written_bytes);
  }
}

TEST_CASE("a base that nothing names stays where its deltas would take more", "[repository][rebase]") {
  Family family;
  family.add("old", kMore);
  for (const char* const name : {"first", "second", "third"})
    family.add(name, joined({kMore, Bytes(7, static_cast<std::uint8_t>(*name))}), "old");
  family.forget("old");
  const PruneReport report = value_of(family.prune());
  CHECK(report.rebase.kept == 1);
  CHECK(report.rebase.freed == 0);
  CHECK(family.leans_on("second", "old"));
  family.require_all_but({});
}

TEST_CASE("prunes that follow leave a delta on its new base, in whatever order they see the old place",
          "[repository][rebase]") {
  // Names, and so the order of segments, are random where there is a password.
  for (int run = 0; run < 8; ++run) {
    Family family(Mode::encrypted);
    family.add("old", kShared, "", false, 2 << 20);
    family.add("middle", joined({kShared, kMore}), "old", false, 2 << 20);
    family.add("new", joined({kShared, kOther}), "middle", false, 2 << 20);
    family.forget("middle");
    CHECK(value_of(family.prune_as_usual(true)).rebase.freed == 1);
    const bool rebase = run % 2 == 0;
    for (int i = 0; i < 3; ++i) {
      const PruneReport report = value_of(family.prune_as_usual(rebase));
      CHECK(report.rebase.kept == 0);
      CHECK(report.rebase.written == 0);
      family.require_all_but({"middle"});
    }
    CHECK_FALSE(family.has("middle"));
    CHECK(family.leans_on("new", "old"));
    std::size_t places = 0;
    const auto repository = reopen(family.disk);
    for (const FileName& name : family.disk.names(store::FileKind::index))
      for (const auto& object : value_of(repository->load_index_segment(name.name)).objects)
        places += object.id == family.id(*repository, "new");
    CHECK(places == 1);
  }
}

TEST_CASE("a delta with little of its base is stored without one", "[repository][rebase]") {
  Family family;
  family.add("old", joined({kShared, kMore}));
  family.add("new", kShared, "old");
  family.forget("old");
  CHECK(value_of(family.prune()).rebase.freed == 1);
  CHECK_FALSE(family.has("old"));
  CHECK_FALSE(family.base_of("new"));
  family.require_all_but({"old"});
}

TEST_CASE("a delta gets the next best kin for a base", "[repository][rebase]") {
  Family family;
  family.add("kin", joined({kShared, kOther}), "", true);
  family.add("old", joined({kShared, kMore}), "", true);
  family.add("new", joined({kOther, kShared}), "old", true);
  family.forget("old");
  CHECK(value_of(family.prune()).rebase.freed == 1);
  CHECK(family.leans_on("new", "kin"));
  family.require_all_but({"old"});
}

TEST_CASE("of a chain that nothing names, all go whose deltas take less", "[repository][rebase]") {
  Family family;
  family.add("a", kShared);
  family.add("b", joined({kShared, kMore}), "a");
  family.add("c", joined({kShared, random_bytes(4, 50'000)}), "b");
  family.add("d", joined({kShared, kOther}), "c");
  for (const char* const name : {"b", "c"}) family.forget(name);
  CHECK(value_of(family.prune()).rebase.freed == 2);
  CHECK(family.leans_on("d", "a"));
  family.require_all_but({"b", "c"});
}

TEST_CASE("two deltas that could each be the other's base do not become that", "[repository][rebase]") {
  Family family;
  family.add("old", joined({kShared, kMore}), "", true);
  family.add("one", joined({kShared, random_bytes(5, 300)}), "old", true);
  family.add("two", joined({kShared, random_bytes(6, 300)}), "old", true);
  family.forget("old");
  value_of(family.prune());
  family.require_all_but({"old"});
}

TEST_CASE("where two gave each other's base another base, neither place is removed", "[repository][rebase]") {
  Family family;
  family.add("one", joined({kShared, random_bytes(5, 300)}));
  family.add("two", joined({kShared, random_bytes(6, 300)}));
  // As of two prunes at once, of which neither saw the other's blocks.
  for (const auto& [name, base] : {std::pair("one", "two"), std::pair("two", "one")}) {
    const auto repository = reopen(family.disk);
    value_of(repository->begin_writing());
    value_of(repository->append(delta_block(*repository, family.id(*repository, base),
                                            family.contents.at(base), family.contents.at(name))));
    require_ok(repository->flush());
  }
  const bool rebase = GENERATE(false, true);
  for (int i = 0; i < 3; ++i) {
    value_of(family.prune(rebase));
    family.require_all_but({});
  }
}

TEST_CASE("wherever a prune that rebases stops, nothing is lost and the next one ends it",
          "[repository][rebase][crash]") {
  for (std::uint64_t steps = 1;; ++steps) {
    REQUIRE(steps < 100);
    Family family;
    family.add("a", kShared);
    family.add("b", joined({kShared, kMore}), "a");
    family.add("c", joined({kShared, random_bytes(4, 50'000)}), "b");
    family.add("d", joined({kShared, kOther}), "c");
    for (const char* const name : {"b", "c"}) family.forget(name);
    family.disk.leave(steps % 2 == 0 ? FaultyDisk::Unsynced::lost : FaultyDisk::Unsynced::every_other);
    family.disk.crash_after(steps);
    static_cast<void>(family.prune());
    const bool crashed = family.disk.crashed();
    family.disk.restart();
    family.require_all_but({"b", "c"});
    value_of(family.prune());
    family.require_all_but({"b", "c"});
    CHECK(family.leans_on("d", "a"));
    CHECK_FALSE(family.has("b"));
    if (!crashed) return;
  }
}

TEST_CASE("a base that comes into use while its deltas are written anew is spared", "[repository][rebase]") {
  Family family;
  family.add("old", kShared);
  family.add("middle", joined({kShared, kMore}), "old");
  family.add("new", joined({kShared, kOther}), "middle");
  family.forget("middle");
  PruneOptions options;
  options.grace = 0;
  options.most_unused_share = 0;
  options.rebase = true;
  const auto repository = value_of(open_repository(family.disk.open()));
  bool came = false;
  const auto on_progress = [&](std::string_view doing, std::uint64_t, std::uint64_t) {
    if (doing != "writing deltas anew" || std::exchange(came, true)) return;
    const Bytes more = random_bytes(8, 100);
    family.add("late", joined({kShared, kMore, more}), "middle");
  };
  value_of(Prune(*repository, options, on_progress).run({}));
  CHECK(came);
  family.require_all_but({});
}

}  // namespace kin::testing

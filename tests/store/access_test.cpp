// What an append-only repository and a read-only one refuse, and what they go on doing.
#include "store/access.h"

#include "lib/object/tree.h"
#include "store/marks.h"
#include "store/parity.h"
#include "store/prune.h"
#include "store/repair.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <functional>
#include <map>

namespace kin::store {
namespace {

using namespace kin::testing;

// A repository with two snapshots of a file each, and a third that is forgotten.
class GuardedRepository {
 public:
  explicit GuardedRepository(Mode mode, unsigned percent = 0) {
    require_ok(Repository::create(*disk.open(), password_of(mode), kCheapPassword, 16, percent));
    for (int i = 0; i < 3; ++i) snapshots.push_back(value_of(back_up(*reopen(disk))));
    require_ok(reopen(disk)->forget_snapshot(snapshots[2]));
  }

  void set(Access access) { require_ok(reopen(disk)->set_access(access)); }

  Result<SnapshotId> back_up(Repository& repository) {
    KIN_TRY(repository.begin_writing());
    const Bytes content = random_bytes(++seed_, 5000);
    KIN_TRY_ASSIGN(const ObjectId id, store_object(repository, content));
    TreeWriter tree(
        [&](ObjectKind kind, const Bytes& bytes) { return store_object(repository, bytes, kind); });
    Node node;
    node.name = "file";
    node.size = content.size();
    node.content = {{Extent::Kind::data, content.size(), id}};
    KIN_TRY(tree.add(node));
    Snapshot snapshot = snapshot_named("host" + std::to_string(seed_));
    KIN_TRY_ASSIGN(snapshot.tree, tree.finish());
    objects.emplace_back(id, content);
    return repository.commit(snapshot);
  }

  FaultyDisk disk;
  std::vector<SnapshotId> snapshots;
  std::vector<std::pair<ObjectId, Bytes>> objects;

 private:
  std::uint64_t seed_ = 0;
};

const ParityObserver kSilent{[](const std::string&) {},
                             [](std::string_view, std::uint64_t, std::uint64_t) {}};
const RepairObserver kQuiet{[](const std::string&) {}, [](std::string_view, std::uint64_t, std::uint64_t) {}};

Result<void> make_parity(Repository& repository, unsigned percent) {
  ParityOptions options;
  options.percent = percent;
  KIN_TRY(update_parity(repository, options, kSilent, {}));
  return {};
}

template <typename T>
Result<void> only_whether(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

using Deed = std::function<Result<void>(GuardedRepository&, Repository&)>;

// By what they are, for messages.
const std::map<std::string, Deed> kRemoving{
    {"forget", [](auto& with, auto& repository) { return repository.forget_snapshot(with.snapshots[0]); }},
    {"remove a snapshot",
     [](auto& with, auto& repository) { return repository.remove_snapshot(with.snapshots[0]); }},
    {"set a snapshot aside",
     [](auto& with, auto& repository) { return repository.set_aside_snapshot(with.snapshots[0]); }},
    {"change tags",
     [](auto& with, auto& repository) {
       return only_whether(repository.replace_snapshot(with.snapshots[0], snapshot_named("other")));
     }},
    {"prune",
     [](auto&, auto& repository) { return only_whether(Prune(repository, {}, [](auto...) {}).run({})); }},
    {"repair packs",
     [](auto&, auto& repository) { return only_whether(repair_packs(repository, false, kQuiet, {})); }},
    {"repair snapshots",
     [](auto&, auto& repository) { return only_whether(repair_snapshots(repository, false, kQuiet, {})); }},
    {"remove parity", [](auto&, auto& repository) { return make_parity(repository, 0); }},
    {"less parity", [](auto&, auto& repository) { return repository.set_parity_percent(4); }},
    {"remove a key", [](auto&, auto& repository) { return repository.remove_key(repository.key_name()); }},
    {"change a key",
     [](auto&, auto& repository) { return only_whether(repository.replace_key("new", kCheapPassword)); }},
};

const std::map<std::string, Deed> kAdding{
    {"back up", [](auto& with, auto& repository) { return only_whether(with.back_up(repository)); }},
    {"commit",
     [](auto& with, auto& repository) -> Result<void> {
       KIN_TRY_ASSIGN(Snapshot again, repository.load_snapshot(with.snapshots[0]));
       again.host = "other";
       return only_whether(repository.save_snapshot(again));
     }},
    {"undelete", [](auto& with, auto& repository) { return repository.recall_snapshot(with.snapshots[2]); }},
    {"a new index",
     [](auto&, auto& repository) {
       return only_whether(repository.rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
     }},
    {"parity", [](auto&, auto& repository) { return make_parity(repository, 20); }},
    {"more parity", [](auto&, auto& repository) { return repository.set_parity_percent(30); }},
    {"add a key",
     [](auto&, auto& repository) { return only_whether(repository.add_key("new", kCheapPassword)); }},
};

}  // namespace

TEST_CASE("each access has a name, and is found by it", "[access]") {
  for (const Access access : {Access::read_write, Access::append_only, Access::read_only})
    CHECK(access_named(name_of(access)) == access);
  CHECK_FALSE(access_named("readonly"));
  CHECK_FALSE(access_named(""));
}

TEST_CASE("an append-only repository refuses all that removes, and is as it was", "[access]") {
  const Mode mode = any_mode();
  GuardedRepository with(mode, 5);
  with.set(Access::append_only);
  const auto before = with.disk.files();
  for (const auto& [name, deed] : kRemoving) {
    INFO(name);
    const auto repository = reopen(with.disk);
    const auto done = deed(with, *repository);
    CHECK(code_of(done) == ErrorCode::refused);
    if (!done) CHECK_THAT(done.error().message(), Catch::Contains("append-only"));
    CHECK(with.disk.files() == before);
  }
  // To tell what would be done is no deed.
  PruneOptions options;
  options.dry_run = true;
  value_of(Prune(*reopen(with.disk), options, [](auto...) {}).run({}));
  value_of(repair_packs(*reopen(with.disk), true, kQuiet, {}));
  CHECK(with.disk.files() == before);
}

TEST_CASE("an append-only repository takes all that adds", "[access]") {
  const Mode mode = any_mode();
  for (const auto& [name, deed] : kAdding) {
    INFO(name);
    GuardedRepository with(mode, 5);
    with.set(Access::append_only);
    require_ok(deed(with, *reopen(with.disk)));
    require_sound(with.disk);
    CHECK(reopen(with.disk)->config().access == Access::append_only);
  }
}

TEST_CASE("a read-only repository is read, and refuses all that writes before anything is written",
          "[access]") {
  const Mode mode = any_mode();
  GuardedRepository with(mode, 5);
  with.set(Access::read_only);
  const auto before = with.disk.files();
  const std::uint64_t steps = with.disk.steps();
  for (const auto* const deeds : {&kRemoving, &kAdding})
    for (const auto& [name, deed] : *deeds) {
      INFO(name);
      const auto repository = reopen(with.disk);
      const auto done = deed(with, *repository);
      CHECK(code_of(done) == ErrorCode::refused);
      if (!done) CHECK_THAT(done.error().message(), Catch::Contains("read-only"));
    }
  const auto repository = reopen(with.disk);
  for (const auto& [id, content] : with.objects) CHECK(loads(*repository, id, content));
  CHECK(value_of(repository->list_snapshots()).size() == 2);
  require_ok(repository->fill_features({}));
  require_sound(with.disk);
  CHECK(with.disk.steps() == steps);
  CHECK(with.disk.files() == before);
}

TEST_CASE("what is damaged in a read-only repository is healed in memory, and stays as it was on the disk",
          "[access]") {
  GuardedRepository with(Mode::encrypted, 50);
  require_ok(make_parity(*reopen(with.disk), 50));
  with.set(Access::read_only);
  const FileName pack = with.disk.names(FileKind::pack).front();
  with.disk.erase(pack);
  const auto before = with.disk.files();
  const auto repository = reopen(with.disk);
  for (const auto& [id, content] : with.objects) CHECK(loads(*repository, id, content));
  CHECK(with.disk.files() == before);
  // And where writing is permitted again, it is put back.
  with.set(Access::read_write);
  const auto writer = reopen(with.disk);
  value_of(writer->begin_writing());
  CHECK(with.disk.has(pack));
}

TEST_CASE("parity of an append-only repository takes the place of older parity", "[access]") {
  GuardedRepository with(Mode::plain, 5);
  require_ok(make_parity(*reopen(with.disk), 5));
  const auto before = with.disk.names(FileKind::parity);
  with.set(Access::append_only);
  value_of(with.back_up(*reopen(with.disk)));
  require_ok(make_parity(*reopen(with.disk), 5));
  // The new set has the packs of the old one, too.
  const auto after = with.disk.names(FileKind::parity);
  CHECK(after.size() == 1);
  CHECK(after != before);
  const ParityStatus status = value_of(parity_status(*reopen(with.disk), true, [](const Error&) {}, {}));
  CHECK(status.bare_packs == 0);
  CHECK(status.damaged_files == 0);
}

TEST_CASE("whoever has the password lifts any access", "[access]") {
  const Mode mode = any_mode();
  GuardedRepository with(mode, 5);
  const Bytes before = with.disk.file(config_name());
  for (const Access access :
       {Access::read_only, Access::append_only, Access::read_only, Access::read_write}) {
    with.set(access);
    const auto repository = reopen(with.disk);
    CHECK(repository->config().access == access);
    CHECK(repository->config().parity_percent == 5);
  }
  CHECK(with.disk.file(config_name()).size() == before.size());
  require_ok(reopen(with.disk)->forget_snapshot(with.snapshots[0]));
}

TEST_CASE("a repository can be append-only from the beginning", "[access]") {
  FaultyDisk disk;
  require_ok(Repository::create(*disk.open(), std::nullopt, {}, 16, 0, Access::append_only));
  CHECK(reopen(disk)->config().access == Access::append_only);
}

}  // namespace kin::store

// Prunes, backups and readers that meet between any two calls of the backend: found by tests/stress, and here
// one by one.
#include "lib/object/tree.h"
#include "store/block_use.h"
#include "store/marks.h"
#include "store/prune.h"
#include "tests/support/hooked_backend.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <utility>

namespace kin::testing {
namespace {

using store::Prune;
using store::PruneOptions;
using store::PruneReport;
using store::Repository;

Bytes content(std::uint64_t number) { return random_bytes(number, 3'000); }

// A snapshot with a file for each of these contents, by who has begun to write.
Result<SnapshotId> go_on(Repository& repository, const std::vector<std::uint64_t>& contents) {
  TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(repository, bytes, kind); });
  Snapshot snapshot = snapshot_named("here");
  for (const std::uint64_t number : contents) {
    Node node;
    node.name = std::to_string(number);
    node.size = content(number).size();
    KIN_TRY_ASSIGN(const ObjectId id, store_object(repository, content(number)));
    node.content = {{Extent::Kind::data, node.size, id}};
    KIN_TRY(tree.add(node));
  }
  KIN_TRY_ASSIGN(snapshot.tree, tree.finish());
  return repository.commit(snapshot);
}

Result<SnapshotId> back_up(Repository& repository, const std::vector<std::uint64_t>& contents) {
  KIN_TRY(repository.begin_writing());
  return go_on(repository, contents);
}

Result<void> read_all(Repository& repository, const SnapshotId& id) {
  KIN_TRY_ASSIGN(const Snapshot snapshot, repository.load_snapshot(id));
  TreeCursor cursor(repository, snapshot.tree);
  for (;;) {
    KIN_TRY_ASSIGN(const auto node, cursor.next());
    if (!node) return {};
    KIN_TRY_ASSIGN(const auto bytes, repository.load(node->content.at(0).id));
    if (!equal(*bytes, content(std::stoull(node->name)))) return Error(ErrorCode::corrupt, "other content");
  }
}

void require_all_there(FaultyDisk& disk, std::size_t snapshots) {
  const auto repository = reopen(disk);
  const auto ids = value_of(repository->list_snapshots());
  CHECK(ids.size() == snapshots);
  for (const SnapshotId& id : ids) require_ok(read_all(*repository, id));
  require_sound(disk);
}

Result<PruneReport> prune(std::unique_ptr<store::Backend> backend, std::uint64_t grace = 0) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(std::move(backend)));
  PruneOptions options;
  options.grace = grace;
  options.most_unused_share = 0;
  return Prune(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({});
}

// 1 and 2 are stored, and nothing needs 2 any more.
void fill(FaultyDisk& disk) {
  create_repository(disk);
  value_of(back_up(*reopen(disk), {1}));
  const SnapshotId second = value_of(back_up(*reopen(disk), {2}));
  require_ok(reopen(disk)->forget_snapshot(second));
}

}  // namespace

TEST_CASE("a prune ends what another one has begun to remove", "[repository][prune]") {
  FaultyDisk disk;
  fill(disk);
  const auto writer = reopen(disk);
  value_of(writer->begin_writing());  // which takes 2 for stored
  bool said = false, done = false;
  std::optional<ErrorCode> made;
  const auto pruned = prune(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
    said |= operation == Operation::put && kind == FileKind::mark;
    if (!said || operation != Operation::list || kind != FileKind::index || std::exchange(done, true)) return;
    // It has said that it removes 2. Who comes now would have left 2 there, and said nothing of it.
    value_of(prune(disk.open(), 5));
    made = code_of(back_up(*writer, {1, 2}));
  }));
  REQUIRE(done);
  CHECK(code_of(pruned) == ErrorCode::busy);
  require_all_there(disk, made ? 1 : 2);
  value_of(back_up(*reopen(disk), {1, 2}));
  value_of(prune(disk.open()));
  require_all_there(disk, made ? 2 : 3);
}

TEST_CASE("a backup sees a sweep also where the marks are lost meanwhile", "[repository][prune]") {
  FaultyDisk disk;
  fill(disk);
  value_of(prune(disk.open()));
  require_ok(reopen(disk)->forget_snapshot(value_of(back_up(*reopen(disk), {2}))));
  const FileName mark = disk.names(FileKind::mark).at(0);
  const bool is_there = GENERATE(true, false);
  bool done = false;
  const auto writer =
      value_of(open_repository(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
        if (operation != Operation::put || kind != FileKind::snapshot || std::exchange(done, true)) return;
        // Who counts prunes from the marks begins again with 1, which is what it was.
        if (is_there)
          disk.flip(mark, 20);
        else
          disk.erase(mark);
        CHECK(value_of(prune(disk.open())).removed.packs > 0);
      })));
  require_ok(writer->refresh_index());
  CHECK(code_of(back_up(*writer, {1, 2})) == ErrorCode::busy);
  REQUIRE(done);
  require_all_there(disk, 1);
  value_of(back_up(*reopen(disk), {1, 2}));
  require_all_there(disk, 2);
}

TEST_CASE("a backup that began beside a prune which gave up sees the next one", "[repository][prune]") {
  FaultyDisk disk;
  fill(disk);
  std::unique_ptr<Repository> writer;
  bool done = false;
  const auto pruned = prune(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
    if (operation != Operation::put || kind != FileKind::mark || std::exchange(done, true)) return;
    // This one says what it will remove, and gives up: there is a mark that it does not know.
    const FileName mark{FileKind::mark, std::string(64, 'a')};
    bool said = false;
    CHECK(code_of(prune(std::make_unique<HookedBackend>(disk, [&](Operation inner, FileKind of) {
            said |= inner == Operation::put && of == FileKind::mark;
            if (!said || inner != Operation::list || of != FileKind::mark || writer) return;
            disk.write(mark, {});
            // It has nothing of 2 to be marked: who begins now does not know that it is to go.
            writer = reopen(disk);
          }))) == ErrorCode::busy);
    disk.erase(mark);
  }));
  REQUIRE(writer);
  CHECK(value_of(Result(pruned)).removed.packs > 0);
  const auto made = back_up(*writer, {1, 2});
  require_all_there(disk, made ? 2 : 1);
}

TEST_CASE("an index that is replaced while it is read is read again", "[repository][prune]") {
  FaultyDisk disk;
  create_repository(disk);
  const SnapshotId id = value_of(back_up(*reopen(disk), {1}));
  value_of(back_up(*reopen(disk), {2}));
  bool done = false;
  const auto replace = [&](Operation operation, FileKind kind) {
    if (operation != Operation::get || kind != FileKind::index || std::exchange(done, true)) return;
    value_of(reopen(disk)->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  };
  const auto reader = value_of(open_repository(std::make_unique<HookedBackend>(disk, replace)));
  SECTION("by a reader") {
    value_of(reader->list_snapshots());
    require_ok(read_all(*reader, id));
  }
  SECTION("by who asks what is needed") {
    auto use = value_of(store::BlockUse::read(*reader, {}));
    require_ok(use.add(value_of(reader->load_snapshot(id)), {}));
  }
  CHECK(done);
}

TEST_CASE("a reader lives through two prunes that move what it reads", "[repository][prune]") {
  FaultyDisk disk;
  create_repository(disk);
  std::vector<SnapshotId> ids;
  for (const std::vector<std::uint64_t>& contents : {std::vector<std::uint64_t>{1, 2, 3}, {1, 2}, {1}})
    ids.push_back(value_of(back_up(*reopen(disk), contents)));
  const auto reader = reopen(disk, "", 0);
  for (const std::size_t forgotten : {0U, 1U}) {
    require_ok(reopen(disk)->forget_snapshot(ids[forgotten]));
    CHECK(value_of(prune(disk.open())).rewritten.packs > 0);
    require_ok(read_all(*reader, ids[2]));
  }
}

TEST_CASE("a delta whose base went, since its object has another place, hinders nobody",
          "[repository][prune]") {
  // Which of two places counts follows from the keys and from hashes.
  for (std::uint64_t round = 0; round < 24; ++round) {
    INFO("round " << round);
    FaultyDisk disk;
    create_repository(disk);
    const Bytes base = content(2 + 3 * round), other = content(3 + 3 * round), both = content(1);
    const auto put = [&](const std::vector<EncodedBlock>& blocks) {
      const auto writer = reopen(disk);
      for (const EncodedBlock& block : blocks) value_of(writer->append(block));
      require_ok(writer->flush());
    };
    const auto keys = reopen(disk);
    put({plain_block(*keys, {base})});
    // Beside it something that is needed, so that the pack stays.
    put({delta_block(*keys, keys->id_of(base), base, both), plain_block(*keys, {content(4 + 3 * round)})});
    put({plain_block(*keys, {both}), plain_block(*keys, {content(5 + 3 * round)})});
    value_of(back_up(*reopen(disk), {1, 4 + 3 * round, 5 + 3 * round}));
    for (int i = 0; i < 2; ++i) {
      const auto repository = reopen(disk);
      PruneOptions options;
      options.grace = 0;
      options.most_unused_share.reset();
      value_of(Prune(*repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({}));
    }
    require_all_there(disk, 1);
  }
}

TEST_CASE("an index made while a prune removes packs does not list them", "[repository][prune][rebuild]") {
  FaultyDisk disk;
  fill(disk);
  bool done = false;
  const auto rebuild = [&](std::unique_ptr<store::Backend> backend) {
    const auto repository = value_of(open_repository(std::move(backend)));
    value_of(repository->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  };
  SECTION("which began before") {
    value_of(prune(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
      if (operation == Operation::remove && kind == FileKind::pack && !std::exchange(done, true))
        rebuild(disk.open());
    })));
  }
  SECTION("which began after") {
    rebuild(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
      if (operation == Operation::get && kind == FileKind::pack && !std::exchange(done, true))
        value_of(prune(disk.open()));
    }));
  }
  CHECK(done);
  require_all_there(disk, 1);
}

TEST_CASE("a snapshot is not replaced by another while a prune removes what it needs",
          "[repository][prune]") {
  FaultyDisk disk;
  create_repository(disk);
  value_of(back_up(*reopen(disk), {1}));
  const SnapshotId second = value_of(back_up(*reopen(disk), {2}));
  require_ok(reopen(disk)->forget_snapshot(second));
  bool done = false;
  static_cast<void>(prune(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
    // It has said what goes, and listed the snapshots.
    if (operation != Operation::remove || kind != FileKind::forgotten || std::exchange(done, true)) return;
    const auto other = reopen(disk);
    Snapshot copy = value_of(other->load_forgotten(second));
    copy.tags = {"tagged"};
    CHECK(code_of(other->save_snapshot(copy)) == ErrorCode::busy);
  })));
  CHECK(done);
  require_all_there(disk, 1);
}

TEST_CASE("of objects that two writers have stored as deltas against each other, one stays whole",
          "[repository][prune]") {
  // Which places are chosen goes by the names of segments, which are random.
  for (int round = 0; round < 40; ++round) {
    FaultyDisk disk;
    create_repository(disk);
    const auto one = reopen(disk), other = reopen(disk);
    for (Repository* const writer : {one.get(), other.get()}) value_of(writer->begin_writing());
    for (Repository* const writer : {one.get(), other.get()}) {
      const std::uint64_t whole = writer == one.get() ? 1 : 2, delta = 3 - whole;
      const ObjectId base = value_of(store_object(*writer, content(whole)));
      require_ok(writer->flush());
      REQUIRE(value_of(writer->claim(writer->id_of(content(delta)))));
      value_of(writer->append(delta_block(*writer, base, content(whole), content(delta))));
      require_ok(writer->flush());
    }
    value_of(go_on(*one, {1, 2}));
    value_of(go_on(*other, {2}));
    value_of(prune(disk.open()));
    require_all_there(disk, 2);
  }
}

TEST_CASE("a backup does not take for stored what a new index lists and a prune has removed",
          "[repository][prune][rebuild]") {
  FaultyDisk disk;
  fill(disk);
  std::unique_ptr<Repository> writer;
  bool is_backed_up = false;
  const auto rebuilder =
      value_of(open_repository(std::make_unique<HookedBackend>(disk, [&](Operation operation, FileKind kind) {
        if (kind != FileKind::index) return;
        if (operation == Operation::put && !writer) {  // with what the packs had, when it read them
          value_of(prune(disk.open()));
          writer = reopen(disk);
          value_of(writer->begin_writing());
        }
        if (operation == Operation::remove && !std::exchange(is_backed_up, true)) {
          require_ok(writer->refresh_index());
          value_of(go_on(*writer, {2}));
        }
      })));
  value_of(rebuilder->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  CHECK(is_backed_up);
  require_all_there(disk, 2);
}

}  // namespace kin::testing

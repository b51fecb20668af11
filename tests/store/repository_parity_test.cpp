// What is damaged and has parity is healed by whoever meets it, and parity is there after whatever else was
// done.
#include "lib/object/tree.h"
#include "store/check.h"
#include "store/damage.h"
#include "store/parity.h"
#include "store/prune.h"
#include "store/repair.h"
#include "tests/support/damage.h"
#include "tests/support/hooked_backend.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <utility>

namespace kin::store {
namespace {

using namespace kin::testing;

const ParityObserver kSilent{[](const std::string&) {},
                             [](std::string_view, std::uint64_t, std::uint64_t) {}};

// The content of packs that are so large that a bad sector is not most of them.
constexpr std::size_t kManySectors = 64 << 10;

// Packs of one object and one tree each, written by a backup each, and parity for them.
class ParityRepository {
 public:
  explicit ParityRepository(std::size_t count, unsigned percent = 20, Mode mode = Mode::plain,
                            std::size_t most = 3000)
      : percent_(percent) {
    require_ok(Repository::create(*disk.open(), password_of(mode), kCheapPassword, 16, percent));
    for (std::size_t i = 0; i < count; ++i) add(most);
  }

  // `needless`: beside what the snapshot needs, in the same pack.
  void add(std::size_t most = 3000, bool with_parity = true, bool needless = false) {
    const auto repository = open();
    value_of(repository->begin_writing());
    const std::uint64_t seed = objects.size();
    if (needless) value_of(store_object(*repository, random_bytes(1000 + seed, most)));
    const Bytes content = random_bytes(seed, most / 2 + seed * 37 % (most / 2));
    const ObjectId id = value_of(store_object(*repository, content));
    TreeWriter tree([&](ObjectKind kind, Bytes bytes) { return store_object(*repository, bytes, kind); });
    Node node;
    node.name = "file";
    node.type = NodeType::file;
    node.size = content.size();
    node.content = {{Extent::Kind::data, content.size(), id}};
    require_ok(tree.add(node));
    Snapshot snapshot = snapshot_named("host" + std::to_string(seed));
    snapshot.tree = value_of(tree.finish());
    snapshots.push_back(value_of(repository->commit(snapshot)));
    objects.emplace_back(id, content);
    if (with_parity) value_of(update(*repository));
  }

  // No block is cached, so that each load reads. Tells what was healed.
  std::unique_ptr<Repository> open(bool heal = true) { return open_on(disk.open(), heal); }
  std::unique_ptr<Repository> open_on(std::unique_ptr<Backend> backend, bool heal = true) {
    return open_on(std::move(backend), options(heal));
  }
  std::unique_ptr<Repository> open_on(std::unique_ptr<Backend> backend, const OpenOptions& options) {
    auto repository = value_of(Repository::open(std::move(backend), options));
    require_ok(repository->refresh_index());
    return repository;
  }
  OpenOptions options(bool heal = true) {
    OpenOptions options;
    options.password = []() -> Result<std::string> { return std::string(kPassword); };
    options.use_cache = false;
    options.block_cache_bytes = 0;
    options.heal = heal;
    options.on_healed = [this](const ObjectId& pack, const Result<void>& put_back) {
      (put_back ? healed : healed_in_memory).insert(pack);
    };
    return options;
  }

  Result<ParityUpdate> update(Repository& repository, std::set<ObjectId> leaving = {},
                              bool check_all = false) {
    ParityOptions options;
    options.percent = percent_;
    options.leaving = std::move(leaving);
    options.check_all = check_all;
    return update_parity(repository, options, kSilent, {});
  }

  CheckStats check(bool heal = true) { return check(*open(heal)); }
  CheckStats check(Repository& repository) {
    problems.clear();
    CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { problems.push_back(problem); };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    return value_of(store::check(repository, {}, {ReadSubset::Kind::all}, observer, {}));
  }

  std::size_t count_sound(Repository& repository) {
    std::size_t sound = 0;
    for (const auto& [id, content] : objects) sound += loads(repository, id, content);
    return sound;
  }

  std::map<FileName, Bytes> packs() const {
    std::map<FileName, Bytes> out;
    for (const auto& [name, bytes] : disk.files())
      if (name.kind == FileKind::pack) out[name] = bytes;
    return out;
  }

  // By the headers: the packs that have parity, and those of them that are not there.
  std::pair<std::set<ObjectId>, std::set<ObjectId>> covered() {
    const auto repository = open();
    std::pair<std::set<ObjectId>, std::set<ObjectId>> out;
    for (const FileName& name : disk.names(FileKind::parity)) {
      const ParityFile file =
          value_of(ParityFile::open(repository->parity_place(), {name.name, disk.file(name).size()}));
      for (const ParityHeader::Pack& pack : file.header().packs) {
        out.first.insert(pack.id);
        if (!packs().contains({FileKind::pack, pack.id.hex()})) out.second.insert(pack.id);
      }
    }
    return out;
  }

  // As a medium that takes no more files.
  class ReadOnly : public FaultyBackend {
   public:
    using FaultyBackend::FaultyBackend;
    Result<void> put(const FileName&, ByteView) override { return Error(ErrorCode::io, "read-only"); }
  };

  class NoRoomForPacks : public FaultyBackend {
   public:
    using FaultyBackend::FaultyBackend;
    Result<void> put(const FileName& name, ByteView bytes) override {
      if (name.kind == FileKind::pack) return Error(ErrorCode::no_space, "full");
      return FaultyBackend::put(name, bytes);
    }
  };

  FaultyDisk disk;
  std::vector<std::pair<ObjectId, Bytes>> objects;
  std::vector<SnapshotId> snapshots;
  std::set<ObjectId> healed, healed_in_memory;
  std::vector<std::string> problems;

 private:
  unsigned percent_;
};

// An object's pack, which is large enough for any damage.
FileName pack_with(ParityRepository& sample, std::size_t object) {
  const BlockRef block = value_of(sample.open()->locate(sample.objects[object].first));
  return {FileKind::pack, block.pack.hex()};
}

}  // namespace

TEST_CASE("what is read of a damaged pack is healed, and put back", "[repository][parity]") {
  ParityRepository sample(8, 20, any_mode());
  const FileName pack = pack_with(sample, 3);
  const Bytes whole = sample.disk.file(pack);
  const int how = GENERATE(0, 1, 2, 3);
  Bytes bytes = whole;
  if (how == 0) bytes[3] ^= 1;  // of what all blocks need
  if (how == 1) bytes[500] ^= 1;
  if (how == 2) bytes.erase(bytes.begin() + 100, bytes.begin() + 150);
  sample.disk.write(pack, bytes);
  if (how == 3) sample.disk.erase(pack);
  const auto repository = sample.open();
  CHECK(sample.count_sound(*repository) == sample.objects.size());
  CHECK(sample.healed == std::set{*ObjectId::from_hex(pack.name)});
  CHECK(sample.disk.file(pack) == whole);
  CHECK(repository->lost_packs().empty());
}

TEST_CASE("what cannot be put back is read as it was all the same", "[repository][parity]") {
  ParityRepository sample(8);
  const FileName pack = pack_with(sample, 3);
  Bytes bytes = sample.disk.file(pack);
  bytes[500] ^= 1;
  sample.disk.write(pack, bytes);
  const auto repository = sample.open_on(std::make_unique<ParityRepository::ReadOnly>(sample.disk));
  for (int round = 0; round < 2; ++round) CHECK(sample.count_sound(*repository) == sample.objects.size());
  CHECK(sample.healed.empty());
  CHECK(sample.healed_in_memory == std::set{*ObjectId::from_hex(pack.name)});
  CHECK(sample.disk.file(pack) == bytes);
}

TEST_CASE("of what cannot be put back, what was asked for last is kept", "[repository][parity]") {
  ParityRepository sample(12, 60);
  for (const std::size_t i : {1U, 4U, 5U, 7U}) sample.disk.erase(pack_with(sample, i));
  OpenOptions options = sample.options();
  options.healed_bytes = GENERATE(1U, 4'000U, 7'000U);
  const auto repository = sample.open_on(std::make_unique<ParityRepository::ReadOnly>(sample.disk), options);
  for (int round = 0; round < 2; ++round) CHECK(sample.count_sound(*repository) == sample.objects.size());
  CHECK(sample.healed_in_memory.size() == 4);
}

TEST_CASE("packs that cannot be healed have their set read once", "[repository][parity]") {
  ParityRepository sample(8);
  for (const std::size_t i : {1U, 2U, 4U, 5U, 7U}) sample.disk.erase(pack_with(sample, i));
  const auto gets = [&](bool heal) {
    const std::uint64_t before = sample.disk.count(Operation::get);
    // As kin check does: it has no index yet when it looks which packs are there.
    const auto repository = value_of(Repository::open(sample.disk.open(), sample.options(heal)));
    CHECK(sample.check(*repository).problems > 0);
    return sample.disk.count(Operation::get) - before;
  };
  const std::uint64_t without = gets(false), with = gets(true);
  // Its 11 packs and its own parts, and for each pack the header and a last look.
  CHECK(with - without < 40);
}

TEST_CASE("what a disk cannot read is healed as well", "[repository][parity]") {
  ParityRepository sample(8);
  const FileName pack = pack_with(sample, 3);
  class BadDisk : public FaultyBackend {
   public:
    BadDisk(FaultyDisk& disk, FileName bad) : FaultyBackend(disk), bad_(std::move(bad)) {}
    Result<Bytes> get(const FileName& name) override {
      if (name == bad_ && !replaced_) return Error(ErrorCode::io, "bad sector");
      return FaultyBackend::get(name);
    }
    Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override {
      if (name == bad_ && !replaced_ && offset + size > 200) return Error(ErrorCode::io, "bad sector");
      return FaultyBackend::get_range(name, offset, size);
    }
    Result<void> put(const FileName& name, ByteView bytes) override {
      replaced_ = replaced_ || name == bad_;
      return FaultyBackend::put(name, bytes);
    }

   private:
    const FileName bad_;
    bool replaced_ = false;
  };
  const auto repository = sample.open_on(std::make_unique<BadDisk>(sample.disk, pack));
  CHECK(sample.count_sound(*repository) == sample.objects.size());
  CHECK(sample.healed == std::set{*ObjectId::from_hex(pack.name)});
}

TEST_CASE("a check heals, or says what it would not", "[repository][parity]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  const FileName damaged = pack_with(sample, 2), missing = pack_with(sample, 5);
  Bytes bytes = whole.at(damaged);
  bytes[500] ^= 1;
  sample.disk.write(damaged, bytes);
  sample.disk.erase(missing);
  CHECK(sample.check(false).problems > 0);
  CHECK((sample.packs() != whole));
  const CheckStats stats = sample.check();
  CHECK(stats.healed_packs == 2);
  CHECK(stats.problems == 0);
  CHECK(stats.packs == whole.size());
  CHECK(stats.packs_read == whole.size());
  CHECK(stats.bare_packs == 0);
  CHECK((sample.packs() == whole));
  CHECK(sample.check(false).problems == 0);
}

TEST_CASE("a check goes no further than what it has read of a pack", "[repository][parity]") {
  ParityRepository sample(3);
  // Whole when it is listed and when its blocks are looked for; another heals it in between.
  class Shorter : public FaultyBackend {
   public:
    Shorter(FaultyDisk& disk, FileName pack, std::size_t size)
        : FaultyBackend(disk), pack_(std::move(pack)), size_(size) {}
    Result<Bytes> get(const FileName& name) override {
      KIN_TRY_ASSIGN(Bytes bytes, FaultyBackend::get(name));
      if (name == pack_) bytes.resize(size_);
      return bytes;
    }

   private:
    const FileName pack_;
    const std::size_t size_;
  };
  const FileName pack = pack_with(sample, 1);
  for (const std::size_t size : {std::size_t{0}, std::size_t{60}, sample.disk.file(pack).size() - 1}) {
    const auto repository = sample.open_on(std::make_unique<Shorter>(sample.disk, pack, size), false);
    CHECK(sample.check(*repository).problems > 0);
  }
}

TEST_CASE("a damaged parity file is told, and made anew", "[repository][parity]") {
  ParityRepository sample(5);
  const FileName parity = sample.disk.names(FileKind::parity).at(0);
  Bytes bytes = sample.disk.file(parity);
  bytes[GENERATE(0, 6, 300)] ^= 1;
  sample.disk.write(parity, bytes);
  CHECK(sample.check().problems == 1);
  CHECK_THAT(sample.problems.at(0), Catch::Contains(parity.text()));
  value_of(sample.update(*sample.open(), {}, true));
  CHECK(sample.check().problems == 0);
  CHECK(sample.covered().first.size() == sample.packs().size());
}

TEST_CASE("a bad sector in a parity file is told, and leaves it of use", "[repository][parity]") {
  ParityRepository sample(8, 20, Mode::plain, kManySectors);
  const auto whole = sample.packs();
  const FileName parity = sample.disk.names(FileKind::parity).at(0), pack = pack_with(sample, 3);
  const std::uint64_t size = sample.disk.file(parity).size();
  // The first header, the last, a part of the parity, or all that could tell whose parity it is.
  const int where = GENERATE(0, 1, 2, 3);
  CAPTURE(where);
  if (where == 0) sample.disk.spoil(parity, 10, 20);
  if (where == 1) sample.disk.spoil(parity, size - 30, 20);
  if (where == 2) sample.disk.spoil(parity, size - size / 3, 20);
  if (where == 3) sample.disk.spoil(parity, 0, size);
  Bytes bytes = whole.at(pack);
  bytes[500] ^= 1;
  sample.disk.write(pack, bytes);
  const std::uint64_t problems = sample.check().problems;
  CHECK((where == 3 ? problems > 1 : problems == 1));
  CHECK((sample.packs() == whole) == (where != 3));
  value_of(sample.update(*sample.open(), {}, true));
  // Who knows whether it can be read tomorrow?
  CHECK(sample.disk.files().contains(parity) == (where == 3));
  sample.disk.heal();
  CHECK(sample.check().problems == 0);
  CHECK((sample.packs() == whole));
}

TEST_CASE("a bad sector in a pack keeps no other from parity", "[repository][parity]") {
  ParityRepository sample(4, 20, Mode::plain, kManySectors);
  sample.add(kManySectors, false);
  const bool can_be_healed = GENERATE(true, false);
  CAPTURE(can_be_healed);
  sample.disk.spoil(pack_with(sample, can_be_healed ? 1 : 4), 300, 10);
  const ParityUpdate update = value_of(sample.update(*sample.open()));
  CHECK(update.unprotected.size() == (can_be_healed ? 0 : 1));
  CHECK(sample.covered().first.size() == sample.packs().size() - (can_be_healed ? 0 : 1));
}

TEST_CASE("a pack that was listed when it was cut short gets parity as it is", "[repository][parity]") {
  ParityRepository sample(4);
  const FileName parity = sample.disk.names(FileKind::parity).at(0), pack = pack_with(sample, 1);
  const Bytes whole = sample.disk.file(pack);
  sample.disk.spoil(parity, 0, sample.disk.file(parity).size());
  sample.disk.write(pack, Bytes(whole.begin(), whole.begin() + 1000));
  bool done = false;
  const auto repository =
      sample.open_on(std::make_unique<HookedBackend>(sample.disk, [&](Operation operation, FileKind kind) {
        if (operation != Operation::get || kind != FileKind::pack || std::exchange(done, true)) return;
        sample.disk.heal();
        sample.disk.write(pack, whole);
      }));
  CHECK(value_of(sample.update(*repository)).unprotected.empty());
  CHECK(done);
  sample.disk.erase(parity);
  CHECK(sample.covered().first.size() == sample.packs().size());
}

TEST_CASE("repair heals what it can before it gives anything up", "[repository][parity][repair]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  const FileName pack = pack_with(sample, 2);
  Bytes bytes = whole.at(pack);
  bytes[500] ^= 1;
  sample.disk.write(pack, bytes);
  const auto repository = sample.open();
  const PackRepair report =
      value_of(repair_packs(*repository, false, {kSilent.on_found, kSilent.on_progress}, {}));
  CHECK(report.healed == 1);
  CHECK(report.damaged + report.missing + report.lost_blocks == 0);
  CHECK((sample.packs() == whole));
}

TEST_CASE("a dry run of repair heals in memory, and says nothing is lost", "[repository][parity][repair]") {
  ParityRepository sample(8, 60);
  for (const std::size_t i : {1U, 2U, 5U}) sample.disk.erase(pack_with(sample, i));
  const auto before = sample.disk.files();
  OpenOptions options = sample.options();
  options.put_back = false;
  const auto repository = sample.open_on(sample.disk.open(), options);
  const PackRepair report =
      value_of(repair_packs(*repository, true, {kSilent.on_found, kSilent.on_progress}, {}));
  CHECK(report.healed == 3);
  CHECK(report.damaged + report.missing + report.lost_blocks + report.saved_blocks == 0);
  CHECK((sample.disk.files() == before));
  CHECK(sample.healed.empty());
}

TEST_CASE("what is healed but finds no room is not given up", "[repository][parity][repair]") {
  ParityRepository sample(8);
  const FileName pack = pack_with(sample, 2);
  const Bytes whole = sample.disk.file(pack);
  Bytes bytes = whole;
  bytes[500] ^= 1;
  sample.disk.write(pack, bytes);
  if (GENERATE(true, false)) sample.disk.erase(pack);
  const auto before = sample.disk.files();
  const auto repository = sample.open_on(std::make_unique<ParityRepository::NoRoomForPacks>(sample.disk));
  const auto repaired = repair_packs(*repository, false, {kSilent.on_found, kSilent.on_progress}, {});
  REQUIRE_FALSE(repaired);
  CHECK(repaired.error().code() == ErrorCode::no_space);
  CHECK_THAT(repaired.error().message(), Catch::Contains("can be healed"));
  CHECK((sample.disk.files() == before));
  // Once there is room, it is put back.
  CHECK(value_of(sample.open()->heal_on_disk(*ObjectId::from_hex(pack.name))));
  CHECK(sample.disk.file(pack) == whole);
}

TEST_CASE("who makes a new index from the packs heals them first", "[repository][parity][repair]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  const FileName pack = pack_with(sample, 2);
  Bytes bytes = whole.at(pack);
  const int how = GENERATE(0, 1, 2, 3);
  if (how == 0) bytes[60] ^= 1;
  if (how == 1) bytes.resize(bytes.size() - 200);
  sample.disk.write(pack, bytes);
  if (how >= 2) sample.disk.erase(pack);
  // That there was such a pack, only the parity knows then.
  if (how == 3)
    for (const FileName& name : sample.disk.names(FileKind::index)) sample.disk.erase(name);
  const auto stats =
      value_of(sample.open()->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  CHECK(stats.damaged_packs == 0);
  CHECK(stats.packs == whole.size());
  CHECK((sample.packs() == whole));
  sample.add();
  CHECK(sample.count_sound(*sample.open()) == sample.objects.size());
  CHECK(sample.check().problems == 0);
  CHECK(sample.covered().first.size() == sample.packs().size());
}

TEST_CASE("the old index stays where a healed pack finds no room", "[repository][parity][repair]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  sample.disk.erase(pack_with(sample, 2));
  const auto before = sample.disk.files();
  const auto repository = sample.open_on(std::make_unique<ParityRepository::NoRoomForPacks>(sample.disk));
  const auto rebuilt = repository->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {});
  CHECK(code_of(rebuilt) == ErrorCode::no_space);
  CHECK((sample.disk.files() == before));
  sample.add();
  for (const auto& [name, bytes] : whole) CHECK(sample.disk.file(name) == bytes);
}

TEST_CASE("a pack that no segment lists any more does not take its parity along", "[repository][parity]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  const FileName pack = pack_with(sample, 2);
  const ObjectId id = *ObjectId::from_hex(pack.name);
  require_ok(sample.open()->drop_from_index({id}, {}));
  sample.disk.erase(pack);
  const bool is_given_up = GENERATE(true, false);
  if (is_given_up) {
    const auto repository = sample.open();
    Marks marks;
    if (GENERATE(true, false))
      marks.packs[id] = 1;
    else
      marks.sweeping.insert(id);
    value_of(put_marks(repository->backend(), repository->sealer(), marks));
  }
  value_of(sample.update(*sample.open()));
  CHECK(sample.packs().size() == whole.size() - (is_given_up ? 1 : 0));
  CHECK(sample.covered().second.empty());
  CHECK(sample.covered().first.size() == sample.packs().size());
  if (is_given_up) return;
  value_of(sample.open()->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  CHECK(sample.check().problems == 0);
}

TEST_CASE("a backup heals packs that are missing, and stores nothing again", "[repository][parity]") {
  ParityRepository sample(8);
  const auto whole = sample.packs();
  sample.disk.erase(pack_with(sample, 2));
  const auto repository = sample.open();
  value_of(repository->begin_writing());
  CHECK(repository->lost_packs().empty());
  CHECK(value_of(repository->contains(sample.objects[2].first)));
  CHECK((sample.packs() == whole));
}

TEST_CASE("small sets are taken together", "[repository][parity]") {
  ParityRepository sample(33);
  CHECK(sample.disk.names(FileKind::parity).size() == 1);
  const auto [covered, missing] = sample.covered();
  CHECK(covered.size() == sample.packs().size());
  CHECK(missing.empty());
}

TEST_CASE("packs that have no parity yet get it the next time", "[repository][parity]") {
  ParityRepository sample(4);
  sample.add(3000, false);
  CHECK(sample.check().bare_packs > 0);
  CHECK(sample.problems.empty());
  value_of(sample.update(*sample.open()));
  CHECK(sample.check().bare_packs == 0);
}

TEST_CASE("parity is made anew with another percentage, and removed", "[repository][parity]") {
  ParityRepository sample(6, 10);
  const auto size = [&] {
    std::size_t out = 0;
    for (const FileName& name : sample.disk.names(FileKind::parity)) out += sample.disk.file(name).size();
    return out;
  };
  const std::size_t before = size();
  for (const unsigned percent : {100U, 0U}) {
    const auto repository = sample.open();
    require_ok(repository->set_parity_percent(percent));
    ParityOptions options;
    options.percent = percent;
    options.check_all = true;
    value_of(update_parity(*repository, options, kSilent, {}));
    CHECK(sample.open()->config().parity_percent == percent);
    if (percent == 100) CHECK(size() > 2 * before);
  }
  CHECK(sample.disk.names(FileKind::parity).empty());
  CHECK(sample.count_sound(*sample.open()) == sample.objects.size());
}

TEST_CASE("a prune leaves no set that lacks a pack", "[repository][parity][prune]") {
  ParityRepository sample(8);
  for (const std::size_t i : {1U, 4U, 6U}) require_ok(sample.open()->forget_snapshot(sample.snapshots[i]));
  PruneOptions options;
  options.grace = GENERATE(0U, 1U);
  const auto ignore = [](std::string_view, std::uint64_t, std::uint64_t) {};
  const std::size_t before = sample.packs().size();
  for (int round = 0; round < 2; ++round) {
    const auto repository = sample.open();
    const PruneReport report = value_of(Prune(*repository, options, ignore).run({}));
    CHECK_FALSE(report.parity_failed);
    CHECK(sample.covered().second.empty());
  }
  CHECK(sample.packs().size() == before - 6);
  CHECK(sample.covered().first.size() == before - 6);
  CHECK(sample.check().problems == 0);
  // And what is left is healed as before.
  const auto whole = sample.packs();
  sample.disk.erase(pack_with(sample, 0));
  CHECK(sample.check().problems == 0);
  CHECK((sample.packs() == whole));
}

TEST_CASE("parity that is made while a prune removes packs is made without them",
          "[repository][parity][prune]") {
  ParityRepository sample(1);
  for (int i = 0; i < 3; ++i) sample.add(3000, false);
  for (const std::size_t i : {1U, 2U, 3U}) require_ok(sample.open()->forget_snapshot(sample.snapshots[i]));
  const auto ignore = [](std::string_view, std::uint64_t, std::uint64_t) {};
  PruneOptions options;
  options.grace = 0;
  int reads = 0;
  const auto repository =
      sample.open_on(std::make_unique<HookedBackend>(sample.disk, [&](Operation operation, FileKind kind) {
        // It has read all that go, and two packs are left.
        if (operation != Operation::get || kind != FileKind::pack || ++reads != 7) return;
        value_of(Prune(*sample.open(), options, ignore).run({}));
      }));
  value_of(sample.update(*repository));
  CHECK(sample.packs().size() == 2);
  CHECK(sample.covered().first.size() == 2);
  CHECK(sample.covered().second.empty());
  CHECK(sample.disk.names(FileKind::parity).size() == 1);
}

TEST_CASE("who heals while parity is made anew finds the new one", "[repository][parity]") {
  ParityRepository sample(8);
  sample.add(3000, false);
  const FileName damaged = pack_with(sample, 0);
  const Bytes whole = sample.disk.file(damaged);
  bool done = false;
  const auto reader =
      sample.open_on(std::make_unique<HookedBackend>(sample.disk, [&](Operation operation, FileKind kind) {
        if (operation != Operation::get || kind != FileKind::parity || std::exchange(done, true)) return;
        sample.disk.write(damaged, whole);  // or that would be healed now
        value_of(sample.update(*sample.open()));
        sample.disk.erase(damaged);
      }));
  sample.disk.erase(damaged);
  CHECK(loads(*reader, sample.objects[0].first, sample.objects[0].second));
  CHECK(done);
  CHECK(sample.disk.file(damaged) == whole);
}

TEST_CASE("a pack that is only marked keeps its parity", "[repository][parity][prune]") {
  ParityRepository sample(8);
  require_ok(sample.open()->forget_snapshot(sample.snapshots[3]));
  const auto ignore = [](std::string_view, std::uint64_t, std::uint64_t) {};
  CHECK(value_of(Prune(*sample.open(), {}, ignore).run({})).marked.packs == 2);
  sample.add();
  require_ok(sample.open()->recall_snapshot(sample.snapshots[3]));
  CHECK(sample.covered().first.size() == sample.packs().size());
  const auto whole = sample.packs();
  sample.disk.erase(pack_with(sample, 3));
  CHECK(sample.check().problems == 0);
  CHECK((sample.packs() == whole));
}

TEST_CASE("a prune heals what it needs", "[repository][parity][prune]") {
  ParityRepository sample(8, 60);
  sample.add(3000, true, true);
  const FileName mixed = pack_with(sample, 8), needed = pack_with(sample, 2);
  const Bytes whole = sample.disk.file(needed);
  PruneOptions options;
  options.grace = 0;
  options.most_unused_share = 0;
  // What is to be written anew is read; of what stays it matters that it is there.
  const bool is_dry = GENERATE(false, true);
  if (GENERATE(true, false)) {
    sample.disk.erase(needed);
  } else {
    Bytes bytes = sample.disk.file(mixed);
    bytes[bytes.size() - 500] ^= 1;
    sample.disk.write(mixed, bytes);
  }
  options.dry_run = is_dry;
  const auto ignore = [](std::string_view, std::uint64_t, std::uint64_t) {};
  const auto repository = sample.open();
  CHECK(value_of(Prune(*repository, options, ignore).run({})).rewritten.packs == 1);
  CHECK(sample.count_sound(*sample.open()) == sample.objects.size());
  CHECK(sample.disk.file(needed) == whole);
  CHECK(sample.disk.files().contains(mixed) == is_dry);
}

TEST_CASE("a prune makes room, also where there is none for parity", "[repository][parity][prune]") {
  ParityRepository sample(8, GENERATE(20U, 100U));
  for (const std::size_t i : {1U, 4U}) require_ok(sample.open()->forget_snapshot(sample.snapshots[i]));
  const std::size_t before = sample.packs().size();
  PruneOptions options;
  options.grace = 0;
  const auto repository = sample.open();
  sample.disk.fail(Operation::append, 1, ErrorCode::no_space);
  const auto ignore = [](std::string_view, std::uint64_t, std::uint64_t) {};
  const PruneReport report = value_of(Prune(*repository, options, ignore).run({}));
  REQUIRE(report.parity_failed);
  CHECK(report.parity_failed->code() == ErrorCode::no_space);
  CHECK(sample.packs().size() == before - 4);
  CHECK(sample.covered().second.size() == 4);
  // The next who makes parity sees that these are gone for good.
  value_of(sample.update(*sample.open()));
  CHECK(sample.covered().second.empty());
  CHECK(sample.covered().first.size() == before - 4);
  CHECK(sample.packs().size() == before - 4);
}

TEST_CASE("wherever it is stopped, a pack that had parity has it", "[repository][parity][crash]") {
  const bool by_a_backup = GENERATE(false, true);
  for (std::uint64_t steps = 1; steps < 30; ++steps) {
    ParityRepository sample(5);
    const std::set<ObjectId> before = sample.covered().first;
    sample.add(3000, false);
    const ObjectId leaving = *before.begin();
    {
      const auto repository = sample.open();
      sample.disk.crash_after(steps);
      static_cast<void>(sample.update(*repository, {leaving}, true));
    }
    const bool crashed = sample.disk.crashed();
    sample.disk.restart();
    std::set<ObjectId> after = sample.covered().first;
    after.insert(leaving);
    for (const ObjectId& pack : before) CHECK(after.contains(pack));
    if (by_a_backup)
      sample.add();
    else
      value_of(sample.update(*sample.open(), {leaving}, true));
    CHECK(sample.covered().first.size() == sample.packs().size() - (by_a_backup ? 0 : 1));
    if (!crashed) return;
  }
  FAIL("it takes more steps than that");
}

TEST_CASE("sets that have packs in common are taken together", "[repository][parity]") {
  ParityRepository sample(5);
  sample.add(3000, false);
  SECTION("since one was made anew, and the old one did not go") {
    sample.disk.fail(Operation::remove);
    CHECK_FALSE(sample.update(*sample.open()));
  }
  SECTION("since two made it at once") {
    bool done = false;
    const auto first =
        sample.open_on(std::make_unique<HookedBackend>(sample.disk, [&](Operation operation, FileKind kind) {
          if (operation != Operation::get || kind != FileKind::pack || std::exchange(done, true)) return;
          sample.add();
        }));
    value_of(sample.update(*first));
    CHECK(done);
  }
  CHECK(sample.disk.names(FileKind::parity).size() == 2);
  sample.add();
  CHECK(sample.covered().first.size() == sample.packs().size());
  CHECK(sample.disk.names(FileKind::parity).size() == 1);
  const auto whole = sample.packs();
  sample.disk.erase(pack_with(sample, 1));
  CHECK(sample.check().problems == 0);
  CHECK((sample.packs() == whole));
}

// Every seventh byte, here with sanitizers; tests/stress changes all of them, and does 200 of the damages
// below.
TEST_CASE("of a small repository with parity, each byte that is changed is healed or told",
          "[repository][parity]") {
  ParityRepository sample(2, 20, Mode::plain, 300);
  const auto files = sample.disk.files();
  std::map<FileKind, std::size_t> healed, told;
  for (const auto& [name, bytes] : files) {
    if (name.kind != FileKind::pack && name.kind != FileKind::parity) continue;
    for (std::size_t at = 0; at < bytes.size(); at += 7) {
      Bytes damaged = bytes;
      damaged[at] ^= 0x10;
      sample.disk.write(name, damaged);
      const CheckStats stats = sample.check();
      INFO(name.text() << " byte " << at);
      const bool is_whole = sample.disk.file(name) == bytes;
      CHECK((is_whole || stats.problems > 0));
      if (name.kind == FileKind::pack) CHECK(is_whole);
      ++(is_whole ? healed : told)[name.kind];
      sample.disk.write(name, bytes);
    }
  }
  CHECK(told[FileKind::pack] == 0);
  CHECK(healed[FileKind::pack] > 70);
  CHECK(told[FileKind::parity] > 70);
}

TEST_CASE("damages of up to 2 % of a repository's packs are healed by a check", "[repository][parity]") {
  ParityRepository sample(40, 5, Mode::encrypted, 20'000);
  const auto whole = sample.packs();
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : whole) bytes += content.size();
  constexpr DamageKind kEachKind[] = {DamageKind::flip, DamageKind::zero,     DamageKind::swap,
                                      DamageKind::cut,  DamageKind::truncate, DamageKind::drop};
  std::size_t done = 0;
  for (std::uint64_t seed = 0; done < 30; ++seed) {
    const auto backend = sample.disk.open();
    const Damaged damaged = value_of(Damager(*backend, seed).harm({FileKind::pack}, kEachKind[seed % 6]));
    const std::uint64_t lost = damaged.bytes * (damaged.kind == DamageKind::swap ? 2 : 1);
    if (lost > bytes / 50) {
      sample.disk.write(damaged.file, whole.at(damaged.file));
      continue;
    }
    ++done;
    INFO("seed " << seed << ", " << name_of(damaged.kind) << ": " << damaged.bytes << " bytes of "
                 << damaged.file.text());
    const CheckStats stats = sample.check();
    CHECK(stats.problems == 0);
    CHECK(stats.healed_packs == 1);
    CHECK((sample.packs() == whole));
    for (const auto& [name, content] : whole) sample.disk.write(name, content);
  }
}

}  // namespace kin::store

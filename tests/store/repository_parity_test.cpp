// What is damaged and has parity is healed by whoever meets it, and parity is there after whatever else was
// done.
#include "lib/object/tree.h"
#include "store/check.h"
#include "store/damage.h"
#include "store/parity.h"
#include "store/prune.h"
#include "store/repair.h"
#include "tests/support/damage.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>

namespace kin::store {
namespace {

using namespace kin::testing;

const ParityObserver kSilent{[](const std::string&) {},
                             [](std::string_view, std::uint64_t, std::uint64_t) {}};

// Packs of one object and one tree each, written by a backup each, and parity for them.
class ParityRepository {
 public:
  explicit ParityRepository(std::size_t count, unsigned percent = 20, Mode mode = Mode::plain,
                            std::size_t most = 3000)
      : percent_(percent) {
    require_ok(Repository::create(*disk.open(), password_of(mode), kCheapPassword, 16, percent));
    for (std::size_t i = 0; i < count; ++i) add(most);
  }

  void add(std::size_t most = 3000, bool with_parity = true) {
    const auto repository = open();
    value_of(repository->begin_writing());
    const std::uint64_t seed = objects.size();
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
    OpenOptions options;
    options.password = []() -> Result<std::string> { return std::string(kPassword); };
    options.use_cache = false;
    options.block_cache_bytes = 0;
    options.heal = heal;
    options.on_healed = [this](const ObjectId& pack, const Result<void>& put_back) {
      (put_back ? healed : healed_in_memory).insert(pack);
    };
    auto repository = value_of(Repository::open(std::move(backend), options));
    require_ok(repository->refresh_index());
    return repository;
  }

  Result<ParityUpdate> update(Repository& repository, std::set<ObjectId> leaving = {},
                              bool check_all = false) {
    ParityOptions options;
    options.percent = percent_;
    options.leaving = std::move(leaving);
    options.check_all = check_all;
    return update_parity(repository, options, kSilent, {});
  }

  CheckStats check(bool heal = true) {
    const auto repository = open(heal);
    problems.clear();
    CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { problems.push_back(problem); };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    return value_of(store::check(*repository, {}, {ReadSubset::Kind::all}, observer, {}));
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

TEST_CASE("a prune makes room, also where there is none for parity", "[repository][parity][prune]") {
  ParityRepository sample(8);
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
}

TEST_CASE("wherever it is stopped, a pack that had parity has it", "[repository][parity][crash]") {
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
    if (crashed) sample.disk.restart();
    std::set<ObjectId> after = sample.covered().first;
    after.insert(leaving);
    for (const ObjectId& pack : before) CHECK(after.contains(pack));
    value_of(sample.update(*sample.open(), {leaving}, true));
    CHECK(sample.covered().first.size() == sample.packs().size() - 1);
    if (!crashed) return;
  }
  FAIL("it takes more steps than that");
}

TEST_CASE("of a small repository with parity, each byte that is changed is healed or told",
          "[repository][parity]") {
  ParityRepository sample(2, 20, Mode::plain, 300);
  const auto files = sample.disk.files();
  std::map<FileKind, std::size_t> healed, told;
  for (const auto& [name, bytes] : files) {
    if (name.kind != FileKind::pack && name.kind != FileKind::parity) continue;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
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
  CHECK(healed[FileKind::pack] > 500);
  CHECK(told[FileKind::parity] > 500);
}

TEST_CASE("200 damages of up to 2 % of a repository's packs are healed by a check", "[repository][parity]") {
  ParityRepository sample(40, 5, Mode::encrypted, 20'000);
  const auto whole = sample.packs();
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : whole) bytes += content.size();
  constexpr DamageKind kEachKind[] = {DamageKind::flip, DamageKind::zero,     DamageKind::swap,
                                      DamageKind::cut,  DamageKind::truncate, DamageKind::drop};
  std::size_t done = 0;
  for (std::uint64_t seed = 0; done < 200; ++seed) {
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

// Chains that cannot be decoded, or only just: what restore and check make of a snapshot in which one file
// has such a chain and all others are sound. Over a real Repository in memory.
#include "lib/engine/backup.h"
#include "lib/engine/block_assembler.h"
#include "lib/engine/restore.h"
#include "store/check.h"
#include "store/repository.h"
#include "tests/support/expect.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <map>

using namespace kin;
using namespace kin::testing;
using Catch::Contains;
using kin::store::Repository;

namespace {

using Files = std::map<std::string, Bytes>;
using Told = std::map<std::string, std::string>;  // path to message

struct Report : BackupObserver, RestoreObserver {
  void on_failed(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    failed[path] = error.message();
  }

  Mutex mutex;
  Told failed;
};

// Contents of which each differs a little from the one before.
std::vector<Bytes> near_contents(std::size_t count) {
  std::vector<Bytes> out{random_bytes(1, 3000)};
  while (out.size() < count) {
    Bytes next = out.back();
    for (std::size_t digit = 0; digit < 4; ++digit)
      next[digit] = static_cast<std::uint8_t>(out.size() >> (8 * digit));
    out.push_back(std::move(next));
  }
  return out;
}

// The first whole, each other as a delta against the one before.
void append_chain(Repository& repository, const std::vector<Bytes>& contents) {
  value_of(store_object(repository, contents.front()));
  require_ok(repository.flush());  // so that the whole one has a pack of its own
  for (std::size_t i = 1; i < contents.size(); ++i) {
    const Bytes& base = contents[i - 1];
    value_of(repository.append(delta_block(repository, repository.id_of(base), base, contents[i])));
  }
  require_ok(repository.flush());
}

// A repository that takes everything it has for stored, however it is stored: a backup would store again what
// cannot be read.
class Trusting : public BlockStore {
 public:
  explicit Trusting(Repository& repository) : repository_(repository) {}

  Result<bool> claim(const ObjectId& id) override {
    KIN_TRY_ASSIGN(const auto location, repository_.find_location(id));
    return location ? Result<bool>(false) : repository_.claim(id);
  }
  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override { return repository_.load(id); }
  Result<bool> contains(const ObjectId& id) override { return repository_.contains(id); }
  Result<BlockRef> locate(const ObjectId& id) override { return repository_.locate(id); }
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override {
    return repository_.load_block(block);
  }
  Result<Chain> chain(const ObjectId& id) override { return repository_.chain(id); }
  ObjectId id_of(ByteView object) const override { return repository_.id_of(object); }
  const Scanner& scanner() const override { return repository_.scanner(); }
  FeatureStore& features() override { return repository_.features(); }
  Result<std::uint64_t> append(const EncodedBlock& block) override { return repository_.append(block); }
  Result<void> flush() override { return repository_.flush(); }
  Result<SnapshotId> commit(const Snapshot& snapshot) override { return repository_.commit(snapshot); }

 private:
  Repository& repository_;
};

// A snapshot of many sound files, and of some whose objects are stored already, by blocks of the test's own
// making.
class Sample {
 public:
  using Forge = std::function<void(Repository& repository)>;

  Sample(const Forge& forge, const Files& forged) : files_(forged) {
    for (std::uint64_t i = 0; i < 30; ++i)
      files_[fmt::format("good{:02}", i)] = text_like(100 + i, 100 + 2000 * i);
    create_repository(disk_);
    auto repository = reopen(disk_);
    forge(*repository);
    write_files(files_);
    Trusting trusting(*repository);
    tree_ = back_up(trusting, std::nullopt);
  }

  FaultyDisk& disk() { return disk_; }
  // No block is cached, so that every load decodes its whole chain.
  std::unique_ptr<Repository> open() { return reopen(disk_, "", 0); }
  BlockRef place_of(const Bytes& content) {
    const auto repository = open();
    return value_of(repository->locate(repository->id_of(content)));
  }
  FileName pack_of(const Bytes& content) { return {FileKind::pack, place_of(content).pack.hex()}; }

  // Restores all; every file but those that are told comes back as it was, and those not at all.
  Told restore_all(const ObjectId& tree) {
    const TempDir out;
    RestoreRequest request;
    request.tree = tree;
    request.target = out.path();
    Report report;
    const RestoreStats stats = value_of(restore(*open(), request, report, {}));
    CHECK(stats.failed == report.failed.size());
    CHECK(stats.corrupt == !report.failed.empty());  // exit code 13
    for (const auto& [name, content] : files_) {
      INFO(name);
      const std::string path = out / ("tree/" + name);
      if (report.failed.contains("tree/" + name))
        CHECK_FALSE(std::filesystem::exists(path));
      else
        CHECK(value_of(read_file(path, 1 << 20)) == content);
    }
    return report.failed;
  }
  Told restore_all() { return restore_all(tree_); }

  std::vector<std::string> check(store::ReadSubset::Kind kind) {
    std::vector<std::string> problems;
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { problems.push_back(problem); };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    store::ReadSubset subset;
    subset.kind = kind;
    const auto repository = value_of(open_repository(disk_.open()));
    const store::CheckStats stats = value_of(store::check(*repository, {}, subset, observer, {}));
    CHECK(stats.problems == problems.size());
    return problems;
  }
  std::vector<std::string> check_structure() { return check(store::ReadSubset::Kind::none); }
  std::vector<std::string> check_data() { return check(store::ReadSubset::Kind::all); }

  // Whatever became of a file's previous version, the next one is stored, and read again.
  void check_next_version(const std::string& name) {
    files_[name][1500] ^= 1;
    write_files({{name, files_[name]}});
    const auto repository = reopen(disk_);
    value_of(repository->begin_writing());
    CHECK(restore_all(back_up(*repository, tree_)) == Told{});
  }

 private:
  void write_files(const Files& files) {
    std::filesystem::create_directories(dir_ / "in");
    for (const auto& [name, bytes] : files)
      std::ofstream(dir_ / ("in/" + name), std::ios::binary) << as_text(bytes);
  }

  ObjectId back_up(BlockStore& repository, const std::optional<ObjectId>& parent) {
    MemoryResumeLog log;
    Report report;
    BackupRequest request;
    request.walk.sources = {{dir_ / "in", {"tree"}}};
    request.parent_tree = parent;
    request.snapshot = snapshot_named("host");
    return value_of(backup(repository, log, request, report, {})).tree;
  }

  const TempDir dir_;
  Files files_;
  FaultyDisk disk_;
  ObjectId tree_;
};

// The one that tells of the file, which must be one.
std::string about(const std::string& name, const std::vector<std::string>& problems) {
  std::vector<std::string> found;
  for (const std::string& problem : problems)
    if (problem.find("/tree/" + name + ":") != std::string::npos) found.push_back(problem);
  CAPTURE(name, problems);
  REQUIRE(found.size() == 1);
  return found.front();
}

// How many files are named.
std::size_t named(const std::vector<std::string>& problems) {
  return static_cast<std::size_t>(std::count_if(problems.begin(), problems.end(), [](const std::string& one) {
    return one.find("/tree/") != std::string::npos;
  }));
}

constexpr const char* kTooLong = "the chain of bases is too long or has a loop";

// The file "bad" is told to have such a chain, and no other file anything, in fewer than `reads`.
void check_too_long(Sample& sample, std::uint64_t reads) {
  const std::uint64_t gets = sample.disk().count(Operation::get);
  const Told told = sample.restore_all();
  CHECK(sample.disk().count(Operation::get) - gets < reads);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.at("tree/bad"), Contains(kTooLong));
  for (const auto& problems : {sample.check_structure(), sample.check_data()}) {
    CHECK_THAT(about("bad", problems), Contains(kTooLong));
    CHECK(named(problems) == 1);
  }
  sample.check_next_version("bad");
}

}  // namespace

TEST_CASE("a file whose base is in a missing pack is named, and all others come back", "[engine][chain]") {
  const auto contents = near_contents(4);
  Sample sample([&](Repository& repository) { append_chain(repository, contents); },
                {{"bad", contents.back()}});
  const FileName pack = sample.pack_of(contents.front());
  REQUIRE(pack != sample.pack_of(contents.back()));
  sample.disk().erase(pack);

  const Told told = sample.restore_all();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.at("tree/bad"), Contains(pack.text() + " is missing"));
  CHECK(told.at("tree/bad").find("base") ==
        told.at("tree/bad").rfind("base"));  // the last one, not the way to it
  for (const auto& problems : {sample.check_structure(), sample.check_data()}) {
    CHECK_THAT(about("bad", problems), Contains("base") && Contains(pack.text() + " is missing"));
    CHECK(named(problems) == 1);
  }
  sample.check_next_version("bad");
}

TEST_CASE("a file whose base is damaged is named, and all others come back", "[engine][chain]") {
  const auto contents = near_contents(4);
  Sample sample([&](Repository& repository) { append_chain(repository, contents); },
                {{"bad", contents.back()}});
  const std::size_t damaged = GENERATE(0U, 1U);  // the whole one, or a delta on the way
  const BlockRef place = sample.place_of(contents[damaged]);
  const FileName pack{FileKind::pack, place.pack.hex()};
  sample.disk().flip(pack, place.offset + place.stored_size - store::kTagBytes - 1, 0x10);

  const Told told = sample.restore_all();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.at("tree/bad"), Contains(pack.text()));
  CHECK(sample.check_structure().empty());  // which reads no content
  const auto problems = sample.check_data();
  CHECK_THAT(about("bad", problems), Contains(pack.text()));
  CHECK(named(problems) == 1);
  sample.check_next_version("bad");
}

TEST_CASE("a file whose base is nowhere is named, and all others come back", "[engine][chain]") {
  const auto contents = near_contents(3);
  ObjectId nowhere;
  const auto forge = [&](Repository& repository) {
    nowhere = repository.id_of(contents[0]);
    for (std::size_t i = 1; i < contents.size(); ++i)
      value_of(repository.append(
          delta_block(repository, repository.id_of(contents[i - 1]), contents[i - 1], contents[i])));
    require_ok(repository.flush());
  };
  Sample sample(forge, {{"bad", contents[2]}});

  const Told told = sample.restore_all();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.at("tree/bad"), Contains("base " + nowhere.short_hex()));
  for (const auto& problems : {sample.check_structure(), sample.check_data()}) {
    CHECK_THAT(about("bad", problems), Contains("base " + nowhere.short_hex() + " is missing"));
    CHECK(named(problems) == 1);
  }
  sample.check_next_version("bad");
}

TEST_CASE("files at every depth that kin writes or reads come back", "[engine][chain]") {
  const auto contents = near_contents(store::kMostChain + 1);
  const Files forged{{"deep", contents[BlockAssembler::kMostDepth]},  // the deepest that kin writes
                     {"deeper", contents[store::kMostChain]}};        // the deepest that it reads
  Sample sample([&](Repository& repository) { append_chain(repository, contents); }, forged);
  const auto repository = sample.open();
  CHECK(value_of(repository->chain(repository->id_of(forged.at("deep")))).depth ==
        BlockAssembler::kMostDepth);
  CHECK(value_of(repository->chain(repository->id_of(forged.at("deeper")))).depth == store::kMostChain);
  CHECK(sample.restore_all() == Told{});
  CHECK(sample.check_structure().empty());
  CHECK(sample.check_data().empty());
  sample.check_next_version("deeper");
}

TEST_CASE("a chain longer than any that kin writes is named in bounded time, and what is below it comes back",
          "[engine][chain]") {
  const std::size_t deltas = GENERATE(as<std::size_t>{}, store::kMostChain + 1, 1000);
  const std::string edge = GENERATE("a", "z");  // is met before the bad one, or after it
  const auto contents = near_contents(deltas + 1);
  Sample sample([&](Repository& repository) { append_chain(repository, contents); },
                {{"bad", contents.back()}, {edge, contents[store::kMostChain]}});

  check_too_long(sample, 3 * store::kMostChain + 100);
}

TEST_CASE("a file whose chain is a loop is named in bounded time, and all others come back",
          "[engine][chain]") {
  const std::size_t length = GENERATE(as<std::size_t>{}, 1, 2, 5);
  const auto contents = near_contents(length);
  const auto forge = [&](Repository& repository) {
    for (std::size_t i = 0; i < length; ++i) {
      const Bytes& base = contents[(i + 1) % length];
      value_of(repository.append(delta_block(repository, repository.id_of(base), base, contents[i])));
    }
    require_ok(repository.flush());
  };
  Sample sample(forge, {{"bad", contents.front()}});

  check_too_long(sample, 2 * store::kMostChain + 100);
}

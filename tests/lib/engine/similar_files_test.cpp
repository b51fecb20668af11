// Backup and restore of files that resemble each other, over a real Repository in memory.
#include "lib/engine/backup.h"
#include "lib/engine/block_assembler.h"
#include "lib/engine/dry_run_store.h"
#include "lib/engine/restore.h"
#include "store/repository.h"
#include "tests/support/backup_request.h"
#include "tests/support/edits.h"
#include "tests/support/expect.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/random_bytes.h"
#include "tests/support/source_directory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

using namespace kin;
using namespace kin::testing;
using kin::store::Repository;

namespace {

using Files = std::map<std::string, Bytes>;
const std::map<std::string, std::string> kNothing;

void write_files(const std::string& directory, const Files& files) {
  std::filesystem::create_directories(directory);
  for (const auto& [name, bytes] : files)
    std::ofstream(directory + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

struct Failures : BackupObserver, RestoreObserver {
  void on_failed(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    failed[path] = error.message();
  }
  void on_warning(const std::string&) override { ++warnings; }

  Mutex mutex;
  std::map<std::string, std::string> failed;
  std::atomic<int> warnings{0};
};

BackupResult back_up(BlockStore& store, const std::string& path, const Effort& effort = {}) {
  MemoryResumeLog log;
  Failures failures;
  BackupRequest request = request_for(path);
  request.effort = effort;
  BackupResult result = value_of(backup(store, log, request, failures, {}));
  CHECK(failures.warnings == 0);
  return result;
}

// What failed, and why.
std::map<std::string, std::string> restore_all(Repository& repository, const ObjectId& tree,
                                               const std::string& target) {
  RestoreRequest request;
  request.tree = tree;
  request.target = target;
  Failures failures;
  const RestoreStats stats = value_of(restore(repository, request, failures, {}));
  CHECK(stats.failed == failures.failed.size());
  return failures.failed;
}

void check_files(const Files& files, const std::string& directory) {
  for (const auto& [name, bytes] : files)
    if (value_of(read_file(directory + "/tree/" + name, 1 << 30)) != bytes)
      FAIL(name << " came back changed");
}

Files versions(std::uint64_t seed, std::size_t size, int count) {
  Random random(seed);
  Files files;
  Bytes content = text_like(seed, size);
  for (int i = 0; i < count; ++i) {
    files["v" + std::to_string(100 + i)] = content;
    content = edit(std::move(content), random, 3);
  }
  return files;
}

}  // namespace

TEST_CASE("versions of a file take little more than one of them, and come back", "[engine]") {
  const std::size_t size = GENERATE(as<std::size_t>{}, 20'000, 300'000, 3'000'000);
  CAPTURE(size);
  TempDir dir;
  const Files files = versions(size, size, 20);
  write_files(dir / "in", files);
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk, dir / "cache");
  const BackupResult result = back_up(*repository, dir / "in");
  CHECK(result.summary.bytes_stored < size * 7 / 10 + 20 * 3000);
  CHECK(restore_all(*repository, result.tree, dir / "out") == kNothing);
  check_files(files, dir / "out");
  // And by a stranger, without what this process remembers.
  auto fresh = reopen(disk);
  CHECK(restore_all(*fresh, result.tree, dir / "again").empty());
  check_files(files, dir / "again");
}

TEST_CASE("a later backup finds its kin among what earlier ones stored", "[engine]") {
  const bool keep_cache = GENERATE(true, false);
  CAPTURE(keep_cache);
  TempDir dir;
  const Files files = versions(7, 200'000, 2);
  FaultyDisk disk;
  create_repository(disk);
  write_files(dir / "one", {{"a", files.at("v100")}});
  write_files(dir / "two", {{"b", files.at("v101")}});
  {
    auto repository = reopen(disk, dir / "cache");
    value_of(repository->begin_writing());
    back_up(*repository, dir / "one");
  }
  // Without the cache, the features come from the packs.
  if (!keep_cache) std::filesystem::remove_all(dir / "cache");
  auto repository = reopen(disk, dir / "cache");
  value_of(repository->begin_writing());
  const BackupResult result = back_up(*repository, dir / "two");
  CHECK(result.summary.bytes_stored < 10'000);
  CHECK(restore_all(*repository, result.tree, dir / "out") == kNothing);
  check_files({{"b", files.at("v101")}}, dir / "out");
}

TEST_CASE("with a changed file, its previous version is a base even without features", "[engine]") {
  TempDir dir;
  // Too short for any window to be sampled but once in a while; incompressible, so that only a base helps.
  const Bytes before = random_bytes(8, 60'000);
  Bytes after = before;
  for (std::size_t i = 20; i < after.size(); i += 24) after[i] ^= 0x55;  // no window of 32 bytes is the same
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk, dir / "cache");
  write_files(dir / "in", {{"file", before}});
  const BackupResult first = back_up(*repository, dir / "in");
  write_files(dir / "in", {{"file", after}});
  MemoryResumeLog log;
  Failures failures;
  BackupRequest request = request_for(dir / "in");
  request.parent_tree = first.tree;
  const BackupResult second = value_of(backup(*repository, log, request, failures, {}));
  CHECK(second.summary.bytes_stored < 40'000);
  CHECK(restore_all(*repository, second.tree, dir / "out").empty());
  check_files({{"file", after}}, dir / "out");
}

TEST_CASE("one thread and eight write the same packs of similar files", "[engine]") {
  TempDir dir;
  Files files = versions(9, 30'000, 60);
  for (auto& [name, bytes] : versions(10, 1'500'000, 5)) files["large" + name] = bytes;
  for (int i = 0; i < 2000; ++i)
    files["small" + std::to_string(i)] = text_like(static_cast<std::uint64_t>(i) / 3, 3000);
  write_files(dir / "in", files);
  FaultyDisk blank;
  create_repository(blank);
  const Bytes config = value_of(blank.open()->get(store::config_name()));
  std::vector<std::set<std::string>> packs;
  for (const unsigned jobs : {1U, 2U, 8U}) {
    FaultyDisk disk;
    const auto backend = disk.open();
    require_ok(backend->put(store::config_name(), config));
    require_ok(backend->sync());
    auto repository = reopen(disk, dir / ("cache" + std::to_string(jobs)));
    MemoryResumeLog log;
    Failures failures;
    BackupRequest request = request_for(dir / "in");
    request.jobs = jobs;
    value_of(backup(*repository, log, request, failures, {}));
    std::set<std::string>& names = packs.emplace_back();
    for (const auto& file : value_of(repository->backend().list(store::FileKind::pack)))
      names.insert(file.name);
  }
  CHECK(packs[0] == packs[1]);
  CHECK(packs[0] == packs[2]);
}

TEST_CASE("every effort gives back the same bytes, and more effort takes fewer", "[engine]") {
  TempDir dir;
  const Files files = versions(11, 400'000, 8);
  write_files(dir / "in", files);
  std::vector<std::uint64_t> stored;
  for (const Effort& effort : {Effort::fast(), Effort::normal(), Effort::max()}) {
    FaultyDisk disk;
    create_repository(disk);
    auto repository = reopen(disk, dir / ("cache" + std::to_string(stored.size())));
    const BackupResult result = back_up(*repository, dir / "in", effort);
    stored.push_back(result.summary.bytes_stored);
    const std::string out = dir / ("out" + std::to_string(stored.size()));
    CHECK(restore_all(*repository, result.tree, out).empty());
    check_files(files, out);
  }
  CHECK(stored[1] < stored[0]);
  CHECK(stored[2] < stored[1]);
}

TEST_CASE("after so much content a backup takes less time for what has no base", "[engine]") {
  TempDir dir;
  Files files;  // groups, and objects with blocks of their own
  for (std::uint64_t i = 0; i < 40; ++i) files["small " + std::to_string(i)] = text_like(i, 60'000);
  for (std::uint64_t i = 0; i < 6; ++i) files["large " + std::to_string(i)] = text_like(100 + i, 500'000);
  write_files(dir / "in", files);
  std::vector<std::uint64_t> stored;
  for (const std::uint64_t long_after_bytes : {0, 3'000'000, 100'000'000}) {
    FaultyDisk disk;
    create_repository(disk);
    auto repository = reopen(disk);
    Effort effort;
    effort.long_after_bytes = long_after_bytes;
    const BackupResult result = back_up(*repository, dir / "in", effort);
    stored.push_back(result.summary.bytes_stored);
    const std::string out = dir / ("out" + std::to_string(stored.size()));
    CHECK(restore_all(*repository, result.tree, out).empty());
    check_files(files, out);
  }
  CHECK(stored[2] < stored[1]);
  CHECK(stored[1] < stored[0]);
}

TEST_CASE("chains stay within their bounds however many versions there are", "[engine]") {
  TempDir dir;
  const Files files = versions(12, 50'000, 80);
  write_files(dir / "in", files);
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk, dir / "cache");
  back_up(*repository, dir / "in");
  unsigned deepest = 0;
  for (const auto& [name, bytes] : files) {
    const Chain chain = value_of(repository->chain(repository->id_of(bytes)));
    deepest = std::max(deepest, chain.depth);
    CHECK(chain.bytes <= BlockAssembler::kMostChainBytes);
  }
  CHECK(deepest > 1);
  CHECK(deepest <= BlockAssembler::kMostDepth);
}

TEST_CASE("a dry run says about what a backup then stores, and stores nothing", "[engine]") {
  TempDir dir;
  const Files files = versions(13, 100'000, 10);
  write_files(dir / "in", files);
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk, dir / "cache");
  const auto seen = store::FeatureIndex::open_temporary("");
  DryRunStore dry(*repository, *seen);
  const BackupResult would = back_up(dry, dir / "in");
  CHECK(value_of(repository->backend().list(store::FileKind::pack)).empty());
  const Sketch sketch = repository->scanner().sketch(files.begin()->second);
  CHECK_FALSE(value_of(seen->candidates(sketch, 1)).empty());
  CHECK(value_of(repository->features().candidates(sketch, 1)).empty());
  auto again = reopen(disk, dir / "other-cache");
  const BackupResult did = back_up(*again, dir / "in");
  CHECK(would.summary.bytes_stored > did.summary.bytes_stored * 9 / 10);
  CHECK(would.summary.bytes_stored < did.summary.bytes_stored * 11 / 10);
}

namespace {

// Throws where the system could refuse memory.
class ThrowingStore : public DryRunStore {
 public:
  ThrowingStore(BlockStore& store, int appends, int claims)
      : DryRunStore(store, store.features()), appends_(appends), claims_(claims) {}

  Result<std::uint64_t> append(const EncodedBlock& block) override {
    if (--appends_ < 0) throw std::bad_alloc();
    return DryRunStore::append(block);
  }
  Result<bool> claim(const ObjectId& id) override {
    if (--claims_ < 0) throw std::bad_alloc();
    return DryRunStore::claim(id);
  }

 private:
  int appends_, claims_;
};

}  // namespace

TEST_CASE("a backup ends with an error when memory runs out, whichever thread sees it", "[engine]") {
  TempDir dir;
  Files files;
  for (int i = 0; i < 400; ++i)
    files[std::to_string(i)] = random_bytes(static_cast<std::uint64_t>(i), 100'000);
  write_files(dir / "in", files);
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk, dir / "cache");
  for (const int good : {0, 1, 5}) {
    for (const bool in_append : {false, true}) {
      ThrowingStore store(*repository, in_append ? good : 1 << 30, in_append ? 1 << 30 : good);
      MemoryResumeLog log;
      Failures failures;
      CHECK(code_of(backup(store, log, request_for(dir / "in"), failures, {})) == ErrorCode::io);
    }
  }
}

// Whoever asks it is still busy when the others have given up.
struct SlowLog : MemoryResumeLog {
  Result<std::optional<Bytes>> recorded(const std::string& path) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return MemoryResumeLog::recorded(path);
  }
};

TEST_CASE("a backup that fails waits for its readers before it ends", "[engine]") {
  TempDir dir;
  Files files;
  for (int i = 0; i < 300; ++i)
    files[std::to_string(i)] = random_bytes(static_cast<std::uint64_t>(i), 30'000);
  write_files(dir / "in", files);
  FaultyDisk disk;
  create_repository(disk);
  auto repository = reopen(disk);
  ThrowingStore store(*repository, 1 << 30, 0);
  SlowLog log;
  Failures failures;
  CHECK(code_of(backup(store, log, request_for(dir / "in"), failures, {})) == ErrorCode::io);
}

TEST_CASE("what a lost pack held is stored again, and what leaned on it", "[engine]") {
  TempDir dir;
  const Files files = versions(14, 300'000, 6);
  FaultyDisk disk;
  create_repository(disk);
  write_files(dir / "in", {{"v100", files.at("v100")}});
  {
    auto repository = reopen(disk, dir / "cache");
    value_of(repository->begin_writing());
    back_up(*repository, dir / "in");
  }
  const std::vector<store::FileInfo> first = value_of(disk.open()->list(store::FileKind::pack));
  write_files(dir / "in", files);
  {
    auto repository = reopen(disk, dir / "cache");
    value_of(repository->begin_writing());
    back_up(*repository, dir / "in");
    CHECK(repository->lost_packs().empty());
  }
  const bool all = GENERATE(true, false);
  CAPTURE(all);
  for (const store::FileInfo& pack : first) {
    const auto backend = disk.open();
    require_ok(backend->remove({store::FileKind::pack, pack.name}));
    require_ok(backend->sync());
    if (!all) break;
  }
  auto repository = reopen(disk, dir / "cache");
  value_of(repository->begin_writing());
  CHECK_FALSE(repository->lost_packs().empty());
  const BackupResult result = back_up(*repository, dir / "in");
  CHECK(restore_all(*repository, result.tree, dir / "out") == kNothing);
  check_files(files, dir / "out");
}

TEST_CASE("damage that is met once is mended by the next backup", "[engine]") {
  TempDir dir;
  const Files files = versions(15, 300'000, 6);
  FaultyDisk disk;
  create_repository(disk);
  ObjectId tree;
  for (const bool all : {false, true}) {
    write_files(dir / "in", all ? files : Files{{"v100", files.at("v100")}});
    auto repository = reopen(disk, dir / "cache");
    value_of(repository->begin_writing());
    tree = back_up(*repository, dir / "in").tree;
  }
  // The largest holds the first version, which the others lean on.
  store::FileInfo largest;
  for (const store::FileInfo& pack : value_of(disk.open()->list(store::FileKind::pack)))
    if (pack.size > largest.size) largest = pack;
  const store::FileName name{store::FileKind::pack, largest.name};
  const Bytes sound = disk.file(name);
  Bytes damaged = sound;

  SECTION("a pack that was cut short is seen at once") {
    damaged.resize(damaged.size() / 2);
    disk.damage(name, damaged);
  }
  SECTION("a changed byte is remembered by whoever reads it") {
    damaged[damaged.size() / 2] ^= 4;
    disk.damage(name, damaged);
    {
      auto unaware = reopen(disk, dir / "cache");
      value_of(unaware->begin_writing());
      CHECK(unaware->lost_packs().empty());
    }
    CHECK_FALSE(restore_all(*reopen(disk, dir / "cache"), tree, dir / "lost").empty());
  }
  auto repository = reopen(disk, dir / "cache");
  value_of(repository->begin_writing());
  CHECK(repository->lost_packs().size() == 1);
  const BackupResult result = back_up(*repository, dir / "in");
  CHECK(restore_all(*repository, result.tree, dir / "out") == kNothing);
  check_files(files, dir / "out");

  // It came back.
  repository.reset();
  disk.damage(name, sound);
  auto again = reopen(disk, dir / "cache");
  value_of(again->begin_writing());
  CHECK(again->lost_packs().empty());
}

TEST_CASE("a delta takes at most twice what xdelta3 -9 makes of the same pair", "[engine]") {
  // Real files: this project's own.
  const std::vector<std::string> names = {"docs/format.md",        "docs/cli.md",
                                          "lib/engine/backup.cpp", "README.md",
                                          "scripts/bench",         "tests/fuzz/corpus/fuzz_scanner/text"};
  const auto xdelta3 = find_codec(static_cast<std::uint8_t>(CodecId::xdelta3))->make(9);
  BlockEncoder encoder{Effort::normal()};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Bytes base = value_of(read_file(source_directory() + "/" + names[seed % names.size()], 1 << 20));
    const Bytes content = edit(base, random, 1 + static_cast<int>(random.below(12)));
    const auto encoding = encoder.compress_delta(base, content, true);
    REQUIRE(encoding);
    const std::size_t theirs = value_of(xdelta3->encode(base, content)).size();
    CHECK(encoding->payload.size() <= 2 * theirs);
    const EncodedBlock kept = encoder.keep({{ObjectId{hash(content)}, ObjectKind::data, content.size(), {}}},
                                           content, *encoding, ObjectId{hash(base)}, base);
    CHECK_FALSE(kept.refused);
    CHECK(value_of(BlockDecoder().decode(kept.header, base, kept.payload)) == content);
  }
}

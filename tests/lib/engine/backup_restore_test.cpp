// Backup and restore together, over a real Repository in memory.
#include "lib/engine/backup.h"
#include "lib/engine/restore.h"
#include "lib/object/tree.h"
#include "store/repository.h"
#include "tests/support/backup_request.h"
#include "tests/support/expect.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace kin;
using namespace kin::testing;
using kin::store::Backend;
using kin::store::Repository;

namespace fs = std::filesystem;

namespace {

void put_file(const std::string& path, ByteView bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes content_of(const std::string& path) { return value_of(read_file(path, 1 << 30)); }

std::unique_ptr<Repository> open_new(const TempDir& dir,
                                     std::unique_ptr<Backend> backend = store::make_memory_backend()) {
  require_ok(Repository::create(*backend, std::nullopt));
  store::OpenOptions options;
  options.cache_directory = dir / "cache";
  auto repository = value_of(Repository::open(std::move(backend), options));
  require_ok(repository->refresh_index());
  return repository;
}

struct Recorder : BackupObserver, RestoreObserver {
  void on_skipped(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    skipped[path] = error.message();
  }
  void on_read(const std::string&, std::uint64_t bytes) override { bytes_read += bytes; }
  void on_failed(const std::string& path, const Error& error) override {
    MutexLock lock(mutex);
    failed[path] = error.message();
  }

  Mutex mutex;
  std::map<std::string, std::string> skipped, failed;
  std::atomic<std::uint64_t> bytes_read{0};
};

Result<RestoreStats> restore_to(Repository& repository, const ObjectId& tree, const std::string& target,
                                Recorder& recorder) {
  RestoreRequest request;
  request.tree = tree;
  request.target = target;
  return restore(repository, request, recorder, {});
}

}  // namespace

TEST_CASE("files of every awkward size come back as they were", "[engine]") {
  TempDir dir;
  std::map<std::string, Bytes> files;
  std::uint64_t seed = 1;
  for (const std::size_t size : {0UL, 1UL, 4095UL, 262'143UL, 262'144UL, 1'048'575UL, 1'048'576UL,
                                 1'048'577UL, 4'194'304UL, 9'000'001UL})
    files[std::to_string(size)] = ++seed % 2 == 0 ? random_bytes(seed, size) : compressible_bytes(seed, size);
  for (const auto& [name, bytes] : files) put_file(dir / ("in/" + name), bytes);
  auto repository = open_new(dir);
  MemoryResumeLog log;
  Recorder recorder;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), recorder, {}));
  REQUIRE(result.snapshot);
  CHECK(result.summary.files_new == files.size());
  const RestoreStats stats = value_of(restore_to(*repository, result.tree, dir / "out", recorder));
  CHECK(stats.failed == 0);
  for (const auto& [name, bytes] : files) CHECK(content_of(dir / ("out/tree/" + name)) == bytes);
}

TEST_CASE("a file whose extents fill list objects comes back", "[engine]") {
  TempDir dir;
  // Alternating data and holes: more extents than a node may hold.
  const std::string path = dir / "in/sparse";
  fs::create_directories(dir / "in");
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  const Bytes page = random_bytes(5, 4096);
  for (int i = 0; i < 60; ++i)
    require_ok(write_all_at(fd.get(), page, static_cast<std::uint64_t>(i) * 65536, path));
  REQUIRE(::ftruncate(fd.get(), 60 * 65536) == 0);
  auto repository = open_new(dir);
  MemoryResumeLog log;
  Recorder recorder;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), recorder, {}));
  const std::optional<Node> root = value_of(find_in_tree(*repository, result.tree, "tree"));
  REQUIRE(root);
  const std::optional<Node> node = value_of(find_in_tree(*repository, root->subtree, "sparse"));
  REQUIRE(node);
  CHECK(node->content.size() <= kInlineExtents);
  CHECK(value_of(restore_to(*repository, result.tree, dir / "out", recorder)).failed == 0);
  CHECK(content_of(dir / "out/tree/sparse") == content_of(path));
}

TEST_CASE("a second backup reads only what changed, and --force reads all", "[engine]") {
  TempDir dir;
  put_file(dir / "in/same", random_bytes(1, 50'000));
  put_file(dir / "in/other", random_bytes(2, 60'000));
  auto repository = open_new(dir);
  MemoryResumeLog log;
  Recorder first;
  BackupRequest request = request_for(dir / "in");
  const BackupResult before = value_of(backup(*repository, log, request, first, {}));
  CHECK(first.bytes_read == 110'000);

  put_file(dir / "in/other", random_bytes(3, 70'000));
  request.parent = before.snapshot;
  request.parent_tree = before.tree;
  Recorder second;
  const BackupResult after = value_of(backup(*repository, log, request, second, {}));
  CHECK(second.bytes_read == 70'000);
  CHECK(after.summary.files_changed == 1);
  CHECK(after.summary.files_unmodified == 1);

  request.parent_tree = after.tree;
  request.read_all = true;
  Recorder third;
  const BackupResult forced = value_of(backup(*repository, log, request, third, {}));
  CHECK(third.bytes_read == 120'000);
  CHECK(forced.summary.objects_added == 0);
  CHECK(forced.tree == after.tree);
}

TEST_CASE("a parent whose objects are gone does not spoil the next backup", "[engine]") {
  TempDir dir;
  put_file(dir / "in/file", random_bytes(1, 50'000));
  auto repository = open_new(dir);
  MemoryResumeLog log;
  Recorder recorder;
  BackupRequest request = request_for(dir / "in");
  const BackupResult before = value_of(backup(*repository, log, request, recorder, {}));
  // Another repository knows nothing of that tree.
  TempDir other;
  auto empty = open_new(other);
  request.parent = before.snapshot;
  request.parent_tree = before.tree;
  const BackupResult after = value_of(backup(*empty, log, request, recorder, {}));
  CHECK(value_of(restore_to(*empty, after.tree, dir / "out", recorder)).failed == 0);
  CHECK(content_of(dir / "out/tree/file") == content_of(dir / "in/file"));
}

TEST_CASE("a list of extents without the content it lists does not count as stored", "[engine]") {
  TempDir dir;
  const std::string path = dir / "in/sparse";
  fs::create_directories(dir / "in");
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  for (std::uint64_t i = 0; i < 40; ++i)
    require_ok(write_all_at(fd.get(), random_bytes(i, 4096), i * 65536, path));
  auto backend = store::make_memory_backend();
  Backend& disk = *backend;
  auto first = open_new(dir, std::move(backend));
  MemoryResumeLog log;
  Recorder recorder;
  const BackupResult before = value_of(backup(*first, log, request_for(dir / "in"), recorder, {}));
  const std::optional<Node> root = value_of(find_in_tree(*first, before.tree, "tree"));
  const std::optional<Node> node = value_of(find_in_tree(*first, root->subtree, "sparse"));
  REQUIRE(node->content.size() == 1);
  REQUIRE(node->content[0].kind == Extent::Kind::list);

  // As a backup leaves it that was killed between its two packs: the list is stored and the file is in the
  // log.
  auto second_backend = store::make_memory_backend();
  require_ok(second_backend->put(store::config_name(), value_of(disk.get(store::config_name()))));
  TempDir cache;
  store::OpenOptions options;
  options.cache_directory = cache.path();
  auto second = value_of(Repository::open(std::move(second_backend), options));
  const Bytes list = *value_of(first->load(node->content[0].id));
  REQUIRE(value_of(second->claim(node->content[0].id)));
  value_of(second->append(plain_block(*second, {list}, ObjectKind::list)));
  require_ok(second->flush());
  WireWriter record;
  encode_node(*node, record);
  require_ok(log.record({{resume_prefix(request_for(dir / "in").snapshot) + "/tree/sparse", record.take()}}));

  const BackupResult after = value_of(backup(*second, log, request_for(dir / "in"), recorder, {}));
  CHECK(value_of(restore_to(*second, after.tree, dir / "out", recorder)).failed == 0);
  CHECK(content_of(dir / "out/tree/sparse") == content_of(path));
}

TEST_CASE("an interrupted backup keeps what it stored, and the next one does not read it again", "[engine]") {
  TempDir dir;
  for (int i = 0; i < 40; ++i)
    put_file(dir / ("in/" + std::to_string(i)), random_bytes(static_cast<std::uint64_t>(i), 500'000));
  auto repository = open_new(dir);
  MemoryResumeLog log;
  std::stop_source stop;
  struct Stopper : Recorder {
    explicit Stopper(std::stop_source& the_source) : source(the_source) {}
    using RestoreObserver::on_entry;
    void on_entry(const WalkEntry&, Change) override {
      if (++entries == 20) source.request_stop();
    }
    std::stop_source& source;
    std::atomic<int> entries{0};
  } stopper(stop);
  const auto interrupted = backup(*repository, log, request_for(dir / "in"), stopper, stop.get_token());
  CHECK(code_of(interrupted) == ErrorCode::cancelled);
  CHECK(stopper.skipped.empty());

  Recorder second;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), second, {}));
  CHECK(second.bytes_read <= 21 * 500'000);
  CHECK(value_of(restore_to(*repository, result.tree, dir / "out", second)).failed == 0);
  for (int i = 0; i < 40; ++i)
    CHECK(content_of(dir / ("out/tree/" + std::to_string(i))) ==
          content_of(dir / ("in/" + std::to_string(i))));
}

TEST_CASE("a file that changes while it is read is named, and kept as it was read", "[engine]") {
  TempDir dir;
  const std::string path = dir / "in/growing";
  put_file(path, random_bytes(1, 12'000'000));
  auto repository = open_new(dir);
  MemoryResumeLog log;
  struct Meddler : Recorder {
    void on_read(const std::string& read, std::uint64_t) override {
      if (!done.exchange(true)) std::ofstream(read, std::ios::app | std::ios::binary) << "more";
    }
    std::atomic<bool> done{false};
  } meddler;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), meddler, {}));
  CHECK(result.summary.skipped == 1);
  REQUIRE(meddler.skipped.size() == 1);
  CHECK(meddler.skipped.begin()->second.find("changed while it was read") != std::string::npos);
  CHECK(value_of(restore_to(*repository, result.tree, dir / "out", meddler)).failed == 0);
  CHECK(fs::file_size(dir / "out/tree/growing") == 12'000'000);
}

TEST_CASE("a tree cannot make restore write outside its target", "[engine]") {
  TempDir dir;
  auto repository = open_new(dir);
  const ObjectId payload =
      value_of(store_object(*repository, Bytes(as_bytes("evil").begin(), as_bytes("evil").end())));
  // Built by hand: TreeWriter takes any name, and the reader must refuse it.
  for (const std::string name : {"..", "../escape", "/escape", "a/b", ".", ""}) {
    WireWriter leaf;
    leaf.u8(1);
    leaf.u8(0);
    leaf.varint(1);
    Node node;
    node.name = name;
    node.mode = 0644;
    node.size = 4;
    node.content = {{Extent::Kind::data, 4, payload}};
    encode_node(node, leaf);
    const ObjectId tree = value_of(store_object(*repository, leaf.take(), ObjectKind::tree));
    Recorder recorder;
    fs::create_directories(dir / "target");
    const RestoreStats stats = value_of(restore_to(*repository, tree, dir / "target", recorder));
    CHECK(stats.failed == 1);
    CHECK(stats.corrupt);
    CHECK(fs::is_empty(dir / "target"));
    CHECK_FALSE(fs::exists(dir / "escape"));
  }
}

TEST_CASE("a link in the target is replaced, never followed", "[engine]") {
  TempDir dir;
  put_file(dir / "in/sub/file", random_bytes(1, 100));
  auto repository = open_new(dir);
  MemoryResumeLog log;
  Recorder recorder;
  const BackupResult result = value_of(backup(*repository, log, request_for(dir / "in"), recorder, {}));
  fs::create_directories(dir / "outside");
  put_file(dir / "precious", random_bytes(2, 100));
  fs::create_directories(dir / "out/tree");
  fs::create_symlink(dir / "outside", dir / "out/tree/sub");
  CHECK(value_of(restore_to(*repository, result.tree, dir / "out", recorder)).failed == 0);
  CHECK(fs::is_empty(dir / "outside"));
  fs::remove(dir / "out/tree/sub/file");
  fs::create_symlink(dir / "precious", dir / "out/tree/sub/file");
  CHECK(value_of(restore_to(*repository, result.tree, dir / "out", recorder)).failed == 0);
  CHECK(content_of(dir / "precious") == random_bytes(2, 100));
  CHECK(content_of(dir / "out/tree/sub/file") == random_bytes(1, 100));
}

TEST_CASE("one thread and eight write the same packs", "[engine]") {
  TempDir dir;
  for (int i = 0; i < 300; ++i)
    put_file(dir / ("in/" + std::to_string(i % 7) + "/" + std::to_string(i)),
             i % 50 == 0 ? random_bytes(static_cast<std::uint64_t>(i), 3'000'000)
                         : text_like(static_cast<std::uint64_t>(i), 3000));
  auto blank = store::make_memory_backend();
  require_ok(Repository::create(*blank, std::nullopt));
  const Bytes config = value_of(blank->get(store::config_name()));
  std::vector<std::vector<std::string>> names;
  for (const unsigned jobs : {1U, 8U}) {
    TempDir cache;
    auto backend = store::make_memory_backend();
    require_ok(backend->put(store::config_name(), config));
    store::OpenOptions options;
    options.cache_directory = cache.path();
    auto repository = value_of(Repository::open(std::move(backend), options));
    MemoryResumeLog log;
    Recorder recorder;
    BackupRequest request = request_for(dir / "in");
    request.jobs = jobs;
    value_of(backup(*repository, log, request, recorder, {}));
    std::vector<std::string>& packs = names.emplace_back();
    for (const store::FileInfo& pack : value_of(repository->backend().list(store::FileKind::pack)))
      packs.push_back(pack.name);
    std::sort(packs.begin(), packs.end());
  }
  CHECK(names[0].size() >= 2);
  CHECK(names[0] == names[1]);
}

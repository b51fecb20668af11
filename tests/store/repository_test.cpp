// Repository: making and opening one, writing and reading. Damage is in repository_damage_test.cpp, crashes
// in repository_crash_test.cpp.
#include "store/repository.h"

#include "lib/object/tree.h"
#include "store/check.h"
#include "store/local_backend.h"
#include "tests/support/random_bytes.h"
#include "tests/support/run_alone.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

namespace kin::store {
namespace {

using namespace kin::testing;  // the whole of the fixture

Result<std::unique_ptr<Repository>> open_with_password(FaultyDisk& disk, const std::string& password) {
  OpenOptions options;
  options.use_cache = false;
  options.password = [password]() -> Result<std::string> { return password; };
  return Repository::open(disk.open(), options);
}

// Small objects of every kind, with their contents.
std::vector<std::pair<ObjectId, Bytes>> store_some(Repository& repository, std::uint64_t seed) {
  std::vector<std::pair<ObjectId, Bytes>> out;
  for (const ObjectKind kind : {ObjectKind::data, ObjectKind::tree, ObjectKind::list, ObjectKind::data}) {
    Bytes content = text_like(seed++, 500);
    const ObjectId id = value_of(store_object(repository, content, kind));
    out.emplace_back(id, std::move(content));
  }
  return out;
}

bool all_load(Repository& repository, const std::vector<std::pair<ObjectId, Bytes>>& objects) {
  for (const auto& [id, content] : objects)
    if (!loads(repository, id, content)) return false;
  return !objects.empty();
}

// A backend that lets someone else act before each of its operations.
class InterruptedBackend : public Backend {
 public:
  InterruptedBackend(std::unique_ptr<Backend> inner, std::function<void()> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  std::string location() const override { return inner_->location(); }
  Result<void> put(const FileName& name, ByteView bytes) override { return next().put(name, bytes); }
  Result<void> sync() override { return next().sync(); }
  Result<Bytes> get(const FileName& name) override { return next().get(name); }
  Result<Bytes> get_range(const FileName& name, std::uint64_t offset, std::size_t size) override {
    return next().get_range(name, offset, size);
  }
  Result<std::vector<FileInfo>> list(FileKind kind) override { return next().list(kind); }
  Result<void> remove(const FileName& name) override { return next().remove(name); }

 private:
  Backend& next() {
    before_();
    return *inner_;
  }

  const std::unique_ptr<Backend> inner_;
  const std::function<void()> before_;
};

// A snapshot of a tree with one file, all of it new.
SnapshotId commit_tree(Repository& repository, std::uint64_t seed) {
  Node file;
  file.type = NodeType::file;
  file.name = "file";
  const Bytes content = text_like(seed, 500);
  file.size = content.size();
  file.content = {{Extent::Kind::data, content.size(), value_of(store_object(repository, content))}};
  TreeWriter tree(
      [&](ObjectKind kind, const Bytes& object) { return store_object(repository, object, kind); });
  require_ok(tree.add(file));
  Snapshot snapshot = snapshot_named("host");
  snapshot.tree = value_of(tree.finish());
  return value_of(repository.commit(snapshot));
}

}  // namespace

TEST_CASE("a new repository opens, with a password or without", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto repository = reopen(disk);
  CHECK(repository->config().version == kFormatVersion);
  CHECK((repository->config().encryption == Encryption::xchacha20_poly1305) == (mode == Mode::encrypted));
  CHECK(repository->config().created.seconds > 1'700'000'000);
  CHECK(repository->id() == reopen(disk)->id());
  CHECK(repository->key_name().empty() == (mode == Mode::plain));
  CHECK(value_of(repository->list_snapshots()).empty());
  CHECK(disk.names(FileKind::key).size() == (mode == Mode::encrypted ? 1 : 0));
}

TEST_CASE("no two repositories have the same id or key", "[repository]") {
  FaultyDisk first, second;
  create_repository(first);
  create_repository(second);
  CHECK(reopen(first)->id() != reopen(second)->id());
  CHECK(reopen(first)->master_key() != reopen(second)->master_key());
  CHECK(reopen(first)->id_of(as_bytes("x")) != reopen(second)->id_of(as_bytes("x")));
}

TEST_CASE("the wrong password, and no password, open nothing", "[repository]") {
  FaultyDisk disk;
  create_repository(disk, Mode::encrypted);
  CHECK(open_with_password(disk, kPassword).has_value());
  CHECK(code_of(open_with_password(disk, "wrong")) == ErrorCode::wrong_password);
  CHECK(code_of(open_with_password(disk, "")) == ErrorCode::wrong_password);
  CHECK(code_of(Repository::open(disk.open(), {})) == ErrorCode::wrong_password);
}

TEST_CASE("the password is asked for once, and only if there is one", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  int asked = 0;
  OpenOptions options;
  options.use_cache = false;
  options.password = [&]() -> Result<std::string> {
    ++asked;
    return std::string(kPassword);
  };
  CHECK(Repository::open(disk.open(), options).has_value());
  CHECK(asked == (mode == Mode::encrypted ? 1 : 0));
  options.password = []() -> Result<std::string> { return Error(ErrorCode::cancelled, "no"); };
  CHECK(code_of(Repository::open(disk.open(), options)) ==
        (mode == Mode::encrypted ? std::optional(ErrorCode::cancelled) : std::nullopt));
}

TEST_CASE("where no repository is, none opens", "[repository]") {
  FaultyDisk disk;
  CHECK(code_of(open_repository(disk.open())) == ErrorCode::no_repository);
  const TempDir directory;
  CHECK(code_of(open_repository(std::make_unique<LocalBackend>(directory.path()))) ==
        ErrorCode::no_repository);
  const Error error = error_of(open_repository(std::make_unique<LocalBackend>(directory / "missing")));
  CHECK(error.code() == ErrorCode::no_repository);
  CHECK_THAT(error.message(), Catch::Contains(directory / "missing"));
  CHECK_FALSE(std::filesystem::exists(directory / "missing"));
  std::ofstream(directory / "file") << "x";
  CHECK(code_of(open_repository(std::make_unique<LocalBackend>(directory / "file"))) ==
        ErrorCode::no_repository);
}

TEST_CASE("a config that cannot be read is not one that is not there", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  disk.fail(Operation::get);
  CHECK(code_of(open_repository(disk.open())) == ErrorCode::io);
  const Error error =
      error_of(open_repository(std::make_unique<LocalBackend>("/" + std::string(10'000, 'x'))));
  CHECK(error.code() == ErrorCode::io);
  CHECK_THAT(error.message(), Catch::Contains("File name too long"));
}

TEST_CASE("a repository of a newer format is unsupported, and its password is not asked for",
          "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  Bytes config = disk.file(config_name());
  config[8] = kFormatVersion + 1;
  disk.write(config_name(), config);
  OpenOptions options;
  options.password = []() -> Result<std::string> { return Error(ErrorCode::cancelled, "asked"); };
  CHECK(code_of(Repository::open(disk.open(), options)) == ErrorCode::unsupported);
}

TEST_CASE("a repository is not made where one is already", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto before = disk.files();
  CHECK(code_of(Repository::create(*disk.open(), password_of(mode), kCheapPassword)) ==
        ErrorCode::invalid_argument);
  CHECK(code_of(Repository::create(*disk.open(), std::nullopt)) == ErrorCode::invalid_argument);
  CHECK(disk.files() == before);
}

TEST_CASE("a repository is not made where the remains of one are", "[repository]") {
  for (const FileKind kind : {FileKind::pack, FileKind::index, FileKind::snapshot}) {
    FaultyDisk disk;
    disk.write({kind, hex(hash(as_bytes("x")))}, {1, 2, 3});
    const auto before = disk.files();
    CHECK(code_of(Repository::create(*disk.open(), std::nullopt)) == ErrorCode::invalid_argument);
    CHECK(disk.files() == before);
  }
}

TEST_CASE("an init that was killed after its key can be done again", "[repository]") {
  FaultyDisk disk;
  disk.write({FileKind::key, hex(hash(as_bytes("x")))}, {1, 2, 3});
  require_ok(Repository::create(*disk.open(), std::nullopt));
  CHECK(disk.names(FileKind::key).empty());
}

TEST_CASE("a repository whose config cannot be read just now is not overwritten", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto before = disk.files();
  disk.fail(Operation::get);
  CHECK_FALSE(Repository::create(*disk.open(), std::nullopt));
  CHECK(disk.files() == before);
}

TEST_CASE("any key opens the repository, and a removed one does not", "[repository]") {
  FaultyDisk disk;
  create_repository(disk, Mode::encrypted);
  const auto repository = reopen(disk);
  const std::string first = repository->key_name();
  const std::string second =
      value_of(add_key(repository->backend(), repository->master_key(), "second", kCheapPassword));
  CHECK(value_of(open_with_password(disk, "second"))->key_name() == second);
  CHECK(value_of(open_with_password(disk, kPassword))->key_name() == first);
  require_ok(repository->backend().remove({FileKind::key, first}));
  CHECK(code_of(open_with_password(disk, kPassword)) == ErrorCode::wrong_password);
  CHECK(open_with_password(disk, "second").has_value());
}

TEST_CASE("objects load before and after the flush, and in other processes with and without a cache",
          "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk, mode);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  {
    const auto repository = reopen(disk, caches / "a");
    value_of(repository->begin_writing());
    objects = store_some(*repository, 1);
    CHECK(all_load(*repository, objects));  // from packs that are not finished
    require_ok(repository->flush());
    CHECK(all_load(*repository, objects));
    for (const auto& more : store_some(*repository, 100)) objects.push_back(more);
    CHECK(all_load(*repository, objects));
    value_of(repository->commit(snapshot_named("h")));
    CHECK(all_load(*repository, objects));
  }
  for (const std::string& cache : {caches / "a", caches / "b", std::string()}) {
    INFO(cache);
    CHECK(all_load(*reopen(disk, cache), objects));
  }
}

TEST_CASE("what was not flushed is gone with its process", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const ObjectId id = [&] {
    const auto repository = reopen(disk);
    return value_of(store_object(*repository, text_like(1, 100)));
  }();
  CHECK_FALSE(value_of(reopen(disk)->contains(id)));
  CHECK(disk.names(FileKind::pack).empty());
}

TEST_CASE("the same cache saves reading the index again", "[repository]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  {
    const auto repository = reopen(disk, caches / "a");
    store_some(*repository, 1);
    require_ok(repository->flush());
  }
  const auto reads_of = [&](const std::string& cache) {
    const std::uint64_t before = disk.count(Operation::get);
    reopen(disk, cache);
    return disk.count(Operation::get) - before;
  };
  CHECK(reads_of(caches / "a") == 1);  // the config
  CHECK(reads_of(caches / "b") == 2);
  CHECK(reads_of(caches / "b") == 1);
}

TEST_CASE("an object is claimed once, whether it waits, is stored or was stored by others", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes content = text_like(1, 100);
  const ObjectId id = repository->id_of(content);
  CHECK_FALSE(value_of(repository->contains(id)));
  CHECK(value_of(repository->claim(id)));
  CHECK_FALSE(value_of(repository->claim(id)));
  CHECK_FALSE(value_of(repository->contains(id)));  // claimed is not stored
  value_of(repository->append(plain_block(*repository, {content})));
  CHECK_FALSE(value_of(repository->claim(id)));
  CHECK(value_of(repository->contains(id)));
  CHECK_FALSE(repository->find_location(id)->has_value());  // not yet in the index
  require_ok(repository->flush());
  CHECK_FALSE(value_of(repository->claim(id)));
  CHECK(value_of(repository->contains(id)));
  CHECK(repository->find_location(id)->has_value());
  const auto other = reopen(disk);
  CHECK_FALSE(value_of(other->claim(id)));
  CHECK(value_of(other->claim(other->id_of(as_bytes("new")))));
}

TEST_CASE("an object that is nowhere is an error that names it", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const ObjectId id = repository->id_of(as_bytes("nothing"));
  CHECK_THAT(error_of(repository->load(id)).message(), Catch::Contains(id.short_hex()));
  CHECK_FALSE(repository->locate(id));
}

TEST_CASE("objects of every size load, the empty one and one larger than a pack's aim too", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto repository = reopen(disk);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{100'000}, kPackTargetBytes + 1}) {
    Bytes content = random_bytes(size, size);
    const ObjectId id = value_of(store_object(*repository, content));
    objects.emplace_back(id, std::move(content));
  }
  CHECK(all_load(*repository, objects));
  require_ok(repository->flush());
  CHECK(all_load(*reopen(disk), objects));
}

TEST_CASE("a pack is written when it is large enough, without a flush", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  const std::uint64_t puts = disk.count(Operation::put);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  for (std::uint64_t i = 0; i < 5; ++i) {
    Bytes content = random_bytes(i, 7 << 20);
    const ObjectId id = value_of(store_object(*repository, content));
    objects.emplace_back(id, std::move(content));
    CHECK(disk.count(Operation::put) - puts == (i + 1) / 3);
  }
  CHECK(all_load(*repository, objects));  // from a finished pack, and from one that is not
  require_ok(repository->flush());
  CHECK(disk.names(FileKind::pack).size() == 2);
  CHECK(all_load(*reopen(disk), objects));
}

TEST_CASE("after some packs they are made durable, without a flush", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  for (std::uint64_t i = 0; i < 4; ++i)
    value_of(store_object(*repository, random_bytes(i, kPackTargetBytes)));
  CHECK(disk.names(FileKind::pack).size() == 4);
}

TEST_CASE("trees and lists are kept in packs of their own", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  for (std::uint64_t i = 0; i < 3; ++i) store_some(*repository, 10 * i);
  require_ok(repository->flush());
  const auto packs = disk.names(FileKind::pack);
  REQUIRE(packs.size() == 2);
  for (const FileName& pack : packs) {
    std::set<bool> kinds;
    require_ok(scan_pack(repository->sealer(), repository->backend(), {pack.name, disk.file(pack).size()},
                         [&](const BlockHeader& header, BlockRange) -> Result<void> {
                           for (const BlockObject& object : header.objects)
                             kinds.insert(is_metadata(object.kind));
                           return {};
                         }));
    CHECK(kinds.size() == 1);
  }
}

TEST_CASE("a flush of nothing writes nothing", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const auto before = disk.files();
  require_ok(repository->flush());
  require_ok(repository->flush());
  CHECK(disk.files() == before);
  store_some(*repository, 1);
  require_ok(repository->flush());
  const auto after = disk.files();
  require_ok(repository->flush());
  CHECK(disk.files() == after);
}

TEST_CASE("a block of many objects gives each of them, and the group as a whole", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto repository = reopen(disk);
  std::vector<Bytes> contents;
  for (std::uint64_t i = 0; i < 50; ++i) contents.push_back(text_like(i, 10 * i));  // the first is empty
  EncodedBlock block = plain_block(*repository, contents);
  const Bytes whole = block.payload;
  block.header.objects.push_back({repository->id_of(whole), ObjectKind::group, whole.size(), {1, 2, 3}});
  value_of(repository->append(block));
  const auto check_all = [&](Repository& reader) {
    std::size_t right = 0;
    for (const Bytes& content : contents) right += loads(reader, reader.id_of(content), content);
    CHECK(right == contents.size());
    CHECK(loads(reader, reader.id_of(whole), whole));
    const BlockRef where = value_of(reader.locate(reader.id_of(contents[7])));
    CHECK(where == value_of(reader.locate(reader.id_of(whole))));
    CHECK(where.content_size == whole.size());
    const auto loaded = value_of(reader.load_block(where));
    CHECK(loaded->size() == whole.size());
    CHECK(equal(*loaded->find(reader.id_of(contents[7])), contents[7]));
    CHECK_FALSE(loaded->find(reader.id_of(as_bytes("other"))).has_value());
  };
  check_all(*repository);
  require_ok(repository->flush());
  check_all(*repository);
  check_all(*reopen(disk));
}

TEST_CASE("a delta decodes against its base, and so does a chain of them", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto repository = reopen(disk);
  std::vector<std::pair<ObjectId, Bytes>> chain;
  Bytes content = random_bytes(1, 5000);
  chain.emplace_back(value_of(store_object(*repository, content)), content);
  for (std::size_t i = 1; i <= 60; ++i) {
    const Bytes base = content;
    content[i * 50] ^= 0x5a;
    const EncodedBlock block = delta_block(*repository, chain.back().first, base, content);
    REQUIRE(block.payload.size() < 200);
    value_of(repository->append(block));
    chain.emplace_back(block.header.objects[0].id, content);
    if (i % 7 == 0) require_ok(repository->flush());  // over several packs
  }
  CHECK(all_load(*repository, chain));
  require_ok(repository->flush());
  CHECK(all_load(*reopen(disk), chain));
  CHECK(loads(*reopen(disk, "", 0), chain.back().first, chain.back().second));  // without a block cache
}

TEST_CASE("a block cache of any size changes no answer", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  {
    const auto repository = reopen(disk);
    for (std::uint64_t i = 0; i < 20; ++i) {
      Bytes content = random_bytes(i, 1000 * i);
      const ObjectId id = value_of(store_object(*repository, content));
      objects.emplace_back(id, std::move(content));
    }
    require_ok(repository->flush());
  }
  for (const std::size_t limit :
       {std::size_t{0}, std::size_t{1}, std::size_t{30'000}, std::size_t{1} << 30}) {
    const auto repository = reopen(disk, "", limit);
    for (int round = 0; round < 2; ++round) CHECK(all_load(*repository, objects));
  }
  // A cache that holds all of them reads each block once.
  const auto repository = reopen(disk);
  CHECK(all_load(*repository, objects));
  const std::uint64_t reads = disk.count(Operation::get);
  CHECK(all_load(*repository, objects));
  CHECK(disk.count(Operation::get) == reads);
}

TEST_CASE("the same object stored as content and as a tree loads, whichever pack is finished first",
          "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  value_of(store_object(*repository, text_like(1, 300)));  // so that the two lie at different offsets
  const Bytes content = text_like(2, 500);
  value_of(repository->append(plain_block(*repository, {content}, ObjectKind::data)));
  value_of(repository->append(plain_block(*repository, {content}, ObjectKind::tree)));
  value_of(store_object(*repository, random_bytes(3, kPackTargetBytes)));  // finishes the pack of contents
  CHECK(loads(*repository, repository->id_of(content), content));
  require_ok(repository->flush());
  CHECK(loads(*repository, repository->id_of(content), content));
  CHECK(loads(*reopen(disk), repository->id_of(content), content));
}

TEST_CASE("a block's place stays good when its pack is finished (alone)", "[.][alone]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes content = text_like(1, 3000);
  const ObjectId id = value_of(store_object(*repository, content));
  const BlockRef early = value_of(repository->locate(id));
  require_ok(repository->flush());
  const auto check_early = [&] {
    const auto block = repository->load_block(early);
    // A place that is no more may be an error, but not a crash and not another object.
    return !block || ((*block)->find(id) && equal(*(*block)->find(id), content));
  };
  CHECK(check_early());
  value_of(store_object(*repository, text_like(2, 100)));  // the next pack, shorter than the place
  CHECK(check_early());
}

TEST_CASE("a block's place stays good when its pack is finished", "[repository]") {
  CHECK(run_alone("a block's place stays good when its pack is finished (alone)"));
}

TEST_CASE("objects load in many threads while others are appended and flushed (alone)", "[.][alone]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  constexpr std::size_t kObjects = 3000;
  std::vector<Bytes> contents;
  std::vector<ObjectId> ids;
  for (std::size_t i = 0; i < kObjects; ++i) {
    contents.push_back(text_like(i, 200 + i % 100));
    ids.push_back(repository->id_of(contents[i]));
  }
  std::atomic<std::size_t> stored = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (std::uint64_t reader = 0; reader < 3; ++reader)
    readers.emplace_back([&, reader] {
      Random random(reader);
      while (stored < kObjects) {
        const std::size_t some = stored;
        if (some == 0) continue;
        // Mostly what came last, which may still wait for its pack.
        const std::size_t i = some - 1 - random.below(std::min<std::size_t>(some, 5));
        if (!loads(*repository, ids[i], contents[i])) ++wrong;
      }
    });
  int failed = 0;
  for (std::size_t i = 0; i < kObjects; ++i) {
    failed += !store_object(*repository, contents[i]).has_value();
    stored = i + 1;
    if (i % 50 == 49) failed += !repository->flush().has_value();
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(failed == 0);
  CHECK(wrong == 0);
}

TEST_CASE("objects load in many threads while others are appended and flushed", "[repository]") {
  CHECK(run_alone("objects load in many threads while others are appended and flushed (alone)"));
}

TEST_CASE("what others commit is seen after the index is read again", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto reader = reopen(disk);
  const auto writer = reopen(disk);
  const auto objects = store_some(*writer, 1);
  require_ok(writer->flush());
  CHECK_FALSE(value_of(reader->contains(objects[0].first)));
  require_ok(reader->refresh_index());
  CHECK(all_load(*reader, objects));
}

TEST_CASE("what was committed before the snapshots were listed is found", "[repository]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto reader = reopen(disk);
  const auto writer = reopen(disk);
  const auto first = store_some(*writer, 1);
  value_of(writer->commit(snapshot_named("host")));
  CHECK(value_of(reader->list_snapshots()).size() == 1);
  CHECK(all_load(*reader, first));
  // What is there costs no look at the segments, what is missing one, and not one each time.
  value_of(reader->list_snapshots());
  const std::uint64_t listings = disk.count(Operation::list);
  CHECK(all_load(*reader, first));
  CHECK(value_of(reader->claim(reader->id_of(as_bytes("new")))));
  CHECK(disk.count(Operation::list) == listings);
  for (const char* missing : {"one", "two", "three"}) {
    CHECK(code_of(reader->locate(reader->id_of(as_bytes(missing)))) == ErrorCode::corrupt);
    CHECK(disk.count(Operation::list) == listings + 1);
  }
  // Nor is one that failed taken for done.
  const auto second = store_some(*writer, 100);
  value_of(writer->commit(snapshot_named("host")));
  value_of(reader->list_snapshots());
  disk.fail(Operation::list);
  CHECK(code_of(reader->locate(second[0].first)) == ErrorCode::io);
  CHECK(all_load(*reader, second));
}

TEST_CASE("whoever reads or checks while others commit or make a new index finds no damage",
          "[repository][check]") {
  const bool rebuild = GENERATE(false, true);
  const bool check_it = GENERATE(false, true);
  INFO((check_it ? "check" : "read") << " beside " << (rebuild ? "repair index" : "backup"));
  for (int moment = 0, acted = moment; acted == moment; ++moment) {
    INFO("before operation " << moment);
    FaultyDisk disk;
    create_repository(disk);
    const auto writer = reopen(disk);
    commit_tree(*writer, 1);
    int operations = 0;
    auto backend = std::make_unique<InterruptedBackend>(disk.open(), [&] {
      if (operations++ != moment) return;
      acted = moment + 1;
      commit_tree(*writer, 100);
      if (rebuild) value_of(writer->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
    });
    const auto repository = value_of(open_repository(std::move(backend)));
    std::vector<std::string> problems;
    if (check_it) {
      CheckObserver observer;
      observer.on_problem = [&](const std::string& problem) { problems.push_back(problem); };
      observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
      ReadSubset everything;
      everything.kind = ReadSubset::Kind::all;
      value_of(check(*repository, {}, everything, observer, {}));
    } else {
      require_ok(repository->refresh_index());
      for (const SnapshotId& id : value_of(repository->list_snapshots())) {
        const auto file = find_in_tree(*repository, value_of(repository->load_snapshot(id)).tree, "file");
        if (!file) problems.push_back(file.error().message());
      }
    }
    CHECK(problems == std::vector<std::string>{});
  }
}

TEST_CASE("when a segment is gone, what only it said is forgotten", "[repository]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  std::vector<std::pair<ObjectId, Bytes>> first, second;
  std::vector<FileName> segments;
  {
    const auto repository = reopen(disk, caches / "a");
    first = store_some(*repository, 1);
    require_ok(repository->flush());
    segments = disk.names(FileKind::index);
    second = store_some(*repository, 100);
    require_ok(repository->flush());
  }
  disk.erase(segments.front());
  const auto repository = reopen(disk, caches / "a");
  CHECK_FALSE(value_of(repository->contains(first[0].first)));
  CHECK(all_load(*repository, second));
}

TEST_CASE("a cache that another process uses does not keep this one from working", "[repository]") {
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  const auto first = reopen(disk, caches / "a");
  const auto objects = store_some(*first, 1);
  require_ok(first->flush());
  const auto second = reopen(disk, caches / "a");
  CHECK(all_load(*second, objects));
  const auto more = store_some(*second, 100);
  require_ok(second->flush());
  require_ok(first->refresh_index());
  CHECK(all_load(*first, more));
}

TEST_CASE("a cache directory that cannot be had does not keep anyone from working", "[repository]") {
  FaultyDisk disk;
  const TempDir directory;
  std::ofstream(directory / "file") << "x";
  create_repository(disk);
  const auto repository = reopen(disk, directory / "file");
  const auto objects = store_some(*repository, 1);
  require_ok(repository->flush());
  CHECK(all_load(*reopen(disk, directory / "file/below"), objects));
}

TEST_CASE("a damaged cache does not keep anyone from working", "[repository]") {
  const bool one_bit = GENERATE(false, true);
  INFO((one_bit ? "one bit of each table" : "every file is rubbish"));
  FaultyDisk disk;
  const TempDir caches;
  create_repository(disk);
  std::vector<std::pair<ObjectId, Bytes>> objects;
  {
    const auto repository = reopen(disk, caches / "a");
    for (std::uint64_t i = 0; i < 20; ++i)
      for (auto& object : store_some(*repository, 10 * i)) objects.push_back(std::move(object));
    value_of(repository->commit(snapshot_named("h")));
  }
  std::size_t ruined = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(caches / "a")) {
    if (!entry.is_regular_file() || entry.file_size() == 0 || (one_bit && entry.path().extension() != ".sst"))
      continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    if (one_bit) {
      file.seekg(40);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(40);
      file.put(byte);
    } else {
      file << as_text(random_bytes(1, entry.file_size()));
    }
    ++ruined;
  }
  REQUIRE(ruined > 0);
  const auto repository = reopen(disk, caches / "a");
  CHECK(all_load(*repository, objects));
  const auto more = store_some(*repository, 10'000);
  value_of(repository->commit(snapshot_named("h")));
  CHECK(all_load(*reopen(disk), more));
}

TEST_CASE("repositories that share a cache directory do not mix", "[repository]") {
  FaultyDisk first_disk, second_disk;
  const TempDir caches;
  create_repository(first_disk);
  create_repository(second_disk);
  const auto first = reopen(first_disk, caches / "a");
  const auto second = reopen(second_disk, caches / "a");
  const auto in_first = store_some(*first, 1), in_second = store_some(*second, 1);
  require_ok(first->flush());
  require_ok(second->flush());
  CHECK(in_first[0].first != in_second[0].first);  // the same content, under another key
  CHECK(all_load(*first, in_first));
  CHECK(all_load(*second, in_second));
  CHECK_FALSE(value_of(first->contains(in_second[0].first)));
}

TEST_CASE("snapshots are saved, listed, loaded and removed", "[repository]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  const auto repository = reopen(disk);
  Snapshot snapshot = snapshot_named("host");
  snapshot.paths = {"/home"};
  snapshot.tree = repository->id_of(as_bytes("tree"));
  const SnapshotId first = value_of(repository->save_snapshot(snapshot));
  const SnapshotId second = value_of(repository->save_snapshot(snapshot));
  CHECK(first != second);  // the same moment twice is two snapshots
  const auto other = reopen(disk);
  std::vector<SnapshotId> expected = {first, second};
  std::sort(expected.begin(), expected.end());
  CHECK(value_of(other->list_snapshots()) == expected);
  CHECK(encode_snapshot(value_of(other->load_snapshot(first))) == encode_snapshot(snapshot));
  require_ok(other->remove_snapshot(first));
  CHECK(value_of(repository->list_snapshots()) == std::vector<SnapshotId>{second});
  CHECK(code_of(repository->load_snapshot(first)) == ErrorCode::not_found);
  require_ok(other->remove_snapshot(first));
}

TEST_CASE("a repository in a directory keeps what was committed", "[repository][local]") {
  const Mode mode = any_mode();
  const TempDir directory;
  const std::string path = directory / "repository";
  {
    LocalBackend backend(path);
    require_ok(Repository::create(backend, password_of(mode), kCheapPassword));
  }
  std::vector<std::pair<ObjectId, Bytes>> objects;
  SnapshotId id;
  {
    const auto repository =
        value_of(open_repository(std::make_unique<LocalBackend>(path), directory / "cache"));
    value_of(repository->begin_writing());
    objects = store_some(*repository, 1);
    id = value_of(repository->commit(snapshot_named("host")));
    store_some(*repository, 100);  // never flushed
  }
  const auto repository = value_of(open_repository(std::make_unique<LocalBackend>(path)));
  require_ok(repository->refresh_index());
  CHECK(all_load(*repository, objects));
  CHECK(value_of(repository->load_snapshot(id)).host == "host");
  CHECK(std::filesystem::is_empty(path + "/tmp"));
}

}  // namespace kin::store

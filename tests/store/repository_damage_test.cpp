// Damaged, missing and forged files: every one gives an Error or exactly the right bytes.
#include "store/repository.h"
#include "tests/support/damage.h"
#include "tests/support/random_bytes.h"
#include "tests/support/run_alone.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <limits>
#include <set>

namespace kin::store {
namespace {

using namespace kin::testing;

// A small repository: two packs of few blocks, one index segment, one snapshot.
struct Sample {
  FaultyDisk disk;
  std::vector<std::pair<ObjectId, Bytes>> objects;
  SnapshotId snapshot;

  explicit Sample(Mode mode) {
    create_repository(disk, mode);
    const auto repository = reopen(disk);
    add(*repository, text_like(1, 60), ObjectKind::data);
    add(*repository, text_like(2, 50), ObjectKind::tree);
    add(*repository, {'x'}, ObjectKind::data);
    Bytes near = objects[0].second;
    near[10] ^= 1;
    value_of(repository->append(delta_block(*repository, objects[0].first, objects[0].second, near)));
    objects.emplace_back(repository->id_of(near), near);
    snapshot = value_of(repository->commit(snapshot_named("host")));
  }

  void add(Repository& repository, const Bytes& content, ObjectKind kind) {
    objects.emplace_back(value_of(store_object(repository, content, kind)), content);
  }

  // No block is cached, so that each load reads.
  std::unique_ptr<Repository> open() { return reopen(disk, "", 0); }

  // How many objects load; fails the test if one loads as something else, or with an error that is not
  // corrupt.
  std::size_t count_sound(Repository& repository, const std::string& what) {
    std::size_t sound = 0;
    for (const auto& [id, content] : objects) {
      const auto loaded = repository.load(id);
      if (loaded && !equal(**loaded, content)) FAIL(what << " gives other bytes");
      if (!loaded && loaded.error().code() != ErrorCode::corrupt)
        FAIL(what << ": " << loaded.error().message());
      sound += loaded.has_value();
    }
    return sound;
  }

  FileName only(FileKind kind) const {
    const auto names = disk.names(kind);
    REQUIRE(names.size() == 1);
    return names.front();
  }

  // A segment that is sealed as a true one is.
  void write_segment(const Repository& repository, IndexSegment segment) {
    segment.sort();
    const Bytes file = repository.sealer().seal_file("KININDX1", encode_index_segment(segment));
    disk.write({FileKind::index, hex(hash(file))}, file);
  }
};

Bytes changed(Bytes content) {
  content[10] ^= 1;
  return content;
}

// The pack that holds the object.
FileName pack_of(Repository& repository, const ObjectId& id) {
  return {FileKind::pack, value_of(repository.locate(id)).pack.hex()};
}

}  // namespace

TEST_CASE("a damaged config never opens as something else", "[repository][damage]") {
  const Mode mode = any_mode();
  FaultyDisk disk;
  create_repository(disk, mode);
  for_each_damage(disk.file(config_name()), [&](const Bytes& damaged, const std::string& what) {
    disk.damage(config_name(), damaged);
    INFO(what);
    const auto opened = open_repository(disk.open());
    REQUIRE_FALSE(opened);
    if (opened.error().code() == ErrorCode::unsupported)  // it looks like one of a newer kin
      CHECK(opened.error().message().find("config") != std::string::npos);
  });
  disk.heal();
  CHECK(open_repository(disk.open()).has_value());
}

TEST_CASE("a damaged key opens nothing", "[repository][damage]") {
  FaultyDisk disk;
  create_repository(disk, Mode::encrypted);
  const FileName key = disk.names(FileKind::key).front();
  for_each_damage(disk.file(key), [&](const Bytes& damaged, const std::string& what) {
    disk.damage(key, damaged);
    INFO(what);
    CHECK_FALSE(open_repository(disk.open()));
  });
  disk.heal();
  CHECK(open_repository(disk.open()).has_value());
}

TEST_CASE("an encrypted repository without its keys says so", "[repository][damage]") {
  FaultyDisk disk;
  create_repository(disk, Mode::encrypted);
  disk.erase(disk.names(FileKind::key).front());
  const Error error = error_of(open_repository(disk.open()));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains("keys are gone"));
}

TEST_CASE("a key of another repository opens nothing", "[repository][damage]") {
  FaultyDisk disk, other;
  create_repository(disk, Mode::encrypted);
  create_repository(other, Mode::encrypted);
  disk.erase(disk.names(FileKind::key).front());
  const FileName key = other.names(FileKind::key).front();
  disk.write(key, other.file(key));
  CHECK(code_of(open_repository(disk.open())) == ErrorCode::corrupt);
}

TEST_CASE("with any byte of a pack changed, objects load as they were or not at all",
          "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  REQUIRE(sample.count_sound(*repository, "no damage") == sample.objects.size());
  for (const FileName& pack : sample.disk.names(FileKind::pack)) {
    std::size_t at = 0, unnoticed = 0;
    for_each_flip(sample.disk.file(pack), [&](const Bytes& damaged, const std::string& what) {
      sample.disk.damage(pack, damaged);
      const bool in_a_block = at++ / 3 >= PackBuilder::kPrefixBytes;
      const std::size_t sound = sample.count_sound(*repository, pack.text() + " " + what);
      // The pack's first bytes were read before; the next test reads them anew.
      if (in_a_block && sound == sample.objects.size()) ++unnoticed;
    });
    CHECK(unnoticed == 0);
    sample.disk.heal();
  }
  CHECK(sample.count_sound(*repository, "no damage any more") == sample.objects.size());
}

TEST_CASE("with any of a pack's first bytes changed, its objects do not load and the others do",
          "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const FileName pack = pack_of(*sample.open(), sample.objects[1].first);  // the tree's
  for (std::size_t at = 0; at < PackBuilder::kPrefixBytes; ++at) {
    sample.disk.flip(pack, at);
    const auto repository = sample.open();
    INFO(at);
    CHECK(sample.count_sound(*repository, "prefix") == sample.objects.size() - 1);
    CHECK_THAT(error_of(repository->load(sample.objects[1].first)).message(), Catch::Contains(pack.text()));
  }
}

TEST_CASE("with a pack cut at any length, objects load as they were or not at all", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  for (const FileName& pack : sample.disk.names(FileKind::pack)) {
    for_each_cut(sample.disk.file(pack), [&](const Bytes& damaged, const std::string& what) {
      sample.disk.damage(pack, damaged);
      if (sample.count_sound(*repository, pack.text() + " " + what) == sample.objects.size())
        FAIL(what << " goes unnoticed");
    });
    sample.disk.heal();
  }
}

TEST_CASE("a missing pack is corrupt, and named; other packs are not touched by it", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  const FileName pack = pack_of(*repository, sample.objects[1].first);
  sample.disk.erase(pack);
  const Error error = error_of(sample.open()->load(sample.objects[1].first));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains(pack.text() + " is missing"));
  CHECK(sample.count_sound(*sample.open(), "missing pack") == sample.objects.size() - 1);
}

TEST_CASE("a pack in the place of another is found out", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto packs = sample.disk.names(FileKind::pack);
  REQUIRE(packs.size() == 2);
  sample.disk.damage(packs[0], sample.disk.file(packs[1]));
  sample.disk.damage(packs[1], sample.disk.file(packs[0]));
  CHECK(sample.count_sound(*sample.open(), "swapped") == 0);
}

TEST_CASE("a read that fails is told as such, and works the next time", "[repository][damage]") {
  Sample sample(Mode::plain);
  const auto repository = sample.open();
  const auto& [id, content] = sample.objects[0];
  REQUIRE(loads(*repository, id, content));
  sample.disk.fail(Operation::get);
  CHECK(code_of(repository->load(id)) == ErrorCode::io);
  CHECK(loads(*repository, id, content));
}

TEST_CASE("no byte of an index segment can change or be missing without notice", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  const FileName segment = sample.only(FileKind::index);
  REQUIRE(repository->load_index_segment(segment.name).has_value());
  for_each_damage(sample.disk.file(segment), [&](const Bytes& damaged, const std::string& what) {
    sample.disk.damage(segment, damaged);
    const auto loaded = repository->load_index_segment(segment.name);
    INFO(what);
    CHECK(code_of(loaded) == ErrorCode::corrupt);
    // Even if its name were that of the damaged file.
    CHECK(code_of(repository->sealer().open_file("KININDX1", damaged)) == ErrorCode::corrupt);
  });
}

TEST_CASE("a damaged index segment stops the reader and tells of repair index", "[repository][damage]") {
  Sample sample(Mode::plain);
  sample.disk.flip(sample.only(FileKind::index), 50);
  const auto repository = value_of(open_repository(sample.disk.open()));
  const Error error = error_of(repository->refresh_index());
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(),
             Catch::Contains("kin repair index") && Catch::Contains(sample.only(FileKind::index).text()));
}

TEST_CASE("no byte of a snapshot can change or be missing without notice", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  const FileName file = sample.only(FileKind::snapshot);
  REQUIRE(value_of(repository->load_snapshot(sample.snapshot)).host == "host");
  for_each_damage(sample.disk.file(file), [&](const Bytes& damaged, const std::string& what) {
    sample.disk.damage(file, damaged);
    const auto loaded = repository->load_snapshot(sample.snapshot);
    INFO(what);
    CHECK(code_of(loaded) == ErrorCode::corrupt);
    CHECK(code_of(repository->sealer().open_file("KINSNAP1", damaged)) == ErrorCode::corrupt);
  });
  CHECK_THAT(error_of(repository->load_snapshot(sample.snapshot)).message(), Catch::Contains(file.text()));
}

TEST_CASE("an index that says a wrong place gives an error, not a crash and not other bytes",
          "[repository][forged]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto honest = sample.open();
  const auto& [id, content] = sample.objects[0];
  const BlockRef place = value_of(honest->locate(id)),
                 other = value_of(honest->locate(sample.objects[2].first));
  REQUIRE(place.pack == other.pack);
  REQUIRE(place.offset != other.offset);
  const std::uint64_t pack_size = sample.disk.file({FileKind::pack, place.pack.hex()}).size();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const ObjectId no_pack = honest->id_of(as_bytes("no pack"));
  sample.disk.erase(sample.only(FileKind::index));
  const auto before = sample.disk.files();
  struct Lie {
    const char* what;
    ObjectId pack;
    std::uint64_t pack_size, offset;
    std::uint32_t size;
  };
  for (const Lie& lie :
       {Lie{"the place of another object", place.pack, pack_size, other.offset, other.stored_size},
        Lie{"one byte on", place.pack, pack_size, place.offset + 1, place.stored_size},
        Lie{"too short", place.pack, pack_size, place.offset, place.stored_size - 1},
        Lie{"too long", place.pack, pack_size, place.offset, place.stored_size + 1},
        Lie{"nothing", place.pack, pack_size, place.offset, 0},
        Lie{"the pack's start", place.pack, pack_size, 0, 50},
        Lie{"beyond the end", place.pack, kMost, pack_size, place.stored_size},
        Lie{"far beyond the end", place.pack, kMost, kMost - 1000, 1000},
        Lie{"far too long", place.pack, kMost, place.offset, ~0U},
        Lie{"a pack that is not there", no_pack, pack_size, place.offset, place.stored_size}}) {
    IndexSegment segment;
    segment.packs = {{lie.pack, lie.pack_size}};
    segment.blocks = {{0, {lie.offset, lie.size}, content.size(), 0, std::nullopt}};
    segment.objects = {{id, ObjectKind::data, 0, content.size()}};
    sample.write_segment(*honest, segment);
    INFO(lie.what);
    CHECK(code_of(sample.open()->load(id)) == ErrorCode::corrupt);
    sample.disk.erase(sample.only(FileKind::index));
  }
  CHECK(sample.disk.files() == before);
}

TEST_CASE("an index that names a pack as an open one is named gives an error, not a crash (alone)",
          "[.][alone]") {
  // The repository has names of its own for packs that are not yet written: 31 zeros, then 1 or 2.
  const std::uint8_t last = GENERATE(1, 2);
  Sample sample(Mode::plain);
  const auto& [id, content] = sample.objects[0];
  sample.disk.erase(sample.only(FileKind::index));
  ObjectId pack;
  pack.bytes.back() = last;
  IndexSegment segment;
  segment.packs = {{pack, 1000}};
  segment.blocks = {{0, {24, 100}, content.size(), 0, std::nullopt}};
  segment.objects = {{id, ObjectKind::data, 0, content.size()}};
  sample.write_segment(*sample.open(), segment);
  const auto repository = sample.open();
  CHECK_FALSE(repository->load(id));
  // And while there is such a pack, but a shorter one.
  value_of(store_object(*repository, {'y'}));
  CHECK_FALSE(repository->load(id));
}

TEST_CASE("an index that names a pack as an open one is named gives an error, not a crash",
          "[repository][forged]") {
  CHECK(run_alone("an index that names a pack as an open one is named gives an error, not a crash (alone)"));
}

TEST_CASE("a block whose base is nowhere is corrupt, and the base named", "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes base = random_bytes(1, 1000), content = random_bytes(2, 1000);
  const ObjectId missing = repository->id_of(base);
  const ObjectId id = repository->id_of(content);
  value_of(repository->append(delta_block(*repository, missing, base, content)));
  for (int round = 0; round < 2; ++round) {  // from the open pack, and from the finished one
    const Error error = error_of(repository->load(id));
    CHECK(error.code() == ErrorCode::corrupt);
    CHECK_THAT(error.message(), Catch::Contains("base " + missing.short_hex()));
    require_ok(repository->flush());
  }
}

TEST_CASE("blocks whose bases form a loop are corrupt", "[repository][forged]") {
  const std::size_t length = GENERATE(1UL, 2UL, 3UL);
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  std::vector<Bytes> contents;
  for (std::uint64_t i = 0; i < length; ++i) contents.push_back(random_bytes(i, 500));
  for (std::size_t i = 0; i < length; ++i) {
    const Bytes& base = contents[(i + 1) % length];
    value_of(repository->append(delta_block(*repository, repository->id_of(base), base, contents[i])));
  }
  require_ok(repository->flush());
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{1} << 20})
    for (const Bytes& content : contents) {
      const auto reader = reopen(disk, "", cache_bytes);
      CHECK(code_of(reader->load(reader->id_of(content))) == ErrorCode::corrupt);
    }
}

TEST_CASE("a chain of bases longer than any that kin writes is corrupt, not a deep recursion",
          "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  Bytes content = random_bytes(1, 500);
  value_of(store_object(*repository, content));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const Bytes base = content;
    for (std::size_t digit = 0; digit < 4; ++digit)
      content[digit] = static_cast<std::uint8_t>(i >> (8 * digit));
    value_of(repository->append(delta_block(*repository, repository->id_of(base), base, content)));
  }
  require_ok(repository->flush());
  CHECK(code_of(reopen(disk, "", 0)->load(repository->id_of(content))) == ErrorCode::corrupt);
}

TEST_CASE("a delta against another base than it names is corrupt", "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes right = random_bytes(1, 2000), wrong = random_bytes(2, 2000);
  Bytes content = right;
  content[1000] ^= 1;
  value_of(store_object(*repository, right));
  const ObjectId wrong_id = value_of(store_object(*repository, wrong));
  value_of(repository->append(delta_block(*repository, wrong_id, right, content)));
  require_ok(repository->flush());
  CHECK(code_of(reopen(disk)->load(repository->id_of(content))) == ErrorCode::corrupt);
}

TEST_CASE("a block with an object that is not what its id says is corrupt as a whole",
          "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes good = text_like(1, 100), bad = text_like(2, 100);
  EncodedBlock block = plain_block(*repository, {good, bad});
  block.header.objects[1].id = repository->id_of(as_bytes("something else"));
  value_of(repository->append(block));
  require_ok(repository->flush());
  const auto reader = reopen(disk);
  const Error error = error_of(reader->load(block.header.objects[1].id));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains(block.header.objects[1].id.short_hex()));
}

TEST_CASE("a block in an encoding of a newer kin is unsupported, and the others load",
          "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const auto repository = reopen(disk);
  const Bytes content = text_like(1, 100), other = text_like(2, 100);
  EncodedBlock block = plain_block(*repository, {content});
  block.header.codec = 77;
  value_of(repository->append(block));
  value_of(store_object(*repository, other));
  require_ok(repository->flush());
  const auto reader = reopen(disk);
  CHECK(code_of(reader->load(reader->id_of(content))) == ErrorCode::unsupported);
  CHECK(loads(*reader, reader->id_of(other), other));
}

TEST_CASE("a record opens only at its place, and every object of it is checked", "[repository][damage]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const auto repository = sample.open();
  const auto& [id, content] = sample.objects[3];  // the delta
  const BlockRef place = value_of(repository->locate(id));
  const Bytes pack = sample.disk.file({FileKind::pack, place.pack.hex()});
  const Salt salt = value_of(read_pack_prefix(pack));
  const ByteView view = ByteView(pack).subspan(place.offset, place.stored_size);
  const Bytes record(view.begin(), view.end());
  const BlockContent got = value_of(repository->decode_record(salt, place.offset, record));
  CHECK(equal(*got.find(id), content));
  CHECK(code_of(repository->decode_record(salt, place.offset + 1, record)) == ErrorCode::corrupt);
  for_each_damage(record, [&](const Bytes& damaged, const std::string& what) {
    INFO(what);
    CHECK(code_of(repository->decode_record(salt, place.offset, damaged)) == ErrorCode::corrupt);
  });
}

TEST_CASE("an index can be made again from the packs alone", "[repository][rebuild]") {
  const Mode mode = any_mode();
  Sample sample(mode);
  const bool lost = GENERATE(true, false);  // or damaged, so that it cannot even be read
  const FileName old = sample.only(FileKind::index);
  if (lost) sample.disk.erase(old);
  if (!lost) sample.disk.write(old, random_bytes(1, 300));
  const auto repository = value_of(open_repository(sample.disk.open()));
  int damages = 0;
  std::vector<std::pair<std::size_t, std::size_t>> progress;
  const auto stats = value_of(repository->rebuild_index(
      [&](const Error&) { ++damages; },
      [&](std::size_t done, std::size_t all) { progress.emplace_back(done, all); }));
  CHECK(stats.packs == 2);
  CHECK(stats.blocks == 4);
  CHECK(stats.objects == 4);
  CHECK(stats.damaged_packs == 0);
  CHECK(damages == 0);
  CHECK(progress == std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 2}});
  CHECK(sample.only(FileKind::index) != old);
  CHECK(sample.count_sound(*repository, "rebuilt") == sample.objects.size());
  CHECK(sample.count_sound(*sample.open(), "rebuilt") == sample.objects.size());
}

TEST_CASE("a new index from a damaged pack holds what precedes the damage", "[repository][rebuild]") {
  Sample sample(Mode::plain);
  const auto repository = sample.open();
  const BlockRef last = value_of(repository->locate(sample.objects[3].first));
  const FileName pack{FileKind::pack, last.pack.hex()};
  sample.disk.flip(pack, last.offset + 20);  // in the last block's header
  std::vector<std::string> damages;
  const auto stats = value_of(repository->rebuild_index(
      [&](const Error& error) { damages.push_back(error.message()); }, [](std::size_t, std::size_t) {}));
  CHECK(stats.damaged_packs == 1);
  CHECK(stats.objects == sample.objects.size());  // what the old index knows behind the damage, and all once
  REQUIRE(damages.size() == 1);
  CHECK_THAT(damages[0], Catch::Contains(pack.text()));
  CHECK(sample.count_sound(*sample.open(), "rebuilt") == sample.objects.size() - 1);
}

TEST_CASE("a delta whose base is nowhere does not count as stored", "[repository][forged]") {
  FaultyDisk disk;
  create_repository(disk);
  const Bytes base = text_like(1, 3000);
  const Bytes content = changed(base);
  {
    const auto repository = reopen(disk);
    value_of(repository->append(delta_block(*repository, repository->id_of(base), base, content)));
    require_ok(repository->flush());
  }
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  const ObjectId id = repository->id_of(content);
  CHECK_FALSE(value_of(repository->contains(id)));
  CHECK(value_of(store_object(*repository, content)) == id);
  require_ok(repository->flush());
  for (const bool rebuilt : {false, true}) {
    const auto fresh = reopen(disk);
    if (rebuilt) value_of(fresh->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
    CHECK(loads(*fresh, id, content));
    CHECK(value_of(fresh->contains(id)));
  }
}

TEST_CASE("an object that was stored again is read from whichever place is sound", "[repository][damage]") {
  const bool missing = GENERATE(true, false);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {  // names, and so which place the index knows, differ
    FaultyDisk disk;
    create_repository(disk, Mode::encrypted);
    const Bytes base = text_like(seed, 3000);
    const Bytes content = changed(base);
    ObjectId base_id, id;
    {
      const auto repository = reopen(disk);
      base_id = value_of(store_object(*repository, base));
      value_of(repository->append(delta_block(*repository, base_id, base, content)));
      id = repository->id_of(content);
      require_ok(repository->flush());
    }
    const FileName pack = disk.names(FileKind::pack).at(0);
    Bytes bytes = value_of(disk.open()->get(pack));
    require_ok(disk.open()->remove(pack));
    if (!missing) {
      for (std::size_t i = PackBuilder::kPrefixBytes + 8; i < bytes.size(); i += 50) bytes[i] ^= 1;
      const auto backend = disk.open();
      require_ok(backend->put(pack, bytes));
      require_ok(backend->sync());
    }
    {
      const auto repository = reopen(disk);
      value_of(repository->begin_writing());
      CHECK_FALSE(repository->load(id));
      // The other way round: a reader that takes one place of each would go in circles.
      value_of(store_object(*repository, content));
      REQUIRE(value_of(repository->claim(base_id)));
      value_of(repository->append(delta_block(*repository, id, content, base)));
      require_ok(repository->flush());
    }
    for (const bool rebuilt : {false, true}) {
      const auto fresh = reopen(disk, "", 0);
      if (rebuilt) value_of(fresh->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
      CHECK(loads(*fresh, id, content));
      CHECK(loads(*fresh, base_id, base));
    }
  }
}

TEST_CASE("an object with any number of places is read from the last sound one, also by a new index",
          "[repository][damage]") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {  // their names, and so which comes last, differ
    FaultyDisk disk;
    create_repository(disk, Mode::encrypted);
    const Bytes content = random_bytes(seed, 2000);
    std::set<FileName> damaged;
    ObjectId id;
    for (int times = 0; times < 4; ++times) {
      const auto repository = reopen(disk, "", 0);
      if (!damaged.empty()) CHECK_FALSE(repository->load(repository->id_of(content)));  // so that it is known
      value_of(repository->begin_writing());
      id = value_of(store_object(*repository, content));
      require_ok(repository->flush());
      if (times == 3) break;
      for (const FileName& pack : disk.names(FileKind::pack))
        if (damaged.insert(pack).second) disk.flip(pack, PackBuilder::kPrefixBytes + 1000);
    }
    CHECK(disk.names(FileKind::pack).size() == 4);
    for (int rebuilt = 0; rebuilt < 3; ++rebuilt) {
      const auto fresh = reopen(disk, "", 0);
      CHECK(loads(*fresh, id, content));
      value_of(fresh->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
    }
  }
}

TEST_CASE("what leans on a base that was stored again counts as stored", "[repository][damage]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {  // names, and so which place the index knows, differ
    FaultyDisk disk;
    create_repository(disk, Mode::encrypted);
    const Bytes base = text_like(seed, 3000);
    const Bytes content = changed(base);
    ObjectId base_id, id;
    {
      const auto repository = reopen(disk);
      base_id = value_of(store_object(*repository, base));
      require_ok(repository->flush());
      value_of(repository->append(delta_block(*repository, base_id, base, content)));
      id = repository->id_of(content);
      require_ok(repository->flush());
      require_ok(disk.open()->remove(pack_of(*repository, base_id)));
    }
    {
      const auto repository = reopen(disk);
      value_of(repository->begin_writing());
      CHECK_FALSE(value_of(repository->contains(id)));
      value_of(store_object(*repository, base));
      CHECK(repository->times_stored_again() == 1);
      require_ok(repository->flush());
    }
    const auto fresh = reopen(disk);
    value_of(fresh->begin_writing());
    CHECK(value_of(fresh->contains(id)));
    CHECK_FALSE(value_of(fresh->claim(id)));
    CHECK(fresh->times_stored_again() == 0);
  }
}

TEST_CASE("a pack that was cut short when the index was made is sound once it is whole again",
          "[repository][damage]") {
  Sample sample(any_mode());
  FileName pack = pack_of(*sample.open(), sample.objects[3].first);
  const Bytes whole = sample.disk.file(pack);
  sample.disk.write(pack,
                    Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2)));
  value_of(sample.open()->rebuild_index([](const Error&) {}, [](std::size_t, std::size_t) {}));
  {
    const auto repository = sample.open();
    value_of(repository->begin_writing());
    CHECK(repository->lost_packs().size() == 1);
  }
  sample.disk.write(pack, whole);
  const auto repository = sample.open();
  value_of(repository->begin_writing());
  CHECK(repository->lost_packs().empty());
}

TEST_CASE("a damaged base makes its own pack lost, and no other", "[repository][damage]") {
  FaultyDisk disk;
  create_repository(disk);
  const Bytes base = text_like(1, 3000);
  const Bytes content = changed(base);
  ObjectId id;
  FileName pack{FileKind::pack, ""};
  {
    const auto repository = reopen(disk);
    const ObjectId base_id = value_of(store_object(*repository, base));
    require_ok(repository->flush());
    pack = disk.names(FileKind::pack).at(0);
    value_of(repository->append(delta_block(*repository, base_id, base, content)));
    id = repository->id_of(content);
    require_ok(repository->flush());
  }
  require_ok(disk.open()->remove(pack));
  const auto repository = reopen(disk, "", 0);
  CHECK_FALSE(repository->load(id));
  REQUIRE(repository->lost_packs().size() == 1);
  CHECK(repository->lost_packs().front().hex() == pack.name);
}

TEST_CASE("an object whose bytes are not those of its id is never given, and its neighbours are",
          "[repository][damage]") {
  FaultyDisk disk;
  create_repository(disk, Mode::plain);
  const Bytes first = text_like(1, 500), wrong = text_like(2, 500), third = text_like(3, 500);
  ObjectId wrong_id, delta_id;
  {
    const auto repository = reopen(disk);
    EncodedBlock group = plain_block(*repository, {first, wrong, third});
    wrong_id = group.header.objects[1].id = repository->id_of(as_bytes("something else"));
    value_of(repository->append(group));
    Bytes content = wrong;
    content[7] ^= 1;
    const EncodedBlock delta = delta_block(*repository, wrong_id, wrong, content);
    delta_id = delta.header.objects[0].id;
    value_of(repository->append(delta));
    require_ok(repository->flush());
  }
  const bool whole_first = GENERATE(false, true);  // the cache has the block then
  const auto repository = reopen(disk);
  const BlockRef block = value_of(repository->locate(wrong_id));
  const auto check_whole = [&] {
    const Error error = error_of(repository->load_block(block));
    CHECK(error.code() == ErrorCode::corrupt);
    CHECK_THAT(error.message(), Catch::Contains(wrong_id.short_hex()) && Catch::Contains("other bytes"));
  };
  if (whole_first) check_whole();
  for (int round = 0; round < 2; ++round) {
    CHECK(loads(*repository, repository->id_of(first), first));
    CHECK(loads(*repository, repository->id_of(third), third));
    CHECK(code_of(repository->load(wrong_id)) == ErrorCode::corrupt);
    CHECK(code_of(repository->load(delta_id)) ==
          ErrorCode::corrupt);  // its base is not what it was made from
    check_whole();
  }
  CHECK(repository->lost_packs() == std::vector{block.pack});
}

}  // namespace kin::store

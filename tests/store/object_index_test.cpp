#include "store/object_index.h"

#include "lib/base/file.h"
#include "store/cache_directory.h"
#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"
#include "tests/support/ruin.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/fs.h>
#include <map>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>

namespace kin::store {
namespace {

using testing::code_of;
using testing::entries_in;
using testing::numbered_id;
using testing::require_ok;
using testing::ruin;
using testing::TempDir;
using testing::value_of;

// One pack with one block per object: object n of the segment lies at 1000 n.
IndexSegment segment_of(std::uint64_t pack, std::uint64_t first, std::uint64_t count) {
  IndexSegment out;
  out.packs = {{numbered_id(1'000'000 + pack), 5'000'000'000}};
  for (std::uint64_t i = 0; i < count; ++i) {
    BlockHeader header;
    header.content_size = i;
    header.objects = {{numbered_id(first + i), i % 2 == 0 ? ObjectKind::data : ObjectKind::tree, i, {}}};
    out.add_block(0, header, {1000 * i, static_cast<std::uint32_t>(500 + i)});
  }
  out.sort();
  return out;
}

bool has_object(ObjectIndex& index, std::uint64_t pack, std::uint64_t first, std::uint64_t number) {
  const auto found = index.locate(numbered_id(first + number));
  if (!found || !*found) return false;
  const Location& where = **found;
  return where.pack == numbered_id(1'000'000 + pack) && where.range.offset == 1000 * number &&
         where.range.size == 500 + number && where.content_size == number && where.size == number &&
         where.kind == (number % 2 == 0 ? ObjectKind::data : ObjectKind::tree);
}

// A cache of 100 objects that was opened again since, so that nothing is left in its log.
void fill_twice(const std::string& directory) {
  {
    const auto index = value_of(ObjectIndex::open(directory));
    require_ok(index->add("one", segment_of(1, 0, 100)));
    require_ok(index->set_clean(true));
    index->note_damaged(numbered_id(7), true);
    require_ok(index->record({{"/a", {1}}}));
  }
  value_of(ObjectIndex::open(directory));
}

std::map<std::string, std::filesystem::file_time_type> files_in(const std::string& directory) {
  std::map<std::string, std::filesystem::file_time_type> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    out[entry.path().filename().string()] = entry.last_write_time();
  return out;
}

}  // namespace

TEST_CASE("packs that were seen damaged are known until they are not, whatever becomes of the cache",
          "[object_index]") {
  const TempDir directory;
  {
    const auto index = value_of(ObjectIndex::open(directory / "cache"));
    CHECK(index->damaged_packs().empty());
    index->note_damaged(numbered_id(1), true);
    index->note_damaged(numbered_id(2), true);
    index->note_damaged(numbered_id(1), true);
  }
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  CHECK(index->damaged_packs().size() == 2);
  index->note_damaged(numbered_id(1), false);
  CHECK(index->damaged_packs() == std::vector{numbered_id(2)});
  require_ok(index->clear());
  CHECK(index->damaged_packs() == std::vector{numbered_id(2)});
  require_ok(index->retreat(directory.path(), Error(ErrorCode::io, "no room")));
  CHECK(index->damaged_packs() == std::vector{numbered_id(2)});
}

TEST_CASE("objects are found where the segments say, and others are not", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open_temporary(directory.path()));
  CHECK_FALSE(value_of(index->locate(numbered_id(1))).has_value());
  require_ok(index->add("one", segment_of(1, 0, 1000)));
  require_ok(index->add("two", segment_of(2, 5000, 1000)));
  std::size_t found = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    found += has_object(*index, 1, 0, i) + has_object(*index, 2, 5000, i);
  CHECK(found == 2000);
  for (std::uint64_t i = 1000; i < 1100; ++i)
    CHECK_FALSE(value_of(index->locate(numbered_id(i))).has_value());
  CHECK(index->segments() == std::set<std::string>{"one", "two"});
  CHECK(index->has_pack(numbered_id(1'000'001)));
  CHECK(index->has_pack(numbered_id(1'000'002)));
  CHECK_FALSE(index->has_pack(numbered_id(1'000'003)));
}

TEST_CASE("a segment may come twice, and objects may be in several", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open_temporary(directory.path()));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  require_ok(index->add("two", segment_of(2, 0, 100)));  // the same objects in another pack
  for (std::uint64_t i = 0; i < 100; ++i) CHECK((has_object(*index, 1, 0, i) || has_object(*index, 2, 0, i)));
  require_ok(index->add("three", segment_of(1, 0, 100)));
  for (std::uint64_t i = 0; i < 100; ++i) CHECK((has_object(*index, 1, 0, i) || has_object(*index, 2, 0, i)));
}

TEST_CASE("a segment without objects is remembered, and so are its packs", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open_temporary(directory.path()));
  require_ok(index->add("empty", IndexSegment{}));
  require_ok(index->add("pack only", segment_of(7, 0, 0)));
  CHECK(index->segments() == std::set<std::string>{"empty", "pack only"});
  CHECK(index->has_pack(numbered_id(1'000'007)));
}

TEST_CASE("all that an index knows is there when it is opened again", "[object_index]") {
  const TempDir directory;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const auto index = value_of(ObjectIndex::open(directory / "cache"));
    CHECK(index->segments().size() == round);
    for (std::uint64_t earlier = 0; earlier < round; ++earlier) {
      CHECK(has_object(*index, earlier, 100 * earlier, 17));
      CHECK(index->has_pack(numbered_id(1'000'000 + earlier)));
    }
    require_ok(index->add("segment " + std::to_string(round), segment_of(round, 100 * round, 100)));
  }
}

TEST_CASE("an index that is in use is busy, and free again afterwards", "[object_index]") {
  const TempDir directory;
  {
    const auto index = value_of(ObjectIndex::open(directory / "cache"));
    CHECK(code_of(ObjectIndex::open(directory / "cache")) == ErrorCode::busy);
    require_ok(index->add("one", segment_of(1, 0, 10)));  // undisturbed
  }
  CHECK(has_object(*value_of(ObjectIndex::open(directory / "cache")), 1, 0, 5));
}

TEST_CASE("a temporary index leaves nothing behind", "[object_index]") {
  const TempDir directory;
  {
    const auto first = value_of(ObjectIndex::open_temporary(directory.path()));
    const auto second = value_of(ObjectIndex::open_temporary(directory.path()));
    require_ok(first->add("one", segment_of(1, 0, 10)));
    CHECK_FALSE(value_of(second->locate(numbered_id(1))).has_value());
    CHECK(entries_in(directory.path()) == 2);
  }
  CHECK(entries_in(directory.path()) == 0);
}

TEST_CASE("adding segments leaves no files beside the database", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  const std::size_t before = entries_in(directory / "cache/index-3");
  for (std::uint64_t i = 0; i < 5; ++i) require_ok(index->add(std::to_string(i), segment_of(i, 100 * i, 50)));
  CHECK(entries_in(directory / "cache/index-3") == before);
}

TEST_CASE("a cleared index knows nothing and can be filled again", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  require_ok(index->add("one", segment_of(1, 0, 10)));
  require_ok(index->set_clean(true));
  require_ok(index->clear());
  CHECK(index->segments().empty());
  CHECK_FALSE(index->has_pack(numbered_id(1'000'001)));
  CHECK_FALSE(value_of(index->locate(numbered_id(1))).has_value());
  CHECK_FALSE(index->is_clean());
  require_ok(index->add("two", segment_of(2, 0, 10)));
  CHECK(has_object(*index, 2, 0, 5));
}

TEST_CASE("the clean mark stays until it is taken away", "[object_index]") {
  const TempDir directory;
  CHECK_FALSE(value_of(ObjectIndex::open(directory.path()))->is_clean());
  require_ok(value_of(ObjectIndex::open(directory.path()))->set_clean(true));
  CHECK(value_of(ObjectIndex::open(directory.path()))->is_clean());
  require_ok(value_of(ObjectIndex::open(directory.path()))->set_clean(false));
  CHECK_FALSE(value_of(ObjectIndex::open(directory.path()))->is_clean());
}

TEST_CASE("an index that is only asked leaves its cache as it is", "[object_index]") {
  const TempDir directory;
  fill_twice(directory.path());
  const auto before = files_in(directory / "index-3/db");
  for (int turn = 0; turn < 3; ++turn) {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    CHECK(index->segments() == std::set<std::string>{"one"});
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(has_object(*index, 1, 0, i));
    CHECK_FALSE(value_of(index->locate(numbered_id(100))).has_value());
    CHECK(index->has_pack(numbered_id(1'000'001)));
    CHECK(index->packs().size() == 1);
    CHECK(index->is_clean());
    CHECK(index->damaged_packs() == std::vector{numbered_id(7)});
    CHECK(value_of(index->recorded("/a")) == Bytes{1});
    CHECK(code_of(ObjectIndex::open(directory.path())) == ErrorCode::busy);
  }
  CHECK(files_in(directory / "index-3/db") == before);
}

TEST_CASE("an index that was asked takes what is new, and keeps what was there", "[object_index]") {
  const TempDir directory;
  fill_twice(directory.path());
  for (int way = 0; way < 6; ++way) {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    CHECK(has_object(*index, 1, 0, 17));
    const std::string name = std::to_string(way);
    const auto pack = static_cast<std::uint64_t>(way);
    if (way == 0) require_ok(index->add("two", segment_of(2, 5000, 100)));
    if (way == 1) require_ok(index->set_clean(false));
    if (way == 2) index->note_damaged(numbered_id(8), true);
    if (way == 3) require_ok(index->record({{"/b", {2}}}));
    if (way == 4) require_ok(index->clear_records("/a"));
    if (way == 5) require_ok(index->clear());
    CHECK(has_object(*index, 1, 0, 17) == (way < 5));
    require_ok(index->add("more " + name, segment_of(10 + pack, 10'000 * (1 + pack), 100)));
    CHECK(has_object(*index, 10 + pack, 10'000 * (1 + pack), 99));
    CHECK(has_object(*index, 2, 5000, 99) == (way < 5));
    CHECK(index->is_clean() == (way == 0));
    CHECK(index->damaged_packs().size() == (way < 2 ? 1 : 2));
    CHECK(value_of(index->recorded("/a")).has_value() == (way < 4));
    CHECK(value_of(index->recorded("/b")).has_value() == (way == 3 || way == 4));
  }
  const auto index = value_of(ObjectIndex::open(directory.path()));
  CHECK(index->segments() == std::set<std::string>{"more 5"});
  CHECK(index->damaged_packs().size() == 2);
}

TEST_CASE("what a killed process left in the log is known", "[object_index]") {
  const TempDir directory;
  fill_twice(directory.path());
  std::filesystem::create_directory(directory / "killed");
  {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    require_ok(index->add("two", segment_of(2, 5000, 100)));
    index->note_damaged(numbered_id(8), true);
    std::filesystem::copy(directory / "index-3", directory / "killed/index-3",
                          std::filesystem::copy_options::recursive);
  }
  for (int turn = 0; turn < 3; ++turn) {
    const auto index = value_of(ObjectIndex::open(directory / "killed"));
    CHECK(index->segments() == std::set<std::string>{"one", "two"});
    CHECK(has_object(*index, 1, 0, 99));
    CHECK(has_object(*index, 2, 5000, 99));
    CHECK(index->damaged_packs().size() == 2);
  }
}

TEST_CASE("an index that cannot be opened for writing is still read", "[object_index]") {
  const TempDir directory;
  fill_twice(directory.path());
  const std::string obstacle = directory / "index-3/db/LOCK";
  std::filesystem::remove(obstacle);
  std::filesystem::create_directory(obstacle);
  {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    CHECK(has_object(*index, 1, 0, 17));
    CHECK_FALSE(index->add("two", segment_of(2, 5000, 100)));
    CHECK_FALSE(index->set_clean(false));
    index->note_damaged(numbered_id(8), true);
    require_ok(index->record({{"/b", {2}}}));
    CHECK(has_object(*index, 1, 0, 17));
    CHECK(index->segments() == std::set<std::string>{"one"});
    CHECK(index->damaged_packs() == std::vector{numbered_id(7)});
    std::filesystem::remove(obstacle);
    require_ok(index->add("two", segment_of(2, 5000, 100)));
  }
  const auto index = value_of(ObjectIndex::open(directory.path()));
  CHECK(has_object(*index, 1, 0, 17));
  CHECK(has_object(*index, 2, 5000, 17));
}

TEST_CASE("a cache that is damaged after it was asked is never taken for true", "[object_index]") {
  const std::string extension =
      GENERATE(as<std::string>(), "CURRENT", "MANIFEST", ".log", ".sst", "");  // the last: all of them
  INFO(extension);
  const TempDir directory, temporary;
  fill_twice(directory.path());
  SECTION("before it is opened") {
    ruin(directory / "index-3/db", extension);
    const auto index = value_of(ObjectIndex::open(directory.path()));
    if (!index->segments().contains("one")) require_ok(index->add("one", segment_of(1, 0, 100)));
    // An answer is right, or there is an error, after which it is filled again.
    if (!index->locate(numbered_id(17))) {
      require_ok(index->clear());
      require_ok(index->add("one", segment_of(1, 0, 100)));
    }
    CHECK(has_object(*index, 1, 0, 17));
  }
  SECTION("while it is open") {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    ruin(directory / "index-3/db", extension);
    if (!index->add("two", segment_of(2, 5000, 100))) {
      require_ok(index->retreat(temporary.path(), Error(ErrorCode::corrupt, "damaged")));
      CHECK(index->segments().empty());
      require_ok(index->add("one", segment_of(1, 0, 100)));
      require_ok(index->add("two", segment_of(2, 5000, 100)));
    }
    CHECK(has_object(*index, 2, 5000, 17));
    if (index->locate(numbered_id(17))) CHECK(has_object(*index, 1, 0, 17));
  }
}

TEST_CASE("the resume log keeps what was recorded until it is cleared", "[object_index]") {
  const TempDir directory;
  const std::string odd("/with \0 and \xff", 14);
  {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    require_ok(index->record({{"/a", {1}}, {"/b", {}}, {odd, {3}}}));
    require_ok(index->record({{"/a", {2, 2}}}));
  }
  const auto index = value_of(ObjectIndex::open(directory.path()));
  CHECK(value_of(index->recorded("/a")) == Bytes{2, 2});
  CHECK(value_of(index->recorded("/b")) == Bytes{});
  CHECK(value_of(index->recorded(odd)) == Bytes{3});
  CHECK(value_of(index->recorded("/c")) == std::nullopt);
  CHECK(value_of(index->recorded("")) == std::nullopt);

  require_ok(index->add("one", segment_of(1, 0, 10)));
  require_ok(index->clear_records(""));
  for (const std::string& path : {std::string("/a"), std::string("/b"), odd})
    CHECK(value_of(index->recorded(path)) == std::nullopt);
  CHECK(has_object(*index, 1, 0, 5));  // which is another matter
}

TEST_CASE("a damaged cache is emptied, whichever of its files is rubbish", "[object_index]") {
  const std::string extension =
      GENERATE(as<std::string>(), "CURRENT", "MANIFEST", ".log", ".sst", "");  // the last: all of them
  INFO(extension);
  const TempDir directory;
  {
    const auto index = value_of(ObjectIndex::open(directory.path()));
    require_ok(index->add("one", segment_of(1, 0, 1000)));
  }
  ruin(directory / "index-3/db", extension);
  const auto index = value_of(ObjectIndex::open(directory.path()));
  // What it claims to know, it must know; the rest is added again.
  if (!index->segments().contains("one")) require_ok(index->add("one", segment_of(1, 0, 1000)));
  CHECK(has_object(*index, 1, 0, 17));
  CHECK(has_object(*index, 1, 0, 999));
}

TEST_CASE("a cache with a database of someone else is emptied", "[object_index]") {
  const TempDir directory;
  std::filesystem::create_directories(directory / "index-3/db");
  std::ofstream(directory / "index-3/db/CURRENT") << "MANIFEST-000099\n";
  const auto index = value_of(ObjectIndex::open(directory.path()));
  require_ok(index->add("one", segment_of(1, 0, 10)));
  CHECK(has_object(*index, 1, 0, 5));
}

TEST_CASE("a cache directory that cannot be made is an error, not a crash", "[object_index]") {
  const TempDir directory;
  std::ofstream(directory / "file") << "x";
  CHECK_FALSE(ObjectIndex::open(directory / "file"));
}

TEST_CASE("a temporary index that can have no directory is in memory", "[object_index]") {
  const TempDir directory;
  for (const std::string& parent : {directory / "missing", std::string()}) {
    const auto index = value_of(ObjectIndex::open_temporary(parent));
    require_ok(index->add("one", segment_of(1, 0, 1000)));
    require_ok(index->add("two", segment_of(2, 5000, 1000)));
    CHECK(has_object(*index, 1, 0, 17));
    CHECK(has_object(*index, 2, 5000, 999));
    require_ok(index->clear());
    CHECK_FALSE(value_of(index->locate(numbered_id(17))).has_value());
    require_ok(index->add("one", segment_of(1, 0, 1000)));
    CHECK(has_object(*index, 1, 0, 17));
    // There is no further place to go to.
    CHECK(code_of(index->retreat(directory.path(), Error(ErrorCode::no_space, "full"))) ==
          ErrorCode::no_space);
  }
  CHECK(entries_in(directory.path()) == 0);
}

TEST_CASE("an index whose cache is deleted fails, retreats, and can be filled again", "[object_index]") {
  const TempDir directory, temporary;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  require_ok(index->set_clean(true));
  std::filesystem::remove_all(directory / "cache");
  const auto failed = index->add("two", segment_of(2, 5000, 100));
  REQUIRE_FALSE(failed);
  const bool has_temporary = GENERATE(true, false);
  require_ok(index->retreat(has_temporary ? temporary.path() : temporary / "missing", failed.error()));
  CHECK(entries_in(temporary.path()) == (has_temporary ? 1 : 0));
  CHECK(index->segments().empty());
  CHECK_FALSE(index->is_clean());
  CHECK_FALSE(index->has_pack(numbered_id(1'000'001)));
  require_ok(index->add("two", segment_of(2, 5000, 100)));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  CHECK(has_object(*index, 1, 0, 17));
  CHECK(has_object(*index, 2, 5000, 17));
}

TEST_CASE("a cache that was given up is not taken for true later", "[object_index]") {
  const TempDir directory, temporary;
  {
    const auto index = value_of(ObjectIndex::open(directory / "cache"));
    require_ok(index->add("one", segment_of(1, 0, 100)));
    require_ok(index->set_clean(true));
    require_ok(index->retreat(temporary.path(), Error(ErrorCode::io, "the mark cannot be taken away")));
  }
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  CHECK_FALSE(index->is_clean());
  CHECK(index->segments().empty());
}

TEST_CASE("who gives up a cache that was deleted does not touch the one made in its place",
          "[object_index]") {
  const TempDir directory, temporary;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  std::filesystem::remove_all(directory / "cache");
  std::filesystem::create_directories(directory / "cache/index-3/db");
  std::ofstream(directory / "cache/index-3/lock") << "";
  std::ofstream(directory / "cache/index-3/db/CURRENT") << "of another process";
  require_ok(index->retreat(temporary.path(), Error(ErrorCode::io, "deleted")));
  CHECK(std::filesystem::exists(directory / "cache/index-3/db/CURRENT"));
}

TEST_CASE("a cache that cannot be emptied says so", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  // What nobody can remove: for root, a file with the mark for that; for others, one in a closed folder.
  const std::string folder = directory / "cache/index-3/db/stuck";
  std::filesystem::create_directory(folder);
  const Fd file(::open((folder + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  int flags = FS_IMMUTABLE_FL;
  ::ioctl(file.get(), FS_IOC_SETFLAGS, &flags);
  ::chmod(folder.c_str(), 0500);
  const bool stuck = ::unlink((folder + "/file").c_str()) != 0;
  if (!stuck) WARN("skipped: this file system lets root remove everything");
  if (stuck) CHECK_FALSE(index->clear());
  ::chmod(folder.c_str(), 0700);
  flags = 0;
  ::ioctl(file.get(), FS_IOC_SETFLAGS, &flags);
  require_ok(index->clear());
  CHECK(index->segments().empty());
}

TEST_CASE("an index that cannot be made anew gives errors, not a crash", "[object_index]") {
  const TempDir directory;
  const auto index = value_of(ObjectIndex::open(directory / "cache"));
  require_ok(index->add("one", segment_of(1, 0, 100)));
  std::filesystem::remove_all(directory / "cache");
  std::ofstream(directory / "cache") << "in the way";
  CHECK_FALSE(index->clear());
  CHECK_FALSE(index->locate(numbered_id(1)));
  CHECK_FALSE(index->add("one", segment_of(1, 0, 100)));
  CHECK_FALSE(index->set_clean(false));
  CHECK_FALSE(index->is_clean());
  CHECK(index->segments().empty());
  CHECK_FALSE(index->has_pack(numbered_id(1'000'001)));
  require_ok(index->record({{"/a", {1}}}));  // only a hint
  CHECK_FALSE(index->recorded("/a"));
  require_ok(index->clear_records(""));
  std::filesystem::remove(directory / "cache");
  std::filesystem::create_directories(directory / "cache/index-3");
  require_ok(index->clear());
  require_ok(index->add("one", segment_of(1, 0, 100)));
  CHECK(has_object(*index, 1, 0, 17));
}

TEST_CASE("temporary indexes of dead processes are swept, and nothing else", "[object_index]") {
  const TempDir directory;
  const auto make = [&](const std::string& name, bool with_lock) {
    std::filesystem::create_directories(directory / (name + "/db"));
    if (with_lock) std::ofstream(directory / (name + "/lock")) << "";
  };
  make("kin-index-dead00", true);
  make("kin-index-mine", false);
  make("kin-backup", true);
  std::filesystem::create_directory_symlink(directory / "kin-backup", directory / "kin-index-link");
  const auto living = value_of(ObjectIndex::open_temporary(directory.path()));
  const auto another = value_of(ObjectIndex::open_temporary(directory.path()));
  CHECK_FALSE(std::filesystem::exists(directory / "kin-index-dead00"));
  CHECK(std::filesystem::exists(directory / "kin-index-mine/db"));
  CHECK(std::filesystem::exists(directory / "kin-backup/db"));
  CHECK(entries_in(directory.path()) == 5);
  require_ok(living->add("one", segment_of(1, 0, 10)));  // undisturbed
}

TEST_CASE("a cache is removed only when nobody uses it", "[object_index]") {
  const TempDir directory;
  {
    const auto index = value_of(ObjectIndex::open(directory / "cache"));
    CHECK_FALSE(value_of(remove_cache(directory / "cache")));
    require_ok(index->add("one", segment_of(1, 0, 10)));  // undisturbed
    CHECK(has_object(*index, 1, 0, 5));
  }
  CHECK(value_of(remove_cache(directory / "cache")));
  CHECK_FALSE(std::filesystem::exists(directory / "cache"));
  CHECK(value_of(ObjectIndex::open(directory / "cache"))->segments().empty());
}

TEST_CASE("caches that are removed while others open them cost nobody more than the cache",
          "[object_index]") {
  const TempDir directory;
  std::atomic<bool> stop = false;
  std::thread remover([&] {
    while (!stop) static_cast<void>(remove_cache(directory / "cache"));
  });
  std::vector<std::string> failures;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const auto index = ObjectIndex::open(directory / "cache");
    if (!index && index.error().code() != ErrorCode::busy) failures.push_back(index.error().message());
    if (!index) continue;
    if (const auto added = (*index)->add("one", segment_of(1, 0, 10)); !added)
      failures.push_back(added.error().message());
  }
  stop = true;
  remover.join();
  CHECK(failures == std::vector<std::string>{});
}

TEST_CASE("many threads look up while segments are added", "[object_index]") {
  const TempDir directory;
  const bool was_only_asked = GENERATE(false, true);
  if (was_only_asked)
    require_ok(value_of(ObjectIndex::open(directory / "cache"))->add("0", segment_of(0, 0, 100)));
  if (was_only_asked) value_of(ObjectIndex::open(directory / "cache"));
  const auto index = was_only_asked ? value_of(ObjectIndex::open(directory / "cache"))
                                    : value_of(ObjectIndex::open_temporary(directory.path()));
  if (!was_only_asked) require_ok(index->add("0", segment_of(0, 0, 100)));
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      for (std::uint64_t n = 0; !stop; n = (n + 1) % 100)
        if (!has_object(*index, 0, 0, n)) ++wrong;
    });
  for (std::uint64_t i = 1; i <= 20; ++i)
    require_ok(index->add(std::to_string(i), segment_of(i, 1000 * i, 100)));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  for (std::uint64_t i = 1; i <= 20; ++i) CHECK(has_object(*index, i, 1000 * i, 50));
}

}  // namespace kin::store

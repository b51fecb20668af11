// What every Backend must do, run over all of them; then what only the local one and the faulty one do.
#include "store/backend.h"

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "store/local_backend.h"
#include "tests/support/expect.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/random_bytes.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kin::store {
namespace {

using testing::code_of;
using testing::error_of;
using testing::FaultyDisk;
using testing::on_small_disk;
using testing::Operation;
using testing::random_bytes;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;

// A place for one repository, which any number of processes open: a memory backend is a place and a process
// in one.
class Place {
 public:
  explicit Place(const std::string& kind) : kind_(kind) {}

  std::unique_ptr<Backend> open() {
    if (kind_ == "local") return std::make_unique<LocalBackend>(directory_ / "repository");
    if (kind_ == "faulty") return disk_.open();
    return make_memory_backend();
  }
  bool shared() const { return kind_ != "memory"; }

 private:
  std::string kind_;
  TempDir directory_;
  FaultyDisk disk_;
};

#define FOR_EACH_BACKEND()                                                   \
  const std::string kind_of_backend = GENERATE("local", "memory", "faulty"); \
  INFO(kind_of_backend);                                                     \
  Place place(kind_of_backend);                                              \
  const std::unique_ptr<Backend> backend = place.open()

constexpr FileKind kListedKinds[] = {FileKind::key,       FileKind::pack, FileKind::index, FileKind::snapshot,
                                     FileKind::forgotten, FileKind::mark, FileKind::parity};

FileName name(FileKind kind, std::uint64_t number) {
  return {kind, hex(hash(as_bytes(std::to_string(number))))};
}
FileName pack(std::uint64_t number) { return name(FileKind::pack, number); }

std::vector<std::string> listed(Backend& backend, FileKind kind) {
  std::vector<std::string> out;
  for (const FileInfo& file : value_of(backend.list(kind))) out.push_back(file.name);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("where nothing was ever written, nothing is found and nothing listed", "[backend]") {
  FOR_EACH_BACKEND();
  CHECK(code_of(backend->get(config_name())) == ErrorCode::not_found);
  for (const FileKind kind : kListedKinds) {
    CHECK(value_of(backend->list(kind)).empty());
    CHECK(code_of(backend->get(name(kind, 1))) == ErrorCode::not_found);
    CHECK(code_of(backend->get_range(name(kind, 1), 0, 1)) == ErrorCode::not_found);
  }
  CHECK(value_of(backend->list(FileKind::config)).empty());
  require_ok(backend->sync());
}

TEST_CASE("a file can be read by who put it, before and after the sync", "[backend]") {
  FOR_EACH_BACKEND();
  const Bytes content = random_bytes(1, 100'000);
  for (const FileKind kind : kListedKinds) require_ok(backend->put(name(kind, 1), content));
  require_ok(backend->put(config_name(), content));
  for (int round = 0; round < 2; ++round) {
    for (const FileKind kind : kListedKinds) {
      CHECK(equal(value_of(backend->get(name(kind, 1))), content));
      CHECK(equal(value_of(backend->get_range(name(kind, 1), 500, 1000)),
                  ByteView(content).subspan(500, 1000)));
    }
    CHECK(equal(value_of(backend->get(config_name())), content));
    require_ok(backend->sync());
  }
}

TEST_CASE("a draft grows, can be read meanwhile, and becomes a file like others", "[backend]") {
  FOR_EACH_BACKEND();
  const Bytes content = random_bytes(1, 100'000);
  const std::unique_ptr<Draft> draft = value_of(backend->begin());
  for (std::size_t at = 0; at < content.size(); at += 30'000) {
    const std::size_t size = std::min<std::size_t>(30'000, content.size() - at);
    require_ok(draft->append(ByteView(content).subspan(at, size)));
    CHECK(equal(value_of(draft->get_range(0, at + size)), ByteView(content).first(at + size)));
    CHECK(equal(value_of(draft->get_range(at + 1, 10)), ByteView(content).subspan(at + 1, 10)));
    CHECK(code_of(draft->get_range(at, size + 1)) == ErrorCode::corrupt);
    CHECK(code_of(draft->get_range(std::numeric_limits<std::uint64_t>::max(), 2)) == ErrorCode::corrupt);
  }
  CHECK(listed(*backend, FileKind::pack).empty());
  require_ok(draft->put(pack(1)));
  for (int round = 0; round < 2; ++round) {
    CHECK(equal(value_of(backend->get(pack(1))), content));
    CHECK(listed(*backend, FileKind::pack) == std::vector{pack(1).name});
    if (place.shared()) CHECK(listed(*place.open(), FileKind::pack).size() == (round == 0 ? 0 : 1));
    require_ok(backend->sync());
  }
}

TEST_CASE("a draft that is not put is nowhere, whatever is synced", "[backend]") {
  FOR_EACH_BACKEND();
  {
    const std::unique_ptr<Draft> draft = value_of(backend->begin());
    require_ok(draft->append(random_bytes(1, 1000)));
    require_ok(backend->put(pack(2), as_bytes("two")));
    require_ok(backend->sync());
    CHECK(listed(*backend, FileKind::pack) == std::vector{pack(2).name});
  }
  require_ok(backend->sync());
  CHECK(listed(*backend, FileKind::pack) == std::vector{pack(2).name});
}

TEST_CASE("synced files are listed once, by kind, with their sizes; the config is not", "[backend]") {
  FOR_EACH_BACKEND();
  require_ok(backend->put(config_name(), as_bytes("config")));
  for (std::uint64_t i = 0; i < 20; ++i) require_ok(backend->put(pack(i), random_bytes(i, i)));
  require_ok(backend->put(name(FileKind::index, 100), as_bytes("index")));
  require_ok(backend->sync());
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 20; ++i) expected.push_back(pack(i).name);
  CHECK(listed(*backend, FileKind::pack) == sorted(expected));
  for (const FileInfo& file : value_of(backend->list(FileKind::pack)))
    for (std::uint64_t i = 0; i < 20; ++i)
      if (pack(i).name == file.name) CHECK(file.size == i);
  CHECK(listed(*backend, FileKind::index) == std::vector<std::string>{name(FileKind::index, 100).name});
  CHECK(listed(*backend, FileKind::snapshot).empty());
  CHECK(listed(*backend, FileKind::config).empty());
}

TEST_CASE("what a backend put, it lists before the sync, and once", "[backend]") {
  FOR_EACH_BACKEND();
  for (const FileKind kind : kListedKinds) {
    require_ok(backend->put(name(kind, 1), as_bytes("one")));
    require_ok(backend->sync());
    require_ok(backend->put(name(kind, 1), as_bytes("other")));
    require_ok(backend->put(name(kind, 2), as_bytes("two")));
    require_ok(backend->put({kind, "foreign"}, as_bytes("x")));
    CHECK(listed(*backend, kind) == sorted({name(kind, 1).name, name(kind, 2).name}));
    for (const FileInfo& file : value_of(backend->list(kind)))
      CHECK(file.size == (file.name == name(kind, 1).name ? 5 : 3));
    require_ok(backend->remove({kind, "foreign"}));
    require_ok(backend->remove(name(kind, 2)));
    CHECK(listed(*backend, kind) == std::vector<std::string>{name(kind, 1).name});
  }
}

TEST_CASE("files of the same name but another kind are other files", "[backend]") {
  FOR_EACH_BACKEND();
  for (const FileKind kind : kListedKinds) require_ok(backend->put(name(kind, 1), as_bytes(name_of(kind))));
  require_ok(backend->sync());
  for (const FileKind kind : kListedKinds)
    CHECK(as_text(value_of(backend->get(name(kind, 1)))) == name_of(kind));
}

TEST_CASE("files may be empty, or large", "[backend]") {
  FOR_EACH_BACKEND();
  const Bytes large = random_bytes(2, 20 << 20);
  require_ok(backend->put(pack(1), {}));
  require_ok(backend->put(pack(2), large));
  require_ok(backend->sync());
  CHECK(value_of(backend->get(pack(1))).empty());
  CHECK(value_of(backend->get_range(pack(1), 0, 0)).empty());
  CHECK(equal(value_of(backend->get(pack(2))), large));
}

TEST_CASE("a range is exactly what was asked for, and beyond the end it is corrupt", "[backend]") {
  FOR_EACH_BACKEND();
  const Bytes content = random_bytes(3, 1000);
  require_ok(backend->put(pack(1), content));
  const bool synced = GENERATE(false, true);
  if (synced) require_ok(backend->sync());
  CHECK(equal(value_of(backend->get_range(pack(1), 0, 1000)), content));
  CHECK(equal(value_of(backend->get_range(pack(1), 999, 1)), ByteView(content).last(1)));
  CHECK(value_of(backend->get_range(pack(1), 1000, 0)).empty());
  CHECK(code_of(backend->get_range(pack(1), 0, 1001)) == ErrorCode::corrupt);
  CHECK(code_of(backend->get_range(pack(1), 999, 2)) == ErrorCode::corrupt);
  CHECK(code_of(backend->get_range(pack(1), 1000, 1)) == ErrorCode::corrupt);
  CHECK(code_of(backend->get_range(pack(1), 5000, 1)) == ErrorCode::corrupt);
  CHECK_THAT(error_of(backend->get_range(pack(1), 999, 2)).message(), Catch::Contains(pack(1).text()));
}

TEST_CASE("an offset that no file can have is corrupt as well", "[backend]") {
  FOR_EACH_BACKEND();
  require_ok(backend->put(pack(1), random_bytes(3, 1000)));
  require_ok(backend->sync());
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {std::uint64_t{1} << 40, kMost / 2, kMost / 2 + 1, kMost - 1, kMost})
    CHECK(code_of(backend->get_range(pack(1), offset, 2)) == ErrorCode::corrupt);
}

TEST_CASE("putting under a name that is taken replaces what is there, which heals a damaged file",
          "[backend]") {
  FOR_EACH_BACKEND();
  const bool synced = GENERATE(false, true);
  for (const FileName& file : {pack(1), config_name()}) {
    require_ok(backend->put(file, as_bytes("damaged, and longer")));
    if (synced) require_ok(backend->sync());
    require_ok(backend->put(file, as_bytes("sound")));
    CHECK(as_text(value_of(backend->get(file))) == "sound");
    require_ok(backend->sync());
    CHECK(as_text(value_of(backend->get(file))) == "sound");
  }
  CHECK(listed(*backend, FileKind::pack).size() == 1);
}

TEST_CASE("until the sync, others see the file that is to be replaced", "[backend]") {
  FOR_EACH_BACKEND();
  if (!place.shared()) return;
  require_ok(backend->put(config_name(), as_bytes("old")));
  require_ok(backend->sync());
  require_ok(backend->put(config_name(), as_bytes("new")));
  const std::unique_ptr<Backend> other = place.open();
  CHECK(as_text(value_of(other->get(config_name()))) == "old");
  require_ok(backend->sync());
  CHECK(as_text(value_of(other->get(config_name()))) == "new");
}

TEST_CASE("a removed file is gone, and its name can be used again", "[backend]") {
  FOR_EACH_BACKEND();
  for (const FileKind kind : kListedKinds) {
    require_ok(backend->put(name(kind, 1), as_bytes("one")));
    require_ok(backend->put(name(kind, 2), as_bytes("two")));
  }
  require_ok(backend->sync());
  for (const FileKind kind : kListedKinds) {
    require_ok(backend->remove(name(kind, 1)));
    CHECK(code_of(backend->get(name(kind, 1))) == ErrorCode::not_found);
    CHECK(listed(*backend, kind) == std::vector<std::string>{name(kind, 2).name});
    require_ok(backend->put(name(kind, 1), as_bytes("again")));
    require_ok(backend->sync());
    CHECK(as_text(value_of(backend->get(name(kind, 1)))) == "again");
  }
}

TEST_CASE("removing what is not there is no error", "[backend]") {
  FOR_EACH_BACKEND();
  const bool used = GENERATE(false, true);
  if (used) {
    require_ok(backend->put(pack(1), as_bytes("one")));
    require_ok(backend->sync());
  }
  for (const FileKind kind : kListedKinds) {
    const auto removed = backend->remove(name(kind, 2));
    INFO(name_of(kind) << (used ? " in a repository" : " where nothing was ever written"));
    INFO((removed ? "" : removed.error().message()));
    CHECK(removed.has_value());
  }
}

TEST_CASE("a file that is removed before its sync is gone too", "[backend]") {
  FOR_EACH_BACKEND();
  require_ok(backend->put(name(FileKind::snapshot, 1), as_bytes("one")));
  require_ok(backend->remove(name(FileKind::snapshot, 1)));
  CHECK(code_of(backend->get(name(FileKind::snapshot, 1))) == ErrorCode::not_found);
  require_ok(backend->sync());
  CHECK(code_of(backend->get(name(FileKind::snapshot, 1))) == ErrorCode::not_found);
  CHECK(listed(*backend, FileKind::snapshot).empty());
}

TEST_CASE("what is not synced is invisible to others, and what is synced is not", "[backend]") {
  FOR_EACH_BACKEND();
  if (!place.shared()) return;
  require_ok(backend->put(config_name(), as_bytes("config")));
  require_ok(backend->put(pack(1), as_bytes("one")));
  const std::unique_ptr<Backend> other = place.open();
  CHECK(code_of(other->get(config_name())) == ErrorCode::not_found);
  CHECK(code_of(other->get(pack(1))) == ErrorCode::not_found);
  CHECK(code_of(other->get_range(pack(1), 0, 1)) == ErrorCode::not_found);
  CHECK(listed(*other, FileKind::pack).empty());

  require_ok(backend->sync());
  CHECK(as_text(value_of(other->get(config_name()))) == "config");
  CHECK(as_text(value_of(other->get(pack(1)))) == "one");
  CHECK(listed(*other, FileKind::pack) == std::vector<std::string>{pack(1).name});

  require_ok(other->remove(pack(1)));
  CHECK(code_of(backend->get(pack(1))) == ErrorCode::not_found);
}

TEST_CASE("what is put durably is there for others without a sync", "[backend]") {
  FOR_EACH_BACKEND();
  if (!place.shared()) return;
  require_ok(backend->put_durably(pack(1), as_bytes("one")));
  const std::unique_ptr<Backend> other = place.open();
  CHECK(as_text(value_of(other->get(pack(1)))) == "one");
  CHECK(as_text(value_of(backend->get(pack(1)))) == "one");
  require_ok(other->put_durably(pack(1), as_bytes("two")));
  CHECK(as_text(value_of(backend->get(pack(1)))) == "two");
  require_ok(backend->sync());
  CHECK(as_text(value_of(backend->get(pack(1)))) == "two");
}

TEST_CASE("what is not synced goes away with its backend", "[backend]") {
  FOR_EACH_BACKEND();
  if (!place.shared()) return;
  {
    const std::unique_ptr<Backend> other = place.open();
    require_ok(other->put(pack(1), as_bytes("synced")));
    require_ok(other->sync());
    require_ok(other->put(pack(2), as_bytes("not synced")));
  }
  CHECK(listed(*backend, FileKind::pack) == std::vector<std::string>{pack(1).name});
  CHECK(code_of(backend->get(pack(2))) == ErrorCode::not_found);
}

TEST_CASE("two processes may put the same file", "[backend]") {
  FOR_EACH_BACKEND();
  if (!place.shared()) return;
  const std::unique_ptr<Backend> other = place.open();
  require_ok(backend->put(pack(1), as_bytes("same")));
  require_ok(other->put(pack(1), as_bytes("same")));
  require_ok(other->sync());
  require_ok(backend->sync());
  CHECK(as_text(value_of(backend->get(pack(1)))) == "same");
  CHECK(listed(*other, FileKind::pack).size() == 1);
}

TEST_CASE("many threads put, sync, read and list at once", "[backend]") {
  FOR_EACH_BACKEND();
  constexpr std::uint64_t kThreads = 4, kFiles = 30;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kFiles; ++i) {
        const FileName file = pack(thread * kFiles + i);
        const Bytes content = random_bytes(i, 2000);
        const bool put = backend->put(file, content).has_value();
        const auto early = backend->get(file);
        const bool synced = i % 10 != 9 || backend->sync().has_value();
        const auto late = backend->get_range(file, 100, 100);
        const bool can_list = i % 10 != 5 || backend->list(FileKind::pack).has_value();
        if (!put || !synced || !can_list || !early || !equal(*early, content) || !late ||
            !equal(*late, ByteView(content).subspan(100, 100)))
          ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  require_ok(backend->sync());
  CHECK(listed(*backend, FileKind::pack).size() == kThreads * kFiles);
}

TEST_CASE("names are 64 hexadecimal digits in lower case", "[backend]") {
  const std::string good = pack(1).name;
  CHECK(is_file_name(good));
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", "g" + good.substr(1), "A" + good.substr(1),
        "." + good.substr(1), good.substr(0, 60) + ".tmp", std::string("../") + good.substr(3)}) {
    INFO(bad);
    CHECK_FALSE(is_file_name(bad));
  }
}

TEST_CASE("a location is a path, and an address of another kind is refused", "[backend]") {
  CHECK(value_of(open_backend("/some/path"))->location() == "/some/path");
  CHECK(value_of(open_backend("relative"))->location() == "relative");
  CHECK(value_of(open_backend("/odd/a://b"))->location() == "/odd/a://b");
  CHECK(code_of(open_backend("s3://bucket/x")) == ErrorCode::unsupported);
  CHECK(code_of(open_backend("sftp://host/x")) == ErrorCode::unsupported);
}

TEST_CASE("messages name a file by its kind and the start of its name", "[backend]") {
  CHECK(pack(1).text() == "pack " + pack(1).name.substr(0, 8));
  CHECK(config_name().text() == "config");
  CHECK(name(FileKind::index, 1).text() == "index segment " + pack(1).name.substr(0, 8));
}

TEST_CASE("a local backend touches nothing until the first put", "[backend][local]") {
  const TempDir directory;
  const std::string path = directory / "repository";
  {
    LocalBackend backend(path);
    CHECK_FALSE(backend.get(config_name()));
    CHECK(value_of(backend.list(FileKind::pack)).empty());
    require_ok(backend.sync());
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a local repository is laid out as documented, for its owner alone", "[backend][local]") {
  const TempDir directory;
  const std::string path = directory / "repository";
  LocalBackend backend(path);
  require_ok(backend.put(config_name(), as_bytes("config")));
  for (const FileKind kind : kListedKinds) require_ok(backend.put(name(kind, 1), as_bytes("x")));
  require_ok(backend.sync());
  const std::string file = pack(1).name;
  for (const std::string& expected :
       {std::string("config"), "keys/" + file, "packs/" + file.substr(0, 2) + "/" + file, "index/" + file,
        "snapshots/" + file}) {
    struct stat info {};
    INFO(expected);
    REQUIRE(::stat((path + "/" + expected).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }
  for (const char* folder : {"", "keys", "packs", "index", "snapshots", "tmp"}) {
    struct stat info {};
    REQUIRE(::stat((path + "/" + folder).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
  }
}

TEST_CASE("a local draft leaves no file behind when it is given up", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  const auto files = [&] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "tmp"))
      if (entry.is_regular_file()) ++count;
    return count;
  };
  {
    const std::unique_ptr<Draft> draft = value_of(backend.begin());
    require_ok(draft->append(as_bytes("one")));
    CHECK(files() == 1);
  }
  CHECK(files() == 0);
  const std::unique_ptr<Draft> draft = value_of(backend.begin());
  require_ok(draft->append(as_bytes("two")));
  require_ok(draft->put(pack(1)));
  require_ok(backend.sync());
  CHECK(files() == 0);
}

TEST_CASE("a local repository keeps a reserve for when the disk is full", "[backend][local]") {
  const TempDir directory;
  require_ok(LocalBackend(directory.path()).put(pack(1), as_bytes("x")));
  struct stat info {};
  REQUIRE(::stat((directory / "reserve").c_str(), &info) == 0);
  CHECK(info.st_size == 64 << 10);
  CHECK(info.st_blocks * 512 >= 64 << 10);  // it does take the room
  // The larger one of an earlier version is cut down.
  write_file(directory / "reserve", std::string(8 << 20, 'x'));
  require_ok(LocalBackend(directory.path()).put(pack(3), as_bytes("x")));
  REQUIRE(::stat((directory / "reserve").c_str(), &info) == 0);
  CHECK(info.st_size == 64 << 10);
  CHECK(info.st_blocks * 512 < 1 << 20);
  ::unlink((directory / "reserve").c_str());
  require_ok(LocalBackend(directory.path()).put(pack(2), as_bytes("x")));
  CHECK(::stat((directory / "reserve").c_str(), &info) == 0);
}

TEST_CASE("on a full disk the reserve makes room for what is small and vital", "[backend][local]") {
  const std::optional<int> result = on_small_disk("size=12m", [](const std::string& path) {
    LocalBackend backend(path);
    if (!backend.put(pack(1), random_bytes(1, 3 << 20)) || !backend.sync()) return 1;
    // Fill it up. A pack does not get the reserve, and what of it was written goes away again.
    std::uint64_t number = 2;
    for (std::size_t size = 1 << 20; size >= 4096; size /= 2)
      while (backend.put(pack(number), random_bytes(number, size))) ++number;
    const auto refused = backend.put(pack(number), random_bytes(number, 1 << 20));
    if (code_of(refused) != ErrorCode::no_space) return 2;
    if (!std::filesystem::exists(path + "/reserve")) return 3;
    if (!backend.sync()) return 4;
    if (!backend.put(name(FileKind::index, 1), random_bytes(2, 20'000)) ||
        !backend.put(name(FileKind::snapshot, 1), random_bytes(3, 1000)))
      return 5;
    if (!backend.sync()) return 6;
    LocalBackend other(path);
    const auto index = other.get(name(FileKind::index, 1));
    if (!index || !equal(*index, random_bytes(2, 20'000)) || !other.get(name(FileKind::snapshot, 1)))
      return 7;
    // It is made again by the first writer that finds room.
    if (!other.remove(pack(1)) || std::filesystem::exists(path + "/reserve")) return 8;
    for (std::uint64_t i = 2; i < number; ++i)
      if (!other.remove(pack(i))) return 9;
    if (!LocalBackend(path).put(name(FileKind::snapshot, 2), as_bytes("x"))) return 10;
    return std::filesystem::exists(path + "/reserve") ? 0 : 11;
  });
  if (!result) WARN("skipped: this system does not let us mount a small disk");
  if (result) CHECK(*result == 0);
}

TEST_CASE("a file that comes while it is looked for is not there yet or whole, never damage",
          "[backend][local]") {
  const TempDir directory;
  LocalBackend writer(directory.path()), reader(directory.path());
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    while (!stop)
      if (!writer.put(pack(1), as_bytes("x")) || !writer.sync() || !writer.remove(pack(1))) break;
  });
  std::set<std::string> errors;
  for (int i = 0; i < 100'000; ++i) {
    const auto got = reader.get(pack(1));
    if (!got && got.error().code() != ErrorCode::not_found) errors.insert(got.error().message());
  }
  stop = true;
  writing.join();
  CHECK(errors == std::set<std::string>{});
}

TEST_CASE("what a crashed writer left in tmp is swept, and a living one's files are not",
          "[backend][local]") {
  const TempDir directory;
  LocalBackend living(directory.path());
  require_ok(living.put(pack(1), as_bytes("one")));
  // A process that is gone holds no lock on its folder.
  std::filesystem::create_directories(directory / "tmp/crashed");
  write_file(directory / "tmp/crashed/0", "half a pack");

  LocalBackend next(directory.path());
  require_ok(next.put(pack(2), as_bytes("two")));
  CHECK_FALSE(std::filesystem::exists(directory / "tmp/crashed"));
  require_ok(living.sync());
  require_ok(next.sync());
  CHECK(as_text(value_of(next.get(pack(1)))) == "one");
  CHECK(as_text(value_of(next.get(pack(2)))) == "two");
}

TEST_CASE("the sweeper follows no link out of tmp", "[backend][local]") {
  const TempDir directory, elsewhere;
  write_file(elsewhere / "precious", "x");
  std::filesystem::create_directories(directory / "tmp");
  std::filesystem::create_directory_symlink(elsewhere.path(), directory / "tmp/link");
  require_ok(LocalBackend(directory.path()).put(pack(1), as_bytes("x")));
  CHECK(std::filesystem::exists(elsewhere / "precious"));
}

TEST_CASE("files that were put and replaced, removed or synced take no room in tmp", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  for (int i = 0; i < 3; ++i) require_ok(backend.put(config_name(), as_bytes("config")));
  require_ok(backend.put(pack(1), as_bytes("x")));
  require_ok(backend.put(pack(2), as_bytes("x")));
  require_ok(backend.remove(pack(2)));
  const auto files_in_tmp = [&] {
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "tmp"))
      files += entry.is_regular_file();
    return files;
  };
  CHECK(files_in_tmp() == 2);
  require_ok(backend.sync());
  CHECK(files_in_tmp() == 0);
}

TEST_CASE("a backend that ends leaves nothing in tmp", "[backend][local]") {
  const TempDir directory;
  require_ok(LocalBackend(directory.path()).put(pack(1), as_bytes("x")));
  CHECK(std::filesystem::is_empty(directory / "tmp"));
}

TEST_CASE("writers that start at the same moment do not sweep each other's folders", "[backend][local]") {
  constexpr std::size_t kWriters = 4;
  std::vector<std::string> failures;
  for (int round = 0; round < 25 && failures.empty(); ++round) {
    const TempDir directory;
    std::atomic<std::size_t> ready = 0;
    std::vector<Result<void>> results(kWriters);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kWriters; ++i)
      threads.emplace_back([&, i] {
        LocalBackend backend(directory.path());
        ++ready;
        while (ready < kWriters) std::this_thread::yield();
        results[i] = backend.put(pack(i), as_bytes("x"));
        if (results[i]) results[i] = backend.sync();
      });
    for (std::thread& thread : threads) thread.join();
    for (const Result<void>& result : results)
      if (!result) failures.push_back(result.error().message());
  }
  CHECK(failures == std::vector<std::string>{});
}

TEST_CASE("foreign files in a local repository are left out and left alone", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  require_ok(backend.put(pack(1), as_bytes("x")));
  require_ok(backend.put(name(FileKind::snapshot, 1), as_bytes("x")));
  require_ok(backend.sync());
  const std::string good = name(FileKind::snapshot, 1).name;
  for (const std::string& foreign :
       {std::string("README"), std::string(".nfs0001"), good + ".tmp", good.substr(1), "A" + good.substr(1)})
    for (const char* folder : {"snapshots/", "keys/", "index/", "packs/", "packs/00/"}) {
      std::filesystem::create_directories(directory / "packs/00");
      write_file(directory / (folder + foreign), "foreign");
    }
  CHECK(listed(backend, FileKind::snapshot) == std::vector<std::string>{good});
  CHECK(listed(backend, FileKind::pack) == std::vector<std::string>{pack(1).name});
  CHECK(listed(backend, FileKind::key).empty());
  CHECK(listed(backend, FileKind::index).empty());
  require_ok(LocalBackend(directory.path()).put(pack(2), as_bytes("x")));
  CHECK(std::filesystem::exists(directory / "snapshots/README"));
}

TEST_CASE("whatever stands in a file's place is listed, and to read it is corrupt", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  const FileKind kind = GENERATE(from_range(std::begin(kListedKinds), std::end(kListedKinds)));
  for (std::uint64_t i = 0; i < 7; ++i) require_ok(backend.put(name(kind, i), as_bytes("x")));
  require_ok(backend.sync());
  const std::map<FileKind, std::string> folders{
      {FileKind::pack, "packs/"},          {FileKind::key, "keys/"},
      {FileKind::index, "index/"},         {FileKind::snapshot, "snapshots/"},
      {FileKind::forgotten, "forgotten/"}, {FileKind::mark, "marks/"},
      {FileKind::parity, "parity/"}};
  const std::string folder = directory / folders.at(kind);
  const auto path_of = [&](std::uint64_t i) {
    const std::string file = name(kind, i).name;
    return kind == FileKind::pack ? folder + file.substr(0, 2) + "/" + file : folder + file;
  };
  for (std::uint64_t i = 1; i < 7; ++i) std::filesystem::remove(path_of(i));
  std::filesystem::create_directory(path_of(1));
  REQUIRE(::mkfifo(path_of(2).c_str(), 0600) == 0);
  std::filesystem::create_symlink("nowhere", path_of(3));
  std::filesystem::create_symlink(path_of(4), path_of(4));
  std::filesystem::create_symlink("/dev/zero", path_of(5));
  REQUIRE(::mknod(path_of(6).c_str(), S_IFSOCK | 0600, 0) == 0);

  CHECK(listed(backend, kind).size() == 7);
  for (const FileInfo& file : value_of(backend.list(kind)))
    CHECK(file.size == (file.name == name(kind, 0).name ? 1 : 0));
  for (std::uint64_t i = 1; i < 7; ++i) {
    INFO(i);
    CHECK(code_of(backend.get(name(kind, i))) == ErrorCode::corrupt);
    CHECK(code_of(backend.get_range(name(kind, i), 0, 1)) == ErrorCode::corrupt);
    CHECK_THAT(error_of(backend.get(name(kind, i))).message(), Catch::Contains(name(kind, i).text()));
    require_ok(backend.remove(name(kind, i)));
  }
  CHECK(listed(backend, kind) == std::vector<std::string>{name(kind, 0).name});
}

TEST_CASE("a file in a folder's place is corrupt", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  std::filesystem::create_directory(directory / "packs");
  write_file(directory / "snapshots", "x");
  write_file(directory / ("packs/" + pack(1).name.substr(0, 2)), "x");
  for (const FileName& file : {pack(1), name(FileKind::snapshot, 1)}) {
    CHECK(code_of(backend.get(file)) == ErrorCode::corrupt);
    CHECK(code_of(backend.list(file.kind)) == ErrorCode::corrupt);
  }
}

TEST_CASE("a folder that goes away under a writer is a failure, not a name that was not found",
          "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  require_ok(backend.put(pack(1), as_bytes("x")));
  std::filesystem::remove_all(directory / "tmp");
  CHECK(code_of(backend.put(pack(2), as_bytes("x"))) == ErrorCode::io);
  CHECK(code_of(backend.sync()) == ErrorCode::io);
}

TEST_CASE("a place that is a file, not a directory, is an error", "[backend][local]") {
  const TempDir directory;
  write_file(directory / "file", "x");
  LocalBackend backend(directory / "file");
  CHECK_FALSE(backend.get(config_name()));
  CHECK_FALSE(backend.put(config_name(), as_bytes("x")));
}

TEST_CASE("a sync that failed can be tried again, and loses nothing", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  require_ok(backend.put(pack(1), as_bytes("one")));
  require_ok(backend.put(name(FileKind::snapshot, 1), as_bytes("snapshot")));
  // A file where the pack's folder should be: the pack cannot get its name.
  const std::string in_the_way = directory / ("packs/" + pack(1).name.substr(0, 2));
  write_file(in_the_way, "");
  CHECK_FALSE(backend.sync());
  CHECK(as_text(value_of(backend.get(pack(1)))) == "one");
  std::filesystem::remove(in_the_way);
  const auto again = backend.sync();
  INFO((again ? "" : again.error().message()));
  CHECK(again.has_value());
  LocalBackend other(directory.path());
  CHECK(other.get(pack(1)).has_value());
  CHECK(other.get(name(FileKind::snapshot, 1)).has_value());
}

TEST_CASE("what cannot be put durably hinders no sync", "[backend][local]") {
  const TempDir directory;
  LocalBackend backend(directory.path());
  require_ok(backend.put(pack(1), as_bytes("one")));
  // A folder that is not empty, in the file's place.
  const std::string in_the_way =
      fmt::format("{}/packs/{}/{}", directory.path(), pack(2).name.substr(0, 2), pack(2).name);
  std::filesystem::create_directories(in_the_way + "/x");
  CHECK_FALSE(backend.put_durably(pack(2), as_bytes("two")));
  CHECK_FALSE(LocalBackend(directory.path()).get(pack(1)));
  require_ok(backend.sync());
  CHECK(as_text(value_of(LocalBackend(directory.path()).get(pack(1)))) == "one");
  CHECK(code_of(backend.get(pack(2))) == ErrorCode::corrupt);
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "tmp"))
    left += entry.is_regular_file();
  CHECK(left == 0);
}

TEST_CASE("the faulty disk forgets what was not synced when it crashes", "[backend][faulty]") {
  FaultyDisk disk;
  const std::unique_ptr<Backend> before = disk.open();
  require_ok(before->put(pack(1), as_bytes("one")));
  require_ok(before->sync());
  require_ok(before->put(pack(2), as_bytes("two")));
  disk.crash();
  CHECK(code_of(before->get(pack(1))) == ErrorCode::io);
  CHECK(code_of(disk.open()->get(pack(1))) == ErrorCode::io);
  disk.restart();
  CHECK(code_of(before->get(pack(1))) == ErrorCode::io);  // that process is gone for good
  const std::unique_ptr<Backend> after = disk.open();
  CHECK(as_text(value_of(after->get(pack(1)))) == "one");
  CHECK(code_of(after->get(pack(2))) == ErrorCode::not_found);
}

TEST_CASE("the faulty disk crashes after the step that it was told, even within a sync",
          "[backend][faulty]") {
  for (std::uint64_t steps = 0; steps <= 8; ++steps) {
    FaultyDisk disk;
    disk.crash_after(steps);
    const std::unique_ptr<Backend> backend = disk.open();
    std::uint64_t succeeded = 0;
    for (std::uint64_t i = 0; i < 3; ++i) succeeded += backend->put(pack(i), as_bytes("x")).has_value();
    succeeded += backend->sync().has_value();
    succeeded += backend->remove(pack(0)).has_value();
    INFO(steps);
    // Three puts, three files made durable by one sync, one removal; the operation of the last step fails,
    // too.
    CHECK(disk.crashed() == (steps <= 7));
    CHECK(succeeded == (steps == 0 ? 0 : steps <= 3 ? steps - 1 : steps <= 6 ? 3 : steps == 7 ? 4 : 5));
    disk.restart();
    const std::size_t left = value_of(disk.open()->list(FileKind::pack)).size();
    CHECK(left == (steps <= 3 ? 0 : steps <= 6 ? steps - 3 : 2));
  }
}

TEST_CASE("the faulty disk fails the operation that it was told, once, and counts them all",
          "[backend][faulty]") {
  FaultyDisk disk;
  const std::unique_ptr<Backend> backend = disk.open();
  disk.fail(Operation::put, 2, ErrorCode::no_space);
  disk.fail(Operation::sync);
  disk.fail(Operation::get, 3);
  require_ok(backend->put(pack(1), as_bytes("one")));
  CHECK(code_of(backend->put(pack(2), as_bytes("two"))) == ErrorCode::no_space);
  require_ok(backend->put(pack(3), as_bytes("three")));
  CHECK(code_of(backend->sync()) == ErrorCode::io);
  CHECK(disk.files().empty());
  require_ok(backend->sync());
  CHECK(disk.files().size() == 2);
  CHECK(backend->get(pack(1)).has_value());
  CHECK(backend->get_range(pack(1), 0, 1).has_value());
  CHECK(code_of(backend->get(pack(1))) == ErrorCode::io);
  CHECK(backend->get(pack(1)).has_value());
  CHECK(disk.count(Operation::put) == 3);
  CHECK(disk.count(Operation::sync) == 2);
  CHECK(disk.count(Operation::get) == 4);
  CHECK(disk.steps() == 4);
}

TEST_CASE("the faulty disk is full at its quota and not before", "[backend][faulty]") {
  FaultyDisk disk;
  disk.set_quota(100);
  const std::unique_ptr<Backend> backend = disk.open();
  require_ok(backend->put(pack(1), Bytes(60)));
  require_ok(backend->sync());
  CHECK(code_of(backend->put(pack(2), Bytes(41))) == ErrorCode::no_space);
  require_ok(backend->put(pack(3), Bytes(40)));
  CHECK(disk.used_bytes() == 100);
  require_ok(backend->remove(pack(1)));
  require_ok(backend->put(pack(2), Bytes(41)));
  disk.lift_quota();
  require_ok(backend->put(pack(4), Bytes(1000)));
}

TEST_CASE("the faulty disk shows damage to readers until it is healed", "[backend][faulty]") {
  FaultyDisk disk;
  const std::unique_ptr<Backend> backend = disk.open();
  require_ok(backend->put(pack(1), as_bytes("abcdef")));
  require_ok(backend->sync());
  disk.flip(pack(1), 2, 0x20);
  CHECK(as_text(value_of(backend->get(pack(1)))) == "abCdef");
  CHECK(as_text(value_of(backend->get_range(pack(1), 1, 2))) == "bC");
  disk.cut(pack(1), 3);
  CHECK(as_text(value_of(backend->get(pack(1)))) == "abc");
  CHECK(code_of(backend->get_range(pack(1), 1, 3)) == ErrorCode::corrupt);
  CHECK(value_of(backend->list(FileKind::pack)).front().size == 3);
  disk.heal();
  CHECK(as_text(value_of(backend->get(pack(1)))) == "abcdef");
}

}  // namespace kin::store

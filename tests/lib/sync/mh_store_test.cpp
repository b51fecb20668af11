#include "lib/sync/mh_sequences.h"
#include "lib/sync/sync_store.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/separate_mount.h"
#include "tests/support/sync_folders.h"
#include "tests/support/temp_dir.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kin::sync {

int detect_mh(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mh(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mh_waiting(const std::string& root,
                                                   std::chrono::milliseconds lock_wait,
                                                   const MhProfile& profile = {});

namespace mh_test {
namespace {

using testing::code_of;
using testing::error_of;
using testing::folders_of;
using testing::require_ok;
using testing::value_of;
using Kind = StoreChange::Kind;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

void write(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::string& path) {
  return std::string(as_text(value_of(read_file(path, 64 << 20))));
}

struct Scanned {
  std::vector<Entry> entries;
  std::vector<std::string> skipped;

  const Entry& at(const std::string& local) const {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.local == local; });
    REQUIRE(found != entries.end());
    return *found;
  }
  Words locals() const {
    Words out;
    for (const Entry& entry : entries) out.push_back(entry.local);
    return out;
  }
};

Scanned scan(SyncStore& store, const std::string& folder) {
  Scanned out;
  require_ok(store.scan(
      folder,
      [&](Entry entry) -> Result<void> {
        out.entries.push_back(std::move(entry));
        return {};
      },
      [&](const std::string& local, const Error&) { out.skipped.push_back(local); }));
  return out;
}

std::string content_of(SyncStore& store, const std::string& folder, const Entry& entry) {
  const auto source = value_of(store.read(folder, entry));
  Bytes bytes(1 << 20);
  bytes.resize(value_of(source->read(bytes)));
  return std::string(as_text(bytes));
}

StoreChange add(const std::string& folder, std::string_view content, std::uint8_t flags = kSeen,
                Words words = {}) {
  StoreChange change;
  change.item.folder = folder;
  change.item.flags = flags;
  change.item.words = std::move(words);
  change.item.time = {1'000'000'000, 123'456'789};
  change.content.assign(content.begin(), content.end());
  change.has_content = true;
  return change;
}

StoreChange change_of(Kind kind, const std::string& folder, const Entry& entry) {
  StoreChange change;
  change.kind = kind;
  change.folder = folder;
  change.entry = entry;
  change.item = entry.item;
  return change;
}

StoreChange directory(Kind kind, const std::string& name) {
  StoreChange change;
  change.kind = kind;
  change.item.type = ItemType::directory;
  change.item.name = name;
  change.entry.item = change.item;
  return change;
}

Result<Entry> apply_one(SyncStore& store, StoreChange change) {
  std::vector<StoreChange> changes;
  changes.push_back(std::move(change));
  auto answers = store.apply(std::move(changes));
  REQUIRE(answers.size() == 1);
  return std::move(answers[0]);
}

// A store of its own for each test, in a directory that has nothing.
struct Store {
  explicit Store(int wait_ms = 5000, const MhProfile& profile = {})
      : store(value_of(open_mh_waiting(root, std::chrono::milliseconds(wait_ms), profile))) {}

  testing::TempDir directory;
  std::string root = directory / "Mail";
  std::unique_ptr<SyncStore> store;
};

// Another program that has a file locked, until the end of the scope. A process of its own: our locks are
// told apart by descriptor, and those of other programs by process.
struct ForeignLock {
  explicit ForeignLock(const std::string& path, bool is_flock = false) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    child = ::fork();
    if (child == 0) {
      struct flock lock {};
      lock.l_type = F_WRLCK;
      const int fd = ::open(path.c_str(), O_RDWR);
      const int failed = is_flock ? ::flock(fd, LOCK_EX | LOCK_NB) : ::fcntl(fd, F_SETLK, &lock);
      const char is_locked = failed == 0 ? 'y' : 'n';
      if (::write(ready[1], &is_locked, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char answer = 0;
    const ssize_t got = ::read(ready[0], &answer, 1);
    ::close(ready[0]);
    ::close(ready[1]);
    REQUIRE(got == 1);
    REQUIRE(answer == 'y');
  }
  ~ForeignLock() {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  pid_t child = 0;
};

}  // namespace

TEST_CASE("all flag sets and words of MH messages come back from a scan", "[sync]") {
  Store mh;
  std::vector<StoreChange> changes;
  for (std::uint8_t flags = 0; flags <= kAllFlags; ++flags)
    changes.push_back(add("inbox", "message " + std::to_string(flags), flags,
                          flags % 2 == 0 ? Words{} : Words{"Junk", "todo"}));
  const auto answers = mh.store->apply(changes);
  REQUIRE(answers.size() == changes.size());
  CHECK(folders_of(*mh.store) == Words{"inbox"});
  const Scanned scanned = scan(*mh.store, "inbox");
  CHECK(scanned.skipped.empty());
  REQUIRE(scanned.entries.size() == changes.size());
  const Words locals = scanned.locals();
  CHECK(std::is_sorted(locals.begin(), locals.end()));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO(i);
    const Entry answer = value_of(answers[i]);
    const Entry& entry = scanned.at(answer.local);
    CHECK(answer.local == std::to_string(i + 1));
    CHECK(entry.fingerprint == answer.fingerprint);
    for (const Item& item : {entry.item, answer.item}) {
      CHECK(item.flags == i);
      CHECK(item.words == changes[i].item.words);
      CHECK(item.time == Timestamp{1'000'000'000, 123'456'789});
      CHECK(item.size == changes[i].content.size());
      CHECK(item.folder == "inbox");
      CHECK(item.name.empty());
    }
    CHECK(content_of(*mh.store, "inbox", entry) == as_text(changes[i].content));
  }
  // No temporary file is left, and no one else may read the mail.
  CHECK(testing::entries_in(mh.root + "/inbox") == changes.size() + 1);
  CHECK((fs::status(mh.root).permissions() & fs::perms::all) == fs::perms::owner_all);
  struct stat info {};
  REQUIRE(::stat((mh.root + "/inbox/1").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(info.st_nlink == 1);
}

TEST_CASE("an update changes sequences to exactly what is asked for, and not the file", "[sync]") {
  Store mh;
  for (std::uint8_t flags = 0; flags <= kAllFlags; ++flags) {
    INFO(int(flags));
    Entry entry = value_of(apply_one(*mh.store, add("inbox", "a", kAllFlags & ~flags, {"old"})));
    StoreChange change = change_of(Kind::update, "inbox", entry);
    change.item.flags = flags;
    change.item.words = {"new1"};
    const Entry updated = value_of(apply_one(*mh.store, change));
    CHECK(updated.fingerprint == entry.fingerprint);
    CHECK(updated.item.flags == flags);
    CHECK(updated.item.words == Words{"new1"});
    const auto sequences = MhSequences::parse(read_text(mh.root + "/inbox/.mh_sequences"));
    CHECK(sequences.marks_of(mh_number(entry.local)) == MhMarks{flags, {"new1"}});
  }
  CHECK(read_text(mh.root + "/inbox/.mh_sequences").find("old") == std::string::npos);
}

TEST_CASE("words that cannot name a sequence are left out, and the answer says so", "[sync]") {
  Store mh;
  const std::string longest(64, 'a'), too_long(65, 'b');
  const Words words = {"$Forwarded", "9lives", "a b",     longest,   too_long, "cur",
                       "new",        "ok1",    "replied", "un:seen", "unseen"};
  const Entry entry = value_of(apply_one(*mh.store, add("inbox", "a", kSeen, words)));
  CHECK(entry.item.words == Words{longest, "ok1"});
  CHECK(entry.item.flags == kSeen);  // no word becomes a flag
  CHECK(read_text(mh.root + "/inbox/.mh_sequences") == longest + ": 1\nok1: 1\n");
}

TEST_CASE("sequences are parsed liberally, and ranges without end cost nothing", "[sync]") {
  const auto sequences = MhSequences::parse(
      "unseen:1 3-5\t9\r\n"
      "todo : 2\n 4-4000000000\n\t 7\n"
      "cur: 3\n"
      "todo: 1\n"
      "\n"
      "bad: -3 5- 9-7 x 0 99999999999999999999 6\n"
      "my-own: 3\n"
      "no colon here\n"
      "all: 1-10\n"
      "replied: 00000000000000000008");
  CHECK(sequences.marks_of(1) == MhMarks{0, {"todo"}});
  CHECK(sequences.marks_of(2) == MhMarks{kSeen, {"todo"}});
  CHECK(sequences.marks_of(3) == MhMarks{0, {}});
  CHECK(sequences.marks_of(6) == MhMarks{kSeen, {"bad", "todo"}});
  CHECK(sequences.marks_of(8) == MhMarks{kSeen | kReplied, {"todo"}});
  CHECK(sequences.marks_of(9) == MhMarks{0, {"todo"}});
  CHECK(sequences.marks_of(kMostMhNumber) == MhMarks{kSeen, {"todo"}});

  // Lines that a change does not touch stay as they were.
  auto changed = sequences;
  changed.change({{9, MhMarks{kSeen, {"todo"}}}, {3, std::nullopt}, {5000, MhMarks{kSeen, {}}}});
  CHECK(changed.text() ==
        "unseen: 1 4-5\n"
        "todo: 1-2 4-4999 5001-2147483647\n"
        "bad: -3 5- 9-7 x 0 99999999999999999999 6\n"
        "no colon here\n"
        "all: 1-2 4-10\n"
        "replied: 00000000000000000008\n");

  std::string hostile;
  for (int i = 0; i < 100'000; ++i) hostile += "s" + std::to_string(i) + ": 1-4000000000\n";
  auto many = MhSequences::parse(hostile);
  CHECK(many.marks_of(17).words.size() == kMostMhSequences);
  CHECK(many.text() == hostile);
}

TEST_CASE("a change of sequences is what a set of numbers would do", "[sync]") {
  testing::Random random(1);
  MhSequences sequences;
  std::map<std::uint32_t, MhMarks> expected;
  const Words names = {"a", "b", "c"};
  for (int round = 0; round < 300; ++round) {
    MhSequences::Changes changes;
    for (int i = 0; i < 5; ++i) {
      const auto number = static_cast<std::uint32_t>(1 + random.below(40));
      MhMarks marks{static_cast<std::uint8_t>(random.below(64)), {}};
      for (const std::string& name : names)
        if (random.below(2) == 0) marks.words.push_back(name);
      if (random.below(4) == 0)
        changes.insert_or_assign(number, std::nullopt), expected.erase(number);
      else
        changes.insert_or_assign(number, marks), expected.insert_or_assign(number, marks);
    }
    sequences.change(changes);
    const auto again = MhSequences::parse(sequences.text());
    for (std::uint32_t number = 1; number <= 41; ++number) {
      const MhMarks wanted = expected.contains(number) ? expected[number] : MhMarks{};
      if (!(again.marks_of(number) == wanted)) FAIL("round " << round << " number " << number);
    }
  }
  CHECK(sequences.marks_of(1000) == MhMarks{});
}

TEST_CASE("sequences that are cut or have a byte flipped are parsed without harm", "[sync]") {
  const std::string good = "unseen: 1 3-5 9\ntodo: 2\n 4-4000000000\ncur: 3\nmy-own: 1-2\n\xff\x00:\n";
  const auto try_one = [](const std::string& text) {
    auto sequences = MhSequences::parse(text);
    sequences.change({{3, std::nullopt}, {4, MhMarks{0, {"todo"}}}});
    const auto again = MhSequences::parse(sequences.text());
    CHECK(again.marks_of(4) == MhMarks{0, {"todo"}});
    CHECK(again.marks_of(3) == MhMarks{});
    CHECK(again.text() == sequences.text());
  };
  for (std::size_t size = 0; size <= good.size(); ++size) try_one(good.substr(0, size));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try_one(flipped);
    }
}

TEST_CASE("hostile .mh_sequences files do no harm to a scan or a change", "[sync]") {
  Store mh;
  write(mh.root + "/inbox/1", "one");
  const std::string path = mh.root + "/inbox/.mh_sequences";
  const Bytes noise = testing::random_bytes(1, 100'000);
  std::string long_line = "todo:";
  while (long_line.size() < 1 << 20) long_line += " 1-4000000000";
  for (const std::string& text : {std::string(as_text(noise)), long_line, std::string(1 << 20, 'x'),
                                  std::string("unseen: -1 -5--3 - -- 1-2-3\n"), std::string(1000, '\0')}) {
    write(path, text);
    const Entry entry = scan(*mh.store, "inbox").at("1");
    StoreChange change = change_of(Kind::update, "inbox", entry);
    change.item.flags = kFlagged;
    change.item.words = {"mine"};
    value_of(apply_one(*mh.store, change));
    CHECK(scan(*mh.store, "inbox").at("1").item.flags == kFlagged);
    CHECK(scan(*mh.store, "inbox").at("1").item.words == Words{"mine"});
  }
  // Rather no scan than one in which all flags are gone.
  const auto scan_code = [&] {
    return code_of(mh.store->scan(
        "inbox", [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {}));
  };
  write(path, std::string(kMostMhSequencesBytes + 1, '\n'));
  CHECK(scan_code() == ErrorCode::unsupported);
  fs::remove(path);
  write(mh.directory / "elsewhere", "unseen: 1\n");
  fs::create_symlink(mh.directory / "elsewhere", path);
  CHECK(scan_code() == ErrorCode::io);
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(scan_code() == ErrorCode::unsupported);
}

TEST_CASE("a renumbered MH folder has other locals, and the same messages", "[sync]") {
  Store mh;
  for (const char* const text : {"a", "b", "c"})
    value_of(apply_one(*mh.store, add("inbox", text, 0, {text})));
  value_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", scan(*mh.store, "inbox").at("1"))));
  const Scanned before = scan(*mh.store, "inbox");
  CHECK(before.locals() == Words{"2", "3"});
  const std::string folder = mh.root + "/inbox/";
  fs::rename(folder + "2", folder + "1");
  fs::rename(folder + "3", folder + "2");
  write(folder + ".mh_sequences", "unseen: 1-2\nb: 1\nc: 2\n");
  const Scanned after = scan(*mh.store, "inbox");
  CHECK(after.locals() == Words{"1", "2"});
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(after.entries[i].fingerprint == before.entries[i].fingerprint);
    CHECK(after.entries[i].item.flags == before.entries[i].item.flags);
    CHECK(after.entries[i].item.words == before.entries[i].item.words);
    // The numbers of before are no longer good for anything.
    CHECK(code_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", before.entries[i]))) ==
          ErrorCode::busy);
    CHECK_FALSE(mh.store->read("inbox", before.entries[i]).has_value());
  }
  CHECK(scan(*mh.store, "inbox").locals() == Words{"1", "2"});
}

TEST_CASE("a scan while an MH folder is renumbered misses no message", "[sync]") {
  Store mh;
  constexpr int kMessages = 300, kAway = 100'000;
  const std::string folder = mh.root + "/inbox/";
  for (int i = 1; i <= kMessages; ++i) write(folder + std::to_string(i), std::to_string(i));
  std::atomic<bool> is_done = false;
  std::thread renumbering([&] {
    for (bool is_away = false; !is_done; is_away = !is_away) {
      for (int i = 1; i <= kMessages; ++i)
        fs::rename(folder + std::to_string(is_away ? i + kAway : i),
                   folder + std::to_string(is_away ? i : i + kAway));
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
  });
  int whole = 0, missed = 0;
  for (int round = 0; round < 20; ++round) {
    std::set<std::uint64_t> inodes;
    const auto scanned = mh.store->scan(
        "inbox",
        [&](Entry entry) -> Result<void> {
          inodes.insert(entry.fingerprint.inode);
          return {};
        },
        [](const std::string&, const Error&) {});
    if (scanned) (inodes.size() == kMessages ? whole : missed) += 1;
  }
  is_done = true;
  renumbering.join();
  CHECK(missed == 0);
  CHECK(whole > 0);
}

TEST_CASE("two stores that add to one MH folder at once give each message its own number", "[sync]") {
  Store mh;
  constexpr int kEach = 40;
  const auto fill = [&](char who) {
    const auto store = open_mh(mh.root);
    for (int i = 0; i < kEach; i += 4) {
      std::vector<StoreChange> changes;
      for (int k = 0; k < 4; ++k)
        changes.push_back(add("inbox", who + std::to_string(i + k), who == 'a' ? 0 : kSeen,
                              who == 'a' ? Words{"fromA"} : Words{}));
      for (const auto& answer : (*store)->apply(changes))
        if (!answer) return false;
    }
    return true;
  };
  bool other_is_good = false;
  std::thread other([&] { other_is_good = fill('b'); });
  const bool is_good = fill('a');
  other.join();
  REQUIRE(is_good);
  REQUIRE(other_is_good);
  const Scanned scanned = scan(*mh.store, "inbox");
  REQUIRE(scanned.entries.size() == 2 * kEach);
  std::vector<std::string> contents;
  for (const Entry& entry : scanned.entries) {
    contents.push_back(content_of(*mh.store, "inbox", entry));
    CHECK(entry.item.flags == (contents.back()[0] == 'a' ? 0 : kSeen));
    CHECK(entry.item.words == (contents.back()[0] == 'a' ? Words{"fromA"} : Words{}));
  }
  std::sort(contents.begin(), contents.end());
  CHECK(std::unique(contents.begin(), contents.end()) == contents.end());
}

TEST_CASE("the sequences follow a message that moves, and cur is neither shown nor lost", "[sync]") {
  Store mh;
  write(mh.root + "/inbox/3", "three");
  write(mh.root + "/inbox/4", "four");
  write(mh.root + "/inbox/.mh_sequences", "cur: 4\nunseen: 3-4\ntodo: 3\n");
  write(mh.root + "/lists/kin/7", "seven");
  write(mh.root + "/lists/kin/.mh_sequences", "cur: 7\nflagged: 8\nstale: 1-20\n");
  Scanned scanned = scan(*mh.store, "inbox");
  CHECK(scanned.at("3").item.words == Words{"todo"});
  CHECK(scanned.at("4").item.words.empty());
  StoreChange move = change_of(Kind::move, "inbox", scanned.at("3"));
  move.item.folder = "lists/kin";
  const Entry moved = value_of(apply_one(*mh.store, move));
  CHECK(moved.local == "8");
  CHECK(moved.fingerprint == scanned.at("3").fingerprint);
  CHECK(moved.item.folder == "lists/kin");
  CHECK(read_text(mh.root + "/lists/kin/8") == "three");
  // What the old sequences said of a number 8 that was not there does not count for the new one.
  CHECK(scan(*mh.store, "lists/kin").at("8").item.flags == 0);
  CHECK(scan(*mh.store, "lists/kin").at("8").item.words == Words{"todo"});
  CHECK(read_text(mh.root + "/inbox/.mh_sequences") == "cur: 4\nunseen: 4\n");
  CHECK(read_text(mh.root + "/lists/kin/.mh_sequences") == "cur: 7\nstale: 1-7 9-20\nunseen: 8\ntodo: 8\n");
  CHECK(scan(*mh.store, "inbox").locals() == Words{"4"});

  value_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", scanned.at("4"))));
  CHECK(read_text(mh.root + "/inbox/.mh_sequences").empty());
  CHECK(scan(*mh.store, "inbox").entries.empty());
}

TEST_CASE("an MH message moves to a folder on another file system as it is, and is there once", "[sync]") {
  Store mh;
  const std::string large(300'000, 'x');
  write(mh.root + "/inbox/3", large);
  write(mh.root + "/inbox/4", "four");
  write(mh.root + "/inbox/.mh_sequences", "unseen: 3-4\ntodo: 3\n");
  write(mh.root + "/lists/7", "seven");
  const timespec times[] = {{5, 6}, {1'500'000'000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, (mh.root + "/inbox/3").c_str(), times, 0) == 0);
  const testing::SeparateMount mount(mh.root + "/lists");
  const Scanned before = scan(*mh.store, "inbox");
  std::vector<StoreChange> changes;
  for (const Entry& entry : before.entries) {
    changes.push_back(change_of(Kind::move, "inbox", entry));
    changes.back().item.folder = "lists";
  }
  const auto answers = mh.store->apply(changes);
  CHECK(mount.refused() == 2);
  CHECK(value_of(answers[0]).local == "8");
  CHECK(value_of(answers[1]).local == "9");
  CHECK(read_text(mh.root + "/lists/8") == large);
  CHECK(read_text(mh.root + "/lists/9") == "four");
  CHECK(read_text(mh.root + "/lists/.mh_sequences") == "unseen: 8-9\ntodo: 8\n");
  CHECK(answers[0]->item.time == Timestamp{1'500'000'000, 7});
  const Scanned there = scan(*mh.store, "lists");
  CHECK(there.locals() == Words{"7", "8", "9"});
  CHECK(there.at("8").fingerprint == answers[0]->fingerprint);
  CHECK(scan(*mh.store, "inbox").entries.empty());
  CHECK(testing::entries_in(mh.root + "/lists") == 4);  // nothing temporary

  // One that is not as it was stays.
  write(mh.root + "/inbox/1", "one");
  StoreChange move = change_of(Kind::move, "inbox", scan(*mh.store, "inbox").at("1"));
  move.item.folder = "lists";
  std::ofstream(mh.root + "/inbox/1", std::ios::app) << "more";
  CHECK(code_of(apply_one(*mh.store, move)) == ErrorCode::busy);
  CHECK(read_text(mh.root + "/inbox/1") == "onemore");
  CHECK(testing::entries_in(mh.root + "/lists") == 4);
}

TEST_CASE("a lock of another program on .mh_sequences makes changes busy in time, and loses nothing",
          "[sync]") {
  Store mh(200);
  const Entry old = value_of(apply_one(*mh.store, add("inbox", "old", 0)));
  const std::string before = read_text(mh.root + "/inbox/.mh_sequences");
  const std::string staged = mh.directory / "staged";
  write(staged, "staged");
  StoreChange by_path = add("inbox", "", 0);
  by_path.has_content = false;
  by_path.content_path = staged;
  by_path.may_take = true;
  StoreChange update = change_of(Kind::update, "inbox", old);
  update.item.flags = kAllFlags;
  std::vector<StoreChange> changes = {add("inbox", "new", 0),
                                      add("inbox", "new and seen", kSeen),
                                      by_path,
                                      update,
                                      change_of(Kind::remove, "inbox", old),
                                      add("other", "elsewhere", 0)};
  StoreChange move = change_of(Kind::move, "inbox", old);
  move.item.folder = "other";
  changes.push_back(move);
  {
    const ForeignLock lock(mh.root + "/inbox/.mh_sequences");
    const auto start = std::chrono::steady_clock::now();
    const auto answers = mh.store->apply(changes);
    CHECK(code_of(mh.store->scan(
              "inbox", [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {})) ==
          ErrorCode::busy);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
    REQUIRE(answers.size() == changes.size());
    for (const std::size_t i : {0, 1, 2, 3, 4, 6}) CHECK(code_of(answers[i]) == ErrorCode::busy);
    CHECK(value_of(answers[5]).local == "1");
  }
  CHECK(scan(*mh.store, "inbox").locals() == Words{"1"});
  CHECK(read_text(mh.root + "/inbox/.mh_sequences") == before);
  CHECK(read_text(staged) == "staged");
  CHECK(testing::entries_in(mh.root + "/inbox") == 2);  // no temporary file
  // Now all can be done: the message goes before it can move.
  const auto answers = mh.store->apply(changes);
  for (std::size_t i = 0; i + 1 < answers.size(); ++i) CHECK(answers[i].has_value());
  CHECK(code_of(answers.back()) == ErrorCode::busy);
  CHECK(scan(*mh.store, "inbox").entries.size() == 3);
  CHECK_FALSE(fs::exists(staged));
}

TEST_CASE("an MH profile says which sequences are unseen, and how sequences are locked", "[sync]") {
  using Locking = MhProfile::Locking;
  CHECK(MhProfile::parse("").unseen == Words{"unseen"});
  CHECK(MhProfile::parse("").locking == Locking::fcntl);
  CHECK(MhProfile::parse("Path: Mail\nunseen-SEQUENCE:  fresh\n todo\nPath: x\n").unseen ==
        Words{"fresh", "todo"});
  CHECK(MhProfile::parse("Unseen-Sequence: fresh").unseen == Words{"fresh"});
  // What cannot be one is left out; with none left, it is as if nothing had been said.
  CHECK(MhProfile::parse("Unseen-Sequence: cur replied all 7 fresh a:b").unseen == Words{"fresh"});
  CHECK(MhProfile::parse("Unseen-Sequence: cur\n").unseen == Words{"unseen"});
  CHECK(MhProfile::parse("#: Unseen-Sequence: fresh\nUnseen-Sequence\n").unseen == Words{"unseen"});
  CHECK(MhProfile::parse("Unseen-Sequence:" + std::string(1 << 20, ' ')).unseen == Words{"unseen"});
  CHECK(MhProfile::parse("DataLocking: dot\n").locking == Locking::dot);
  CHECK(MhProfile::parse("datalocking: flock").locking == Locking::flock);
  CHECK(MhProfile::parse("datalocking: lockf").locking == Locking::fcntl);
  CHECK(MhProfile::parse("datalocking: whatever").locking == Locking::fcntl);

  const testing::TempDir home;
  write(home / "profile", "Unseen-Sequence: fresh\n");
  ::setenv("MH", (home / "profile").c_str(), 1);
  CHECK(MhProfile::load().unseen == Words{"fresh"});
  ::setenv("MH", (home / "none").c_str(), 1);
  CHECK(MhProfile::load().unseen == Words{"unseen"});
  ::unsetenv("MH");
}

TEST_CASE("a message is seen that is in none of the unseen sequences of the profile", "[sync]") {
  MhProfile profile;
  profile.unseen = {"fresh", "todo"};
  const Store mh(5000, profile);
  write(mh.root + "/inbox/.mh_sequences", "fresh: 1\ntodo: 1-2\nunseen: 3\nlater: 3\n");
  for (const char* const name : {"/inbox/1", "/inbox/2", "/inbox/3"}) write(mh.root + name, name);
  const Scanned before = scan(*mh.store, "inbox");
  CHECK((before.at("1").item.flags & kSeen) == 0);
  CHECK((before.at("2").item.flags & kSeen) == 0);
  CHECK((before.at("3").item.flags & kSeen) != 0);
  CHECK(before.at("3").item.words == Words{"later"});
  StoreChange read = change_of(Kind::update, "inbox", before.at("1"));
  read.item.flags |= kSeen;
  CHECK((value_of(apply_one(*mh.store, read)).item.flags & kSeen) != 0);
  CHECK((value_of(apply_one(*mh.store, add("inbox", "new", 0, {"fresh"}))).item.flags & kSeen) == 0);
  CHECK(read_text(mh.root + "/inbox/.mh_sequences") == "todo: 2 4\nunseen: 3\nlater: 3\nfresh: 4\n");
}

TEST_CASE("sequences are locked as the profile has it, and kin leaves no lock behind", "[sync]") {
  MhProfile profile;
  profile.locking = GENERATE(MhProfile::Locking::dot, MhProfile::Locking::flock);
  const bool is_dot = profile.locking == MhProfile::Locking::dot;
  Store mh(100, profile);
  value_of(apply_one(*mh.store, add("inbox", "old", 0)));
  const std::string sequences = mh.root + "/inbox/.mh_sequences", dotlock = sequences + ".lock";
  const auto scanned = [&] {
    return code_of(mh.store->scan(
        "inbox", [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {}));
  };
  {
    std::optional<ForeignLock> lock;
    if (is_dot)
      write(dotlock, "");
    else
      lock.emplace(sequences, true);
    CHECK(code_of(apply_one(*mh.store, add("inbox", "new", 0))) == ErrorCode::busy);
    CHECK(scanned() == ErrorCode::busy);
    CHECK(fs::exists(dotlock) == is_dot);
    // Of a program that was killed long ago.
    const timespec times[] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    if (is_dot) REQUIRE(::utimensat(AT_FDCWD, dotlock.c_str(), times, 0) == 0);
  }
  CHECK(value_of(apply_one(*mh.store, add("inbox", "new", 0))).local == "2");
  CHECK(scan(*mh.store, "inbox").entries.size() == 2);
  CHECK_FALSE(fs::exists(dotlock));
  CHECK(testing::entries_in(mh.root + "/inbox") == 3);
}

TEST_CASE("a batch that waits for a lock gets it when the other program is done", "[sync]") {
  Store mh;
  value_of(apply_one(*mh.store, add("inbox", "old", 0)));
  auto lock = std::make_unique<ForeignLock>(mh.root + "/inbox/.mh_sequences");
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lock.reset();
  });
  const auto answer = apply_one(*mh.store, add("inbox", "new", 0));
  opener.join();
  CHECK(value_of(answer).local == "2");
}

TEST_CASE("what MH programs leave of removed messages is no message, and stays", "[sync]") {
  Store mh;
  const std::string folder = mh.root + "/inbox/";
  const Words others = {",12", "#3",         ",kin-",       ",kin-zz", "0",    "007",
                        "+5",  "2147483648", "99999999999", "5x",      "draft"};
  for (const std::string& name : others) write(folder + name, "theirs");
  write(folder + "2147", "a message");
  fs::create_directory(folder + "9");
  write(folder + "9/1", "in the folder of number 9");
  write(mh.root + "/.hidden/1", "no folder");
  CHECK(folders_of(*mh.store) == Words{"inbox", "inbox/9"});
  CHECK(scan(*mh.store, "inbox").locals() == Words{"2147"});
  CHECK(scan(*mh.store, "inbox").skipped.empty());
  CHECK(value_of(apply_one(*mh.store, add("inbox", "new"))).local == "2148");
  value_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", scan(*mh.store, "inbox").at("2147"))));
  for (const std::string& name : others) CHECK(read_text(folder + name) == "theirs");

  write(mh.root + "/5", "in the root");
  CHECK(folders_of(*mh.store) == Words{"", "inbox", "inbox/9"});
  CHECK(scan(*mh.store, "").locals() == Words{"5"});
}

TEST_CASE("old temporary files of kin are removed from an MH store, and young ones are not", "[sync]") {
  Store mh;
  const std::int64_t now_seconds = now().seconds;
  const auto name = [&](std::int64_t age) {
    char text[64];
    std::snprintf(text, sizeof text, "/lists/,kin-%llx-00ff",
                  static_cast<unsigned long long>(now_seconds - age));
    return mh.root + text;
  };
  const std::string old = name(37 * 3600), young = name(35 * 3600);
  write(old, "old");
  write(young, "young");
  value_of(apply_one(*mh.store, add("inbox", "a")));
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(young));
}

TEST_CASE("links, pipes and unreadable files among MH messages are skipped", "[sync]") {
  Store mh;
  write(mh.directory / "secret", "secret");
  write(mh.root + "/inbox/1", "one");
  fs::create_symlink(mh.directory / "secret", mh.root + "/inbox/2");
  REQUIRE(::mkfifo((mh.root + "/inbox/3").c_str(), 0600) == 0);
  write(mh.root + "/inbox/4", "four");
  fs::permissions(mh.root + "/inbox/4", fs::perms::none);
  fs::create_directory_symlink(mh.root + "/inbox", mh.root + "/again");
  const Scanned scanned = scan(*mh.store, "inbox");
  CHECK(scanned.skipped == (::geteuid() == 0 ? Words{"2", "3"} : Words{"2", "3", "4"}));
  CHECK(folders_of(*mh.store) == Words{"inbox"});
  CHECK_FALSE(apply_one(*mh.store, add("again", "through a link")).has_value());
  // A message that has become something else since it was seen.
  const Entry one = scanned.at("1");
  fs::remove(mh.root + "/inbox/1");
  fs::create_symlink(mh.directory / "secret", mh.root + "/inbox/1");
  CHECK(code_of(mh.store->read("inbox", one)) == ErrorCode::busy);
  for (const Kind kind : {Kind::update, Kind::move, Kind::remove})
    CHECK(code_of(apply_one(*mh.store, change_of(kind, "inbox", one))) == ErrorCode::busy);
  CHECK(fs::is_symlink(mh.root + "/inbox/1"));
  CHECK(read_text(mh.directory / "secret") == "secret");
}

TEST_CASE("an MH message that is not as it was is left alone", "[sync]") {
  Store mh;
  const Entry entry = value_of(apply_one(*mh.store, add("inbox", "as it was", 0)));
  write(mh.root + "/inbox/1", "edited");
  CHECK(code_of(mh.store->read("inbox", entry)) == ErrorCode::busy);
  for (const Kind kind : {Kind::update, Kind::move, Kind::remove}) {
    StoreChange change = change_of(kind, "inbox", entry);
    change.item.flags = kAllFlags;
    if (kind == Kind::move) change.item.folder = "other";
    CHECK(code_of(apply_one(*mh.store, change)) == ErrorCode::busy);
  }
  CHECK(read_text(mh.root + "/inbox/1") == "edited");
  CHECK(read_text(mh.root + "/inbox/.mh_sequences") == "unseen: 1\n");
  CHECK(scan(*mh.store, "other").entries.empty());
  fs::remove(mh.root + "/inbox/1");
  CHECK(code_of(mh.store->read("inbox", entry)) == ErrorCode::not_found);
  CHECK(code_of(apply_one(*mh.store, change_of(Kind::update, "inbox", entry))) == ErrorCode::busy);
}

TEST_CASE("an MH message that is to be removed and is gone is as it is to be", "[sync]") {
  Store mh;
  const Entry first = value_of(apply_one(*mh.store, add("inbox", "first", 0)));
  const Entry second = value_of(apply_one(*mh.store, add("inbox", "second", 0)));
  fs::remove(mh.root + "/inbox/1");
  const Entry removed = value_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", first)));
  CHECK(removed.local == "1");
  CHECK(removed.fingerprint == first.fingerprint);
  // Its number is gone, but it is not.
  fs::rename(mh.root + "/inbox/2", mh.root + "/inbox/1");
  CHECK(code_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", second))) == ErrorCode::busy);
  CHECK(read_text(mh.root + "/inbox/1") == "second");
  fs::remove_all(mh.root + "/inbox");
  CHECK(value_of(apply_one(*mh.store, change_of(Kind::remove, "inbox", second))).local == "2");
  CHECK_FALSE(fs::exists(mh.root + "/inbox"));
}

TEST_CASE("an MH message that changes while it is read is busy", "[sync]") {
  Store mh;
  const Entry entry = value_of(apply_one(*mh.store, add("inbox", "as it was")));
  const auto source = value_of(mh.store->read("inbox", entry));
  Bytes some(2);
  CHECK(value_of(source->read(some)) == 2);
  write(mh.root + "/inbox/1", "now it is longer than before");
  Bytes rest(100);
  CHECK(code_of(source->read(rest)) == ErrorCode::busy);
}

TEST_CASE("content of an MH message is taken from a file by rename, or copied from elsewhere", "[sync]") {
  Store mh;
  const std::string staged = mh.directory / "staged";
  write(staged, "from a file");
  fs::permissions(staged, fs::perms::all);
  StoreChange change = add("inbox", "", 0);
  change.has_content = false;
  change.content_path = staged;
  change.may_take = true;
  const Entry entry = value_of(apply_one(*mh.store, change));
  CHECK(content_of(*mh.store, "inbox", entry) == "from a file");
  CHECK(entry.item.time == change.item.time);
  CHECK((fs::status(mh.root + "/inbox/1").permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK_FALSE(fs::exists(staged));
  change.content_path = "/proc/self/status";  // cannot be renamed
  CHECK(content_of(*mh.store, "inbox", value_of(apply_one(*mh.store, change))).starts_with("Name:"));
  change.content_path = mh.directory / "missing";
  CHECK(code_of(apply_one(*mh.store, change)) == ErrorCode::not_found);
  CHECK(testing::entries_in(mh.root + "/inbox") == 3);
}

TEST_CASE("MH folders are made and removed, unless something is in them", "[sync]") {
  Store mh;
  CHECK(folders_of(*mh.store).empty());
  const auto made =
      mh.store->apply({directory(Kind::add, "a/b"), directory(Kind::add, "c"), directory(Kind::add, "c")});
  for (const auto& answer : made) CHECK(answer.has_value());
  CHECK(folders_of(*mh.store) == Words{"a", "a/b", "c"});
  write(mh.root + "/a/b/.mh_sequences", "cur: 1\n");
  write(mh.root + "/c/.mh_sequences", "cur: 1\n");
  write(mh.root + "/c/,12", "theirs");
  const auto removed = mh.store->apply({directory(Kind::remove, "a"), directory(Kind::remove, "a/b"),
                                        directory(Kind::remove, "c"), directory(Kind::remove, "missing/d")});
  for (const auto& answer : removed) CHECK(answer.has_value());
  CHECK(folders_of(*mh.store) == Words{"c"});
  CHECK(read_text(mh.root + "/c/.mh_sequences") == "cur: 1\n");
  CHECK(read_text(mh.root + "/c/,12") == "theirs");

  // A removed folder's last message goes in the same batch.
  const Entry last = value_of(apply_one(*mh.store, add("d", "last", 0)));
  for (const auto& answer : mh.store->apply({change_of(Kind::remove, "d", last), directory(Kind::remove, "d"),
                                             directory(Kind::remove, "e"), directory(Kind::add, "e")}))
    CHECK(answer.has_value());
  CHECK(folders_of(*mh.store) == Words{"c", "e"});
}

TEST_CASE("names that would lead out of an MH store, or that it would not find again, are refused",
          "[sync]") {
  Store mh;
  std::string deep = "d", deepest = "d";
  for (int i = 1; i < 17; ++i) deep += "/d";
  for (int i = 1; i < 16; ++i) deepest += "/d";
  for (const std::string& name : {std::string("../out"), std::string("a/../../out"), std::string("/out"),
                                  std::string(".hidden"), std::string("a/.b"), deep}) {
    INFO(name);
    CHECK_FALSE(apply_one(*mh.store, add(name, "a")).has_value());
    CHECK_FALSE(apply_one(*mh.store, directory(Kind::add, name)).has_value());
    CHECK_FALSE(apply_one(*mh.store, directory(Kind::remove, name)).has_value());
    CHECK_FALSE(mh.store
                    ->scan(
                        name, [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {})
                    .has_value());
  }
  const Entry entry = value_of(apply_one(*mh.store, add(deepest, "a")));
  CHECK(folders_of(*mh.store).back() == deepest);
  Entry evil = entry;
  evil.local = "../d/1";
  CHECK(code_of(mh.store->read(deepest, evil)) == ErrorCode::not_found);
  CHECK_FALSE(apply_one(*mh.store, change_of(Kind::remove, deepest, evil)).has_value());
  StoreChange words = add("", "");
  words.item.type = ItemType::words;
  words.item.flags = 0;
  words.item.name = "subscriptions";
  CHECK(code_of(apply_one(*mh.store, words)) == ErrorCode::unsupported);
  CHECK(testing::entries_in(mh.directory.path()) == 1);
}

TEST_CASE("a batch over more MH folders than are open at once is made as a whole", "[sync]") {
  Store mh;
  std::vector<StoreChange> changes;
  for (int i = 0; i < 250; ++i) changes.push_back(add("f" + std::to_string(i), "m" + std::to_string(i), 0));
  const auto answers = mh.store->apply(changes);
  REQUIRE(answers.size() == 250);
  for (int i = 0; i < 250; ++i) {
    REQUIRE(answers[static_cast<std::size_t>(i)].has_value());
    CHECK(read_text(mh.root + "/f" + std::to_string(i) + "/1") == "m" + std::to_string(i));
  }
}

TEST_CASE("an MH store is known by its sequences, or by folders of nothing but numbered messages", "[sync]") {
  const std::string message = "Return-Path: <a@b>\nReceived: by c;\n\tThu, 14 Apr 2005\nSubject: x\n\ntext\n";
  const testing::TempDir root;
  CHECK(detect_mh(root / "missing") == 0);
  CHECK(detect_mh(root.path()) == 0);
  write(root / "inbox/1", message);
  write(root / "inbox/,2", "");
  CHECK(detect_mh(root.path()) == 50);
  CHECK(detect_mh(root / "inbox") == 50);
  write(root / "inbox/readme", "");
  CHECK(detect_mh(root.path()) == 0);
  write(root / "years/2023/a.jpg", "");  // directories are no messages
  CHECK(detect_mh(root.path()) == 0);
  write(root / "years/,5", "");
  write(root / "left/,5", "");
  CHECK(detect_mh(root.path()) == 0);
  write(root / "inbox/.mh_sequences", "");
  CHECK(detect_mh(root.path()) == 80);
  CHECK(detect_mh(root / "inbox") == 80);
  CHECK_FALSE(open_mh(root / "inbox/1").has_value());
}

TEST_CASE("files that have numbers for names are no MH store unless they begin as messages", "[sync]") {
  const std::string message = "To: a\r\nX-Face: y\r\n\r\ntext\r\n";
  for (const char* const content :
       {"", "text\n", "name: value\n\n", "\n\nSubject: late\n", "Subject without colon\n",
        "\x7f"
        "ELF\x02\x01",
        "From the start\nit is a letter\n", "12 34\n"}) {
    const testing::TempDir root;
    write(root / "1", content);
    CHECK(detect_mh(root.path()) == 0);
    write(root / "2", content);
    write(root / "versions/1", content);
    CHECK(detect_mh(root.path()) == 0);
    CHECK(std::string_view(detect_store_kind(root.path()).name) == "tree");
  }
  const testing::TempDir root;
  write(root / "a.txt", "text");
  write(root / "1", message);
  CHECK(detect_mh(root.path()) == 0);
  write(root / "mails/1", message);  // among other files it is a tree that has some mail
  CHECK(detect_mh(root.path()) == 0);
  write(root / "source/a.cpp", "text");
  CHECK(detect_mh(root.path()) == 0);
}

TEST_CASE("real MH stores without sequences are known, whatever else they have", "[sync]") {
  for (const char* const message :
       {"From a@b Thu Apr 14 00:00:00 2005\nfrom: a\n\n", "Date: x\nSubject: y\n folded\n\n-- \n",
        "To: a\ncc:\nSubject:\n--------\ntext: of a draft", "X-Long: 1\nMESSAGE-ID: <1>\n"}) {
    const testing::TempDir root;
    write(root / "inbox/1", message);
    write(root / "inbox/17", message);
    write(root / "inbox/lists/1", message);
    write(root / "inbox/.overview", "");
    std::filesystem::create_directories(root / "empty");
    CHECK(detect_mh(root.path()) == 50);
    for (const char* const file : {"context", "replcomps", "components", "mhl.reply", ".folders"})
      write(root / file, "Path: Mail\n");
    CHECK(detect_mh(root.path()) == 50);
    write(root / "inbox/3", "\ndamaged\n");
    write(root / "inbox/4", "");
    CHECK(detect_mh(root.path()) == 50);
    write(root / "other/1", message);
    write(root / "aliases", "a: b\n");
    CHECK(detect_mh(root.path()) == 50);
  }
  for (const char* const mark : {".xmhcache", ".mew-cache", ".sylpheed_cache", ".claws_cache"}) {
    const testing::TempDir root;
    write(root / "inbox/1", "no header\n");
    write(root / ("inbox/" + std::string(mark)), "");
    write(root / "notes/a.txt", "");
    CHECK(detect_mh(root.path()) == 80);
  }
}

}  // namespace mh_test
}  // namespace kin::sync

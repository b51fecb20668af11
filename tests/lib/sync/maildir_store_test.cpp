#include "lib/base/file.h"
#include "lib/sync/maildir_name.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"
#include "tests/support/as_nobody.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/separate_mount.h"
#include "tests/support/sync_folders.h"
#include "tests/support/temp_dir.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kin::sync {

int detect_maildir(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_maildir(const std::string& root);

namespace maildir_test {
namespace {

using testing::code_of;
using testing::folders_of;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;
using Kind = StoreChange::Kind;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

void write(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_of(const std::string& path) {
  return std::string(as_text(value_of(read_file(path, 64 << 20))));
}

void make_maildir(const std::string& path) {
  for (const char* const inner : {"cur", "new", "tmp"}) fs::create_directories(path + "/" + inner);
}

// In order; none if there is no such directory.
Words names_in(const std::string& directory) {
  Words names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<SyncStore> open(const std::string& root) { return value_of(open_maildir(root)); }

struct Scanned {
  std::vector<Entry> entries;
  Words skipped;

  Words locals() const {
    Words out;
    for (const Entry& entry : entries) out.push_back(entry.local);
    return out;
  }
};

Scanned scan(SyncStore& store, const std::string& folder = "") {
  Scanned out;
  require_ok(store.scan(
      folder,
      [&](Entry entry) -> Result<void> {
        out.entries.push_back(std::move(entry));
        return {};
      },
      [&](const std::string& local, const Error&) { out.skipped.push_back(local); }));
  const Words locals = out.locals();
  CHECK(std::is_sorted(locals.begin(), locals.end()));
  CHECK(std::set<std::string>(locals.begin(), locals.end()).size() == locals.size());
  return out;
}

Entry only_one(SyncStore& store, const std::string& folder = "") {
  const Scanned scanned = scan(store, folder);
  REQUIRE(scanned.entries.size() == 1);
  return scanned.entries.front();
}

std::string content_of(SyncStore& store, const std::string& folder, const Entry& entry) {
  const auto source = value_of(store.read(folder, entry));
  Bytes content(1 << 20);
  content.resize(value_of(source->read(content)));
  return std::string(as_text(content));
}

StoreChange add_change(const std::string& folder, const std::string& name, std::string_view content,
                       std::uint8_t flags = 0, Words words = {}) {
  StoreChange change;
  change.item.folder = folder;
  change.item.name = name;
  change.item.flags = flags;
  change.item.words = std::move(words);
  change.item.time = {1'500'000'000, 123'456'789};
  change.has_content = true;
  const ByteView bytes = as_bytes(content);
  change.content.assign(bytes.begin(), bytes.end());
  return change;
}

StoreChange change_of(Kind kind, const Entry& entry) {
  StoreChange change;
  change.kind = kind;
  change.entry = entry;
  change.item = entry.item;
  change.folder = entry.item.folder;
  return change;
}

StoreChange update_change(const Entry& entry, std::uint8_t flags, Words words = {}) {
  StoreChange change = change_of(Kind::update, entry);
  change.item.flags = flags;
  change.item.words = std::move(words);
  return change;
}

StoreChange folder_change(Kind kind, const std::string& name) {
  StoreChange change;
  change.kind = kind;
  change.item.type = ItemType::directory;
  change.item.name = name;
  if (kind != Kind::add) change.entry.item = change.item;
  return change;
}

StoreChange words_change(Kind kind, Words words) {
  StoreChange change;
  change.kind = kind;
  change.item.type = ItemType::words;
  change.item.name = "subscriptions";
  change.item.words = std::move(words);
  return change;
}

Result<Entry> apply_one(SyncStore& store, StoreChange change) {
  std::vector<StoreChange> changes;
  changes.push_back(std::move(change));
  auto answers = store.apply(std::move(changes));
  REQUIRE(answers.size() == 1);
  return std::move(answers.front());
}

Entry applied(SyncStore& store, StoreChange change) { return value_of(apply_one(store, std::move(change))); }

void require_same(const Entry& a, const Entry& b) {
  CHECK(a.local == b.local);
  CHECK(a.fingerprint == b.fingerprint);
  CHECK(a.item.type == b.item.type);
  CHECK(a.item.folder == b.item.folder);
  CHECK(a.item.name == b.item.name);
  CHECK(a.item.size == b.item.size);
  CHECK(a.item.flags == b.item.flags);
  CHECK(a.item.words == b.item.words);
  CHECK(a.item.time == b.item.time);
}

}  // namespace

TEST_CASE("names of Maildir files are taken apart and put together", "[sync]") {
  using namespace maildir;
  const auto check = [](std::string_view name, std::string_view unique, std::string_view letters,
                        std::string_view extra) {
    INFO(name);
    const NameView parsed = parse_name(name);
    CHECK(parsed.unique == unique);
    CHECK(parsed.letters == letters);
    CHECK(parsed.extra == extra);
  };
  check("1.2.host", "1.2.host", "", "");
  check("1.2.host:2,FS", "1.2.host", "FS", "");
  check("1.2.host,S=5,W=6:2,FSab,x", "1.2.host,S=5,W=6", "FSab", ",x");
  check("1.2.host;2,S", "1.2.host", "S", "");
  check("1.2.host;2,S:2,F", "1.2.host", "FS", "");
  check("1.2.host!2,FSa:2,FT,x", "1.2.host", "FTSa", ",x");
  check("1.2.host;2,S,x:2,F", "1.2.host;2,S,x", "F", "");
  check("1.2.host!2,S", "1.2.host", "S", "");
  check("1:2.host:2,S", "1:2.host", "S", "");
  check("1.2.host:1,x", "1.2.host", "", "");
  check(":2,S", "", "S", "");
  CHECK(make_name("u", parse_name("u:2,XSa9,more"), kFlagged | kSeen, 2) == "u:2,9FSXb,more");
  CHECK(make_name("u", parse_name("u;2,S"), 0, 0) == "u;2,");
  CHECK(without_uid("u,U=12,S=5") == "u,S=5");
  CHECK(without_uid("u,S=5,U=12") == "u,S=5");
  CHECK(without_uid("u") == "u");
  CHECK(is_good_unique("1.2.host,S=5"));
  for (const char* const bad : {"", ".", "..", ".x", "a/b", "a:b", "a!2,b", "a\nb", "u,U=3"})
    CHECK_FALSE(is_good_unique(bad));
  CHECK_FALSE(is_good_unique(std::string(255, 'x')));
  CHECK(make_unique() != make_unique());
  CHECK(is_good_unique(make_unique()));
  CHECK(unique_made_at(make_unique()) > 1'600'000'000);
  CHECK(unique_made_at("1500000000.M1P2.host") == 0);
}

TEST_CASE("a Maildir is told by its three directories, or by those of a folder", "[sync]") {
  const TempDir directory;
  CHECK(detect_maildir(directory / "nothing") == 0);
  CHECK(detect_maildir(directory.path()) == 0);
  fs::create_directories(directory / "a/b/c/d");
  fs::create_directories(directory / "a/b/cur");
  CHECK(detect_maildir(directory.path()) == 0);
  make_maildir(directory / "a/b/c/d");
  CHECK(detect_maildir(directory.path()) == 0);
  make_maildir(directory / "a/b");
  CHECK(detect_maildir(directory.path()) == 60);
  CHECK(detect_maildir(directory / "a/b") == 90);
  write(directory / "file", "x");
  CHECK(code_of(open_maildir(directory / "file")) == ErrorCode::io);
}

TEST_CASE("all sets of flags of a Maildir survive a round trip, and a change keeps the name", "[sync]") {
  const TempDir directory;
  const auto store = open(directory / "mail");
  CHECK(folders_of(*store).empty());
  std::vector<StoreChange> changes;
  for (unsigned flags = 0; flags <= kAllFlags; ++flags)
    changes.push_back(add_change("box", std::to_string(1000 + flags) + ".host",
                                 "text " + std::to_string(flags), static_cast<std::uint8_t>(flags)));
  const auto added = store->apply(std::move(changes));
  const Scanned first = scan(*store, "box");
  REQUIRE(first.entries.size() == 64);
  changes.clear();
  for (unsigned flags = 0; flags <= kAllFlags; ++flags) {
    const Entry& entry = first.entries[flags];
    INFO(entry.local);
    require_same(value_of(added[flags]), entry);
    CHECK(entry.item.flags == flags);
    CHECK(entry.item.time == Timestamp{1'500'000'000, 123'456'789});
    CHECK(content_of(*store, "box", entry) == "text " + std::to_string(flags));
    changes.push_back(update_change(entry, static_cast<std::uint8_t>(kAllFlags - flags)));
  }
  const auto updated = store->apply(std::move(changes));
  const Scanned second = scan(*store, "box");
  REQUIRE(second.entries.size() == 64);
  CHECK(second.locals() == first.locals());
  for (unsigned flags = 0; flags <= kAllFlags; ++flags) {
    CHECK(second.entries[flags].item.flags == kAllFlags - flags);
    CHECK(second.entries[flags].fingerprint == first.entries[flags].fingerprint);
    require_same(value_of(updated[flags]), second.entries[flags]);
  }
  CHECK(names_in(directory / "mail/box/tmp").empty());
  CHECK(fs::exists(directory / "mail/box/cur/1000.host:2,DFPRST"));
  CHECK(fs::exists(directory / "mail/box/cur/1063.host:2,"));  // once in cur, always in cur
}

TEST_CASE("a message that nobody saw goes to new, and to cur with its first flag", "[sync]") {
  const TempDir directory;
  const auto store = open(directory.path());
  const Entry entry = applied(*store, add_change("", "5.host", "text"));
  CHECK(names_in(directory / "new") == Words{"5.host"});
  CHECK(names_in(directory / "cur").empty());
  // Nobody changed a thing by that.
  fs::rename(directory / "new/5.host", directory / "cur/5.host:2,");
  require_same(only_one(*store), entry);
  fs::rename(directory / "cur/5.host:2,", directory / "new/5.host");
  applied(*store, update_change(entry, kSeen));
  CHECK(names_in(directory / "new").empty());
  CHECK(names_in(directory / "cur") == Words{"5.host:2,S"});
  CHECK(store->path_of("", only_one(*store)) == directory / "cur/5.host:2,S");
}

TEST_CASE("keywords are words: each folder has its own letters for them", "[sync]") {
  const TempDir directory;
  make_maildir(directory / "a");
  make_maildir(directory / "b");
  write(directory / "a/dovecot-keywords", "0 Work\n1 Later\nnonsense\n99 Much\n");
  write(directory / "b/dovecot-keywords", "3 \n0 Later");
  write(directory / "a/cur/1.host:2,Sabz", "text");
  write(directory / "b/cur/2.host:2,b", "other");  // b: means nothing yet, and must not come to mean Work
  const auto store = open(directory.path());
  const Entry entry = only_one(*store, "a");
  CHECK(entry.item.words == Words{"Later", "Work", "maildir-letter-z"});
  const Entry there = applied(*store, add_change("b", "1.host", "text", kSeen, entry.item.words));
  CHECK(there.item.words == entry.item.words);
  CHECK(names_in(directory / "b/cur") == Words{"1.host:2,Sacz", "2.host:2,b"});
  CHECK(text_of(directory / "b/dovecot-keywords") == "3 \n0 Later\n2 Work\n");
  CHECK_FALSE(fs::exists(directory / "b/dovecot-keywords.lock"));
  const Scanned scanned = scan(*store, "b");
  REQUIRE(scanned.entries.size() == 2);
  require_same(scanned.entries[0], there);
  CHECK(scanned.entries[1].item.words == Words{"maildir-letter-b"});
  applied(*store, update_change(there, 0, {"Work"}));
  CHECK(names_in(directory / "b/cur") == Words{"1.host:2,c", "2.host:2,b"});
}

TEST_CASE("a letter that means something elsewhere does not take that meaning along", "[sync]") {
  const TempDir directory;
  make_maildir(directory / "a");
  write(directory / "a/dovecot-keywords", "0 Work\n");
  const auto store = open(directory.path());
  const Entry entry = applied(*store, add_change("a", "1.host", "text", 0, {"maildir-letter-a"}));
  CHECK(entry.item.words == Words{"maildir-letter-a"});
  CHECK(only_one(*store, "a").item.words == Words{"maildir-letter-a"});
}

TEST_CASE("beyond 26 keywords the answer has those that were set", "[sync]") {
  const TempDir directory;
  const auto store = open(directory.path());
  Words words;
  for (int i = 0; i < 30; ++i) words.push_back("word" + std::to_string(100 + i));
  const Entry entry = applied(*store, add_change("", "1.host", "text", 0, words));
  CHECK(entry.item.words == Words(words.begin(), words.begin() + 26));
  require_same(only_one(*store), entry);
  const Entry second = applied(*store, add_change("", "2.host", "text 2", 0, {"another"}));
  CHECK(second.item.words.empty());
}

TEST_CASE("keywords wait for who has locked them, but not for who is long gone", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  const auto store = open(directory.path());
  const std::string lock = directory / "dovecot-keywords.lock";
  write(lock, "");
  CHECK(code_of(apply_one(*store, add_change("", "1.host", "text", 0, {"Work"}))) == ErrorCode::busy);
  CHECK(scan(*store).entries.empty());
  CHECK(names_in(directory / "tmp").empty());
  CHECK(fs::exists(lock));
  fs::last_write_time(lock, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  CHECK(applied(*store, add_change("", "1.host", "text", 0, {"Work"})).item.words == Words{"Work"});
  CHECK_FALSE(fs::exists(lock));
}

TEST_CASE("keywords that cannot be read fail the scan, and are not taken for none", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "cur/1.host:2,a", "text");
  fs::create_symlink("/etc/passwd", directory / "dovecot-keywords");
  const auto ignore_entry = [](Entry) -> Result<void> { return {}; };
  CHECK(code_of(open(directory.path())->scan("", ignore_entry, [](const std::string&, const Error&) {})) ==
        ErrorCode::io);
}

TEST_CASE("a move to another folder keeps the name but for the number of the old folder", "[sync]") {
  const TempDir directory;
  make_maildir(directory / ".a");
  write(directory / ".a/cur/1.host,U=7,S=4:2,SX", "text");
  write(directory / ".a/new/2.host", "more");
  write(directory / ".a/new/3.host", "third");
  write(directory / ".b/new/3.host", "another third");
  fs::create_directories(directory / ".b/cur");
  const auto store = open(directory.path());
  std::vector<StoreChange> changes;
  const Scanned scanned = scan(*store, ".a");
  CHECK(scanned.locals() == Words{"1.host,U=7,S=4", "2.host", "3.host"});
  CHECK(scanned.entries.front().item.name == "1.host,S=4");
  for (const Entry& entry : scanned.entries) {
    changes.push_back(change_of(Kind::move, entry));
    changes.back().item.folder = ".b";
  }
  changes[0].item.flags = kFlagged;
  const auto answers = store->apply(std::move(changes));
  for (const auto& answer : answers) CHECK(value_of(answer).item.folder == ".b");
  CHECK(names_in(directory / ".b/cur") == Words{"1.host,S=4:2,FX"});
  CHECK(names_in(directory / ".b/new").size() == 3);
  CHECK(text_of(directory / ".b/new/2.host") == "more");
  CHECK(text_of(directory / ".b/new/3.host") == "another third");
  CHECK(scan(*store, ".a").entries.empty());
  const Scanned there = scan(*store, ".b");
  REQUIRE(there.entries.size() == 4);
  for (const auto& answer : answers) {
    const auto found = std::find_if(there.entries.begin(), there.entries.end(),
                                    [&](const Entry& entry) { return entry.local == answer->local; });
    REQUIRE(found != there.entries.end());
    require_same(*found, *answer);
  }
  CHECK(content_of(*store, ".b", *answers[2]) == "third");
}

TEST_CASE("a message moves to a folder on another file system as it is, and is there once", "[sync]") {
  const TempDir directory;
  for (const char* const folder : {".a", ".b"}) make_maildir(directory / folder);
  const std::string large(300'000, 'x');
  write(directory / ".a/cur/1.host,U=7,S=4:2,SX", "text");
  write(directory / ".a/new/2.host", large);
  write(directory / ".a/new/3.host", "third");
  write(directory / ".b/new/3.host", "another third");
  const timespec times[] = {{5, 6}, {1'500'000'000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, (directory / ".a/new/2.host").c_str(), times, 0) == 0);
  const testing::SeparateMount mount(directory / ".b");
  const auto store = open(directory.path());
  std::vector<StoreChange> changes;
  for (const Entry& entry : scan(*store, ".a").entries) {
    changes.push_back(change_of(Kind::move, entry));
    changes.back().item.folder = ".b";
  }
  changes[0].item.flags = kFlagged;
  const auto answers = store->apply(std::move(changes));
  CHECK(mount.refused() == 3);
  CHECK(names_in(directory / ".b/cur") == Words{"1.host,S=4:2,FX"});
  CHECK(names_in(directory / ".b/new").size() == 3);
  CHECK(text_of(directory / ".b/new/2.host") == large);
  CHECK(text_of(directory / ".b/new/3.host") == "another third");
  CHECK(names_in(directory / ".a/cur").empty());
  CHECK(names_in(directory / ".a/new").empty());
  CHECK(names_in(directory / ".b/tmp").empty());
  const Scanned there = scan(*store, ".b");
  REQUIRE(there.entries.size() == 4);
  for (const auto& answer : answers) {
    const auto found = std::find_if(there.entries.begin(), there.entries.end(), [&](const Entry& entry) {
      return entry.local == value_of(answer).local;
    });
    REQUIRE(found != there.entries.end());
    require_same(*found, *answer);
  }
  CHECK(value_of(answers[1]).item.time == Timestamp{1'500'000'000, 7});
  CHECK(content_of(*store, ".b", *answers[2]) == "third");
}

TEST_CASE("where no name can have a colon, flags are behind the delimiter that is there, or a semicolon",
          "[sync]") {
  const TempDir directory;
  for (const char* const folder : {"", ".empty", ".moved"}) make_maildir(directory / folder);
  const std::string delimiter = GENERATE(";", "!");
  INFO(delimiter);
  const bool is_told = delimiter == "!";
  const testing::MountWithoutColons mount(directory.path());
  const auto store = open(directory.path());
  if (is_told) write(directory / "cur/0.host!2,RS", "old");
  const Entry first = applied(*store, add_change("", "1.host", "text", kSeen));
  CHECK(first.local == "1.host");
  CHECK(fs::exists(directory / ("cur/1.host" + delimiter + "2,S")));
  if (is_told) CHECK(scan(*store).entries.front().item.flags == (kReplied | kSeen));
  const Entry flagged = applied(*store, update_change(first, kSeen | kFlagged));
  CHECK(flagged.item.flags == (kSeen | kFlagged));
  CHECK(fs::exists(directory / ("cur/1.host" + delimiter + "2,FS")));
  // A folder in which there is nothing to go by has what the root has.
  const auto later = open(directory.path());
  applied(*later, add_change(".empty", "2.host", "more", kSeen));
  CHECK(names_in(directory / ".empty/cur") == Words{"2.host" + delimiter + "2,S"});
  StoreChange move = change_of(Kind::move, only_one(*later, ".empty"));
  move.item.folder = ".moved";
  CHECK(applied(*later, move).item.flags == kSeen);
  CHECK(names_in(directory / ".moved/cur") == Words{"2.host" + delimiter + "2,S"});
  CHECK(applied(*later, add_change("", "3.host", "new")).local == "3.host");
  CHECK(names_in(directory / "new") == Words{"3.host"});
}

TEST_CASE("where there are no links, nor renames to names that must be free, all goes on", "[sync]") {
  const TempDir directory;
  for (const char* const folder : {"", ".a"}) make_maildir(directory / folder);
  const testing::MountWithoutLinks mount(directory.path());
  const auto store = open(directory.path());
  write(directory / "cur/1.host:2,S", "in the way");
  const Entry first = applied(*store, add_change("", "2.host", "text", kSeen));
  CHECK(names_in(directory / "cur") == Words{"1.host:2,S", "2.host:2,S"});
  StoreChange move = change_of(Kind::move, applied(*store, update_change(first, kFlagged)));
  move.item.folder = ".a";
  applied(*store, move);
  CHECK(names_in(directory / ".a/cur") == Words{"2.host:2,F"});
  const int taken = ::open((directory / "cur").c_str(), O_DIRECTORY | O_RDONLY);
  CHECK(rename_to_free_name(AT_FDCWD, directory / ".a/cur/2.host:2,F", taken, "1.host:2,S") == EEXIST);
  ::close(taken);
  CHECK(names_in(directory / ".a/cur").size() == 1);
}

TEST_CASE("the delimiter of one folder is none of another one's", "[sync]") {
  const TempDir directory;
  for (const char* const folder : {"", ".a", ".b"}) make_maildir(directory / folder);
  write(directory / ".a/cur/1.host;2,S", "text");
  const bool root_has_names = GENERATE(true, false);
  if (root_has_names) write(directory / "cur/2.host:2,S", "more");
  const auto store = open(directory.path());
  applied(*store, add_change(".a", "3.host", "third", kSeen));
  CHECK(fs::exists(directory / ".a/cur/3.host;2,S"));
  applied(*store, add_change(".b", "4.host", "fourth", kSeen));
  CHECK(names_in(directory / ".b/cur") == Words{"4.host:2,S"});
}

TEST_CASE("flags behind a semicolon remain where another program puts its own behind a colon", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "cur/1.host;2,S", "text");
  const auto store = open(directory.path());
  const Entry before = only_one(*store, "");
  fs::rename(directory / "cur/1.host;2,S", directory / "cur/1.host;2,S:2,F");
  const Entry after = only_one(*store, "");
  CHECK(after.local == before.local);
  CHECK(after.item.flags == (kSeen | kFlagged));
  CHECK(applied(*store, update_change(after, kFlagged)).item.flags == kFlagged);
  CHECK(names_in(directory / "cur") == Words{"1.host:2,F"});
}

TEST_CASE("a message that moves gets the delimiter of its new folder", "[sync]") {
  const TempDir directory;
  for (const char* const folder : {".a", ".b"}) make_maildir(directory / folder);
  write(directory / ".a/cur/1.host,U=7,FMD5=0123abc,S=4;2,S", "text");
  write(directory / ".b/cur/2.host:2,S", "more");
  const auto store = open(directory.path());
  StoreChange move = change_of(Kind::move, only_one(*store, ".a"));
  CHECK(move.item.name == "1.host,S=4");
  move.item.folder = ".b";
  applied(*store, move);
  CHECK(names_in(directory / ".b/cur") == Words{"1.host,S=4:2,S", "2.host:2,S"});
}

TEST_CASE("a message that changed, or cannot go, stays whole where it was though it should be copied away",
          "[sync]") {
  const TempDir directory;
  for (const char* const folder : {".a", ".b"}) make_maildir(directory / folder);
  write(directory / ".a/cur/1.host:2,", "text");
  const testing::AsNobody nobody(directory.path());
  const testing::SeparateMount mount(directory / ".b");
  const auto store = open(directory.path());
  StoreChange move = change_of(Kind::move, only_one(*store, ".a"));
  move.item.folder = ".b";
  REQUIRE(::chmod((directory / ".a/cur").c_str(), 0500) == 0);  // so that nothing can be removed there
  CHECK(code_of(apply_one(*store, move)) == ErrorCode::io);
  REQUIRE(::chmod((directory / ".a/cur").c_str(), 0700) == 0);
  CHECK(mount.refused() == 1);
  std::ofstream(directory / ".a/cur/1.host:2,", std::ios::app) << "more";
  CHECK(code_of(apply_one(*store, move)) == ErrorCode::busy);
  CHECK(text_of(directory / ".a/cur/1.host:2,") == "textmore");
  for (const char* const part : {"cur", "new", "tmp"}) CHECK(names_in(directory / ".b" + "/" + part).empty());
}

TEST_CASE("of the files in tmp only our own go, and those when they are old", "[sync]") {
  const TempDir directory;
  make_maildir(directory / "box");
  const std::string tmp = directory / "box/tmp/";
  write(tmp + "1000000000.M1P2.host", "foreign");
  write(tmp + "1000000000.M1P2_kinabc.host", "ours");
  write(tmp + "note_kin", "foreign");
  const std::string young = maildir::make_unique();
  write(tmp + young, "ours, of a process that runs");
  fs::last_write_time(tmp + young, fs::file_time_type::clock::now() - std::chrono::hours(1000));
  const auto store = open(directory.path());
  scan(*store, "box");
  CHECK(names_in(tmp).size() == 4);
  applied(*store, add_change("box", "1.host", "text"));
  CHECK(names_in(tmp) == Words{"1000000000.M1P2.host", young, "note_kin"});
}

TEST_CASE("folders of a Maildir are the directories with cur, and files of other programs are no entries",
          "[sync]") {
  const TempDir directory;
  const auto store = open(directory.path());
  for (const char* const folder : {"", ".Lists.git", "Archive/2024", "Archive.x"})
    make_maildir(directory / folder);
  make_maildir(directory / "cur/inside");
  make_maildir(directory / "no/cur/cur");
  make_maildir(directory / "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d");  // 17 deep
  fs::create_directory_symlink(directory / "Archive", directory / "Link");
  fs::create_directory_symlink("/", directory / "Root");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  for (const char* const file :
       {"dovecot-uidlist", "dovecot.index.log", ".uidvalidity", ".mbsyncstate", "maildirsize", ".notmuch/x",
        ".isyncuidmap.db", "courierimapuiddb", "courierimapkeywords/:list", "dovecot-uidvalidity",
        "dovecot-uidvalidity.5f3a", "dovecot.list.index", "dovecot.list.index.log", "dovecot.mailbox.log",
        "cur/.hidden", "new/.nfs01"})
    write(directory / file, "x");
  CHECK(folders_of(*store) == Words{"", ".Lists.git", "Archive.x", "Archive/2024", "no"});
  const Scanned scanned = scan(*store);
  CHECK(scanned.entries.empty());
  CHECK(scanned.skipped == Words{"inside"});
  for (const char* const gone : {"Archive", "Link/2024", "nowhere", "../x", "cur", "a//b", "/etc"}) {
    INFO(gone);
    CHECK_FALSE(store->scan(
        gone, [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {}));
  }
  CHECK(code_of(store->scan(
            "nowhere", [](Entry) { return Result<void>(); }, [](const std::string&, const Error&) {})) ==
        ErrorCode::not_found);
}

TEST_CASE("files with the same unique part are all there, and each can be changed", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "cur/u:2,", "first");
  write(directory / "cur/u:2,S", "second");
  write(directory / "cur/u", "third");
  write(directory / "new/u", "fourth");
  write(directory / "new/:2,F", "no unique part");
  write(directory / "cur/subscriptions:2,", "not a file of words");
  write(directory / "cur/zz:2,", "last");
  const auto store = open(directory.path());
  const Scanned scanned = scan(*store);
  REQUIRE(scanned.entries.size() == 7);
  std::map<std::string, Entry> by_content;
  for (const Entry& entry : scanned.entries) by_content[content_of(*store, "", entry)] = entry;
  CHECK(by_content.size() == 7);
  CHECK(by_content["no unique part"].item.flags == kFlagged);
  CHECK(by_content["last"].local == "zz");
  // Under the name of the first that is taken: it gets another one.
  const Entry changed = applied(*store, update_change(by_content["first"], kSeen));
  CHECK(content_of(*store, "", changed) == "first");
  applied(*store, update_change(by_content["fourth"], kTrashed));
  require_ok([&]() -> Result<void> {
    KIN_TRY(apply_one(*store, change_of(Kind::remove, by_content["second"])));
    KIN_TRY(apply_one(*store, change_of(Kind::remove, by_content["no unique part"])));
    return {};
  }());
  std::map<std::string, std::uint8_t> left;
  for (const Entry& entry : scan(*store).entries) left[content_of(*store, "", entry)] = entry.item.flags;
  CHECK(left ==
        std::map<std::string, std::uint8_t>{
            {"first", kSeen}, {"third", 0}, {"fourth", kTrashed}, {"last", 0}, {"not a file of words", 0}});
}

TEST_CASE("one file under two names is one message, and goes as a whole", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "new/u", "text");
  fs::create_hard_link(directory / "new/u", directory / "cur/u:2,S");
  const auto store = open(directory.path());
  const Entry entry = only_one(*store);
  CHECK(entry.local == "u");
  CHECK(entry.item.flags == kSeen);
  applied(*store, change_of(Kind::remove, entry));
  CHECK(scan(*store).entries.empty());
}

TEST_CASE("what is not as it was is busy, and stays", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "cur/1:2,", "text");
  const auto store = open(directory.path());
  const Entry entry = only_one(*store);
  Entry other = entry;
  SECTION("another time") { other.fingerprint.modified_ns += 1; }
  SECTION("another inode") { other.fingerprint.inode += 1; }
  SECTION("another size") { write(directory / "cur/1:2,", "longer text"); }
  SECTION("gone") { fs::remove(directory / "cur/1:2,"); }
  SECTION("a directory by now") {
    fs::remove(directory / "cur/1:2,");
    fs::create_directory(directory / "cur/1:2,");
  }
  const Words before = names_in(directory / "cur");
  StoreChange move = change_of(Kind::move, other);
  move.item.folder = "elsewhere";
  CHECK(code_of(apply_one(*store, update_change(other, kSeen))) == ErrorCode::busy);
  CHECK(code_of(apply_one(*store, move)) == ErrorCode::busy);
  const auto removed = apply_one(*store, change_of(Kind::remove, other));
  if (before.empty())
    require_same(value_of(removed), other);  // gone is as it is to be
  else
    CHECK(code_of(removed) == ErrorCode::busy);
  CHECK(code_of(store->read("", other)) == (before.empty() ? ErrorCode::not_found : ErrorCode::busy));
  CHECK(names_in(directory / "cur") == before);
  CHECK(names_in(directory / "elsewhere/cur").empty());
}

TEST_CASE("flags that change between scan and change do not make it busy", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "new/1", "text");
  const auto store = open(directory.path());
  const Entry entry = only_one(*store);
  fs::rename(directory / "new/1", directory / "cur/1:2,FR");
  CHECK(content_of(*store, "", entry) == "text");
  applied(*store, update_change(entry, kSeen));
  CHECK(names_in(directory / "cur") == Words{"1:2,S"});
}

TEST_CASE("a message that is added twice is there once; a copy of it is another", "[sync]") {
  const TempDir directory;
  const Entry first = applied(*open(directory.path()), add_change("", "1.host", "text", kSeen));
  const auto store = open(directory.path());
  require_same(applied(*store, add_change("", "1.host", "text", kSeen)), first);
  require_same(applied(*store, add_change("", "1.host", "text")), first);
  CHECK(names_in(directory / "cur") == Words{"1.host:2,S"});
  CHECK(names_in(directory / "tmp").empty());
  const Entry other = applied(*store, add_change("", "1.host", "TEXT"));
  CHECK(other.local != first.local);
  StoreChange copy = add_change("", "1.host", "text");
  copy.item.copy = 1;
  const Entry second = applied(*store, copy);
  require_same(applied(*store, copy), second);
  const Scanned scanned = scan(*store);
  CHECK(scanned.entries.size() == 3);
  CHECK(content_of(*store, "", first) == "text");
  CHECK(content_of(*store, "", second) == "text");
  CHECK(content_of(*store, "", other) == "TEXT");
}

TEST_CASE("content in a file is taken as it is, but not through a link", "[sync]") {
  const TempDir directory;
  const auto store = open(directory / "mail");
  write(directory / "content", "from a file");
  write(directory / "linked", "of others too");
  fs::create_hard_link(directory / "linked", directory / "linked too");
  fs::create_symlink(directory / "linked", directory / "symlink");
  const auto add_path = [&](const std::string& name) {
    StoreChange change = add_change("", name, "");
    change.content_path = directory / name;
    change.may_take = true;
    return apply_one(*store, change);
  };
  CHECK(content_of(*store, "", value_of(add_path("content"))) == "from a file");
  const Entry copied = value_of(add_path("linked"));
  CHECK(content_of(*store, "", copied) == "of others too");
  CHECK(copied.item.time == Timestamp{1'500'000'000, 123'456'789});
  CHECK(fs::hard_link_count(directory / "linked") == 2);
  CHECK_FALSE(add_path("symlink"));
  CHECK_FALSE(add_path("missing"));
  CHECK(scan(*store).entries.size() == 2);
  CHECK(names_in(directory / "mail/tmp").empty());
}

TEST_CASE("folders of a Maildir are made, and go when nothing is in them", "[sync]") {
  const TempDir directory;
  const std::string root = directory / "mail";
  const auto store = open(root);
  for (const char* const name : {".Sent", "Archive/2024", "Archive", ".Sent"})
    applied(*store, folder_change(Kind::add, name));
  CHECK(folders_of(*store) == Words{".Sent", "Archive", "Archive/2024"});
  CHECK(names_in(root + "/.Sent") == Words{"cur", "maildirfolder", "new", "tmp"});
  struct stat status {};
  REQUIRE(::stat((root + "/.Sent/cur").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  applied(*store, folder_change(Kind::update, ".Sent"));

  const Entry message = applied(*store, add_change(".Sent", "1", "text"));
  write(root + "/.Sent/dovecot-uidlist", "x");
  write(root + "/.Sent/dovecot.index.cache", "x");
  write(root + "/.Sent/courierimapacl", "x");
  fs::create_directory(root + "/.Sent/courierimapkeywords");
  write(root + "/.Sent/courierimapkeywords/:list", "x");
  write(root + "/.Sent/courierimapkeywords/.1.keyword", "x");
  applied(*store, folder_change(Kind::remove, ".Sent"));
  CHECK(names_in(root + "/.Sent").size() == 8);
  write(root + "/.Sent/notes", "of somebody");
  std::vector<StoreChange> changes{change_of(Kind::remove, message), folder_change(Kind::remove, ".Sent")};
  for (const auto& answer : store->apply(changes)) CHECK(answer);
  CHECK(names_in(root + "/.Sent").size() == 9);
  fs::remove(root + "/.Sent/notes");
  write(root + "/.Sent/tmp/foreign", "x");
  applied(*store, folder_change(Kind::remove, ".Sent"));
  CHECK(names_in(root + "/.Sent").size() == 8);
  fs::remove(root + "/.Sent/tmp/foreign");
  applied(*store, folder_change(Kind::remove, ".Sent"));
  CHECK_FALSE(fs::exists(root + "/.Sent"));
  applied(*store, folder_change(Kind::remove, ".Sent"));

  applied(*store, folder_change(Kind::remove, "Archive"));
  CHECK(folders_of(*store) == Words{"Archive/2024"});
  for (const char* const bad : {"", "..", "../x", "a/../../x", "cur", "Archive/new/x", "/x", "x/"}) {
    INFO(bad);
    CHECK(code_of(apply_one(*store, folder_change(Kind::add, bad))) == ErrorCode::invalid_argument);
    CHECK(code_of(apply_one(*store, folder_change(Kind::remove, bad))) == ErrorCode::invalid_argument);
    if (*bad != 0)
      CHECK(code_of(apply_one(*store, add_change(bad, "1", "text"))) == ErrorCode::invalid_argument);
  }
  CHECK(names_in(directory.path()) == Words{"mail"});
  fs::create_directory_symlink(directory.path(), root + "/out");
  CHECK_FALSE(apply_one(*store, add_change("out", "1", "text")));
  CHECK_FALSE(apply_one(*store, folder_change(Kind::add, "out/in")));
  CHECK(names_in(directory.path()) == Words{"mail"});
}

TEST_CASE("a hostile name is only a hint, and the message is delivered in its folder", "[sync]") {
  const TempDir directory;
  const std::string root = directory / "mail";
  const auto store = open(root);
  int count = 0;
  for (const std::string& name : {std::string("../x"), std::string("a/b"), std::string(255, 'x'),
                                  std::string(".hidden"), std::string(""), std::string("a:2,S"),
                                  std::string("a\nb"), std::string("x\0y", 3), std::string("..")}) {
    INFO(printable(name));
    const std::string content = "message " + std::to_string(count++);
    const Entry entry = applied(*store, add_change("", name, content, kSeen));
    CHECK(content_of(*store, "", entry) == content);
  }
  CHECK(names_in(root + "/cur").size() == static_cast<std::size_t>(count));
  CHECK(scan(*store).entries.size() == static_cast<std::size_t>(count));
  CHECK(names_in(root) == Words{"cur", "new", "tmp"});
  CHECK(names_in(directory.path()) == Words{"mail"});
}

TEST_CASE("a name that has no room for flags makes way for one that has", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / ("new/" + std::string(255, 'x')), "text");
  const auto store = open(directory.path());
  const Entry changed = applied(*store, update_change(only_one(*store), kSeen));
  CHECK(changed.item.flags == kSeen);
  require_same(only_one(*store), changed);
}

TEST_CASE("what is no file is skipped by its name, and does not hang the scan", "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "cur/1:2,", "text");
  REQUIRE(::mkfifo((directory / "cur/2:2,S").c_str(), 0600) == 0);
  fs::create_symlink("/etc/passwd", directory / "cur/3:2,");
  fs::create_directory(directory / "new/4");
  write(directory / "cur/5:2,", "unreadable");
  fs::permissions(directory / "cur/5:2,", fs::perms::none);
  const auto store = open(directory.path());
  const Scanned scanned = scan(*store);
  const bool reads_all = ::geteuid() == 0;  // root reads what nobody else can
  CHECK(scanned.locals() == (reads_all ? Words{"1", "5"} : Words{"1"}));
  CHECK(scanned.skipped == (reads_all ? Words{"2", "3", "4"} : Words{"2", "3", "4", "5"}));
  Entry fifo = scanned.entries.front();
  fifo.local = "2";
  CHECK(code_of(store->read("", fifo)) == ErrorCode::busy);
}

TEST_CASE("subscriptions are a set of words in the root", "[sync]") {
  const TempDir directory;
  const std::string root = directory / "mail", file = root + "/subscriptions";
  const auto store = open(root);
  const Entry made = applied(*store, words_change(Kind::add, {"Lists", "Sent"}));
  CHECK(text_of(file) == "Lists\nSent\n");
  CHECK(names_in(root) == Words{"subscriptions"});
  CHECK(folders_of(*store) == Words{""});
  require_same(only_one(*store), made);
  require_same(applied(*store, words_change(Kind::add, {"Lists", "Sent"})), made);
  CHECK(code_of(apply_one(*store, words_change(Kind::add, {"Other"}))) == ErrorCode::busy);

  write(file, std::string("V\t2\n\nb\na\nb\nnul\0\n", 16) + std::string(2000, 'x') + "\nlast");
  CHECK(code_of(apply_one(*store, change_of(Kind::update, made))) == ErrorCode::busy);
  make_maildir(root);
  write(root + "/cur/a:2,", "text");
  write(root + "/cur/z:2,", "text");
  const Scanned scanned = scan(*store);
  CHECK(scanned.locals() == Words{"a", "subscriptions", "z"});
  const Entry& entry = scanned.entries[1];
  CHECK(entry.item.type == ItemType::words);
  CHECK(entry.item.words == Words{"V\t2", "a", "b", "last"});
  require_ok(check_item(entry.item));
  StoreChange change = change_of(Kind::update, entry);
  change.item.words = {"A", "V\t2", "b"};
  const Entry updated = applied(*store, change);
  CHECK(text_of(file) == "V\t2\n\nA\nb\n");
  CHECK(updated.item.words == change.item.words);
  applied(*store, change_of(Kind::remove, updated));
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(file + ".lock"));
  require_same(applied(*store, change_of(Kind::remove, updated)), updated);
}

TEST_CASE("a folder's fingerprint changes with what is in it, and is not given while it may change unseen",
          "[sync]") {
  const TempDir directory;
  make_maildir(directory.path());
  write(directory / "new/1", "text");
  const auto store = open(directory.path());
  CHECK_FALSE(value_of(store->folder_fingerprint("")));
  CHECK(code_of(store->folder_fingerprint("nowhere")) == ErrorCode::not_found);
  std::this_thread::sleep_for(std::chrono::milliseconds(4100));
  const auto before = value_of(store->folder_fingerprint(""));
  REQUIRE(before);
  CHECK(value_of(store->folder_fingerprint("")) == before);
  fs::rename(directory / "new/1", directory / "cur/1:2,S");
  CHECK(value_of(store->folder_fingerprint("")) != before);
}

TEST_CASE("a scan misses no message while another program changes flags all the time", "[sync]") {
  constexpr int kMessages = 2000;  // more than one read of a directory has
  const TempDir directory;
  make_maildir(directory.path());
  for (int i = 0; i < kMessages; ++i)
    write(directory / ("new/" + std::to_string(1000 + i)), std::to_string(i));
  const pid_t flipper = ::fork();
  REQUIRE(flipper >= 0);
  if (flipper == 0) {
    ::alarm(120);  // should the test end before it kills us
    testing::Random random(7);
    std::vector<std::string> names(kMessages);
    for (int i = 0; i < kMessages; ++i)
      names[static_cast<std::size_t>(i)] = directory / ("new/" + std::to_string(1000 + i));
    static const char* const kFlags[] = {"", "S", "F", "FS", "RS", "FRS", "T", "ST"};
    for (;;) {  // until it is killed
      const std::size_t i = random.below(kMessages);
      const std::string next =
          directory / ("cur/" + std::to_string(1000 + i) + ":2," + kFlags[random.below(8)]);
      if (::rename(names[i].c_str(), next.c_str()) != 0) ::_exit(1);
      names[i] = next;
    }
  }
  const auto store = open(directory.path());
  for (int round = 0; round < 3; ++round) {
    const Scanned scanned = scan(*store);
    std::set<std::string> seen(scanned.skipped.begin(), scanned.skipped.end());
    for (const Entry& entry : scanned.entries) seen.insert(entry.local);
    CHECK(seen.size() == kMessages);
    CHECK(scanned.entries.size() + scanned.skipped.size() == kMessages);
    CHECK(scanned.skipped.size() < 5);
    int changed = 0;
    for (const Entry& entry : scanned.entries) {
      if (changed++ >= 20) break;
      CHECK(content_of(*store, "", entry) == std::to_string(std::stoi(entry.local) - 1000));
    }
  }
  CHECK(::kill(flipper, SIGKILL) == 0);
  int status = 0;
  CHECK(::waitpid(flipper, &status, 0) == flipper);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("a crash at any time leaves whole messages only", "[sync]") {
  const TempDir directory;
  const std::string content(100'000, 'x');
  for (int round = 0; round < 20; ++round) {
    const std::string root = directory / std::to_string(round);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::alarm(120);
      const auto store = open_maildir(root);
      for (int batch = 0;; ++batch) {
        std::vector<StoreChange> changes;
        for (int i = 0; i < 10; ++i)
          changes.push_back(add_change("box", std::to_string(batch * 10 + i + 1000), content));
        (*store)->apply(std::move(changes));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const auto store = open(root);
    std::vector<StoreChange> changes;
    for (int i = 0; i < 20; ++i) changes.push_back(add_change("box", std::to_string(i + 1000), content));
    for (const auto& answer : store->apply(std::move(changes))) CHECK(answer);
    const Scanned scanned = scan(*store, "box");
    CHECK(scanned.entries.size() >= 20);
    for (std::size_t i = 0; i < scanned.entries.size(); ++i) {
      CHECK(scanned.entries[i].local == std::to_string(i + 1000));  // each once
      CHECK(scanned.entries[i].item.size == content.size());
    }
  }
}

TEST_CASE("many changes in many folders are made in one go", "[sync]") {
  const TempDir directory;
  const auto store = open(directory.path());
  std::vector<StoreChange> changes;
  for (int i = 0; i < 240; ++i)
    changes.push_back(
        add_change("f" + std::to_string(i % 60), std::to_string(i), std::to_string(i), kSeen, {"Work"}));
  const auto answers = store->apply(std::move(changes));
  REQUIRE(answers.size() == 240);
  for (int i = 0; i < 240; ++i) {
    const Entry& entry = value_of(answers[static_cast<std::size_t>(i)]);
    CHECK(content_of(*store, entry.item.folder, entry) == std::to_string(i));
  }
  CHECK(folders_of(*store).size() == 60);
  CHECK(scan(*store, "f7").entries.size() == 4);
}

}  // namespace maildir_test
}  // namespace kin::sync

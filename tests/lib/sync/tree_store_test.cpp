#include "lib/base/file.h"
#include "lib/sync/sync_store.h"
#include "tests/support/as_nobody.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/sync_folders.h"
#include "tests/support/temp_dir.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {

int detect_tree(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_tree(const std::string& root);

namespace tree_test {
namespace {

using testing::AsNobody;
using testing::code_of;
using testing::error_of;
using testing::folders_of;
using testing::TempDir;
using testing::value_of;
using Kind = StoreChange::Kind;

constexpr const char* kTemporary = ".kin-0123456789abcdef.tmp";

void put(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string content_of(const std::string& path) {
  return std::string(as_text(value_of(read_file(path, 1 << 20))));
}

struct stat info_of(const std::string& path) {
  struct stat info {};
  INFO(path);
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

unsigned mode_of(const std::string& path) { return info_of(path).st_mode & 07777; }

struct Tree {
  explicit Tree(std::string path) : root(std::move(path)), store(value_of(open_tree(root))) {}

  // Of all folders, by path.
  std::map<std::string, Entry> scan() {
    std::map<std::string, Entry> out;
    for (const std::string& folder : folders_of(*store)) {
      std::string before;
      testing::require_ok(store->scan(
          folder,
          [&](Entry entry) -> Result<void> {
            CHECK(before < entry.local);
            before = entry.local;
            CHECK(entry.item.folder == folder);
            testing::require_ok(check_item(entry.item));
            out[folder.empty() ? entry.local : folder + "/" + entry.local] = std::move(entry);
            return {};
          },
          [](const std::string& /*local*/, const Error& error) { FAIL(error.message()); }));
    }
    return out;
  }
  Entry find(const std::string& path) {
    const auto all = scan();
    INFO(path);
    REQUIRE(all.contains(path));
    return all.at(path);
  }
  std::string read(const Entry& entry) {
    const auto source = value_of(store->read(entry.item.folder, entry));
    Bytes bytes(1 << 16);
    bytes.resize(value_of(source->read(bytes)));
    return std::string(as_text(bytes));
  }
  Result<Entry> apply(StoreChange change) {
    std::vector<StoreChange> changes;
    changes.push_back(std::move(change));
    auto answers = store->apply(std::move(changes));
    REQUIRE(answers.size() == 1);
    return std::move(answers.front());
  }

  std::string root;
  std::unique_ptr<SyncStore> store;
};

Item file_item(const std::string& folder, const std::string& name, std::string_view content) {
  Item item;
  item.type = ItemType::file;
  item.folder = folder;
  item.name = name;
  item.size = content.size();
  item.mode = 0640;
  item.time = {1'000'000'000, 123'456'789};
  return item;
}

Item directory_item(const std::string& folder, const std::string& name, std::uint32_t mode = 0750) {
  Item item;
  item.type = ItemType::directory;
  item.folder = folder;
  item.name = name;
  item.mode = mode;
  return item;
}

Item symlink_item(const std::string& folder, const std::string& name, const std::string& target) {
  Item item;
  item.type = ItemType::symlink;
  item.folder = folder;
  item.name = name;
  item.target = target;
  return item;
}

StoreChange with_content(StoreChange change, std::string_view content) {
  const ByteView bytes = as_bytes(content);
  change.has_content = true;
  change.content.assign(bytes.begin(), bytes.end());
  return change;
}

StoreChange add(const Item& item) {
  StoreChange change;
  change.item = item;
  return change;
}

StoreChange add_file(const std::string& folder, const std::string& name, std::string_view content) {
  return with_content(add(file_item(folder, name, content)), content);
}

StoreChange update(const Entry& entry, const Item& item) {
  StoreChange change;
  change.kind = Kind::update;
  change.folder = entry.item.folder;
  change.entry = entry;
  change.item = item;
  return change;
}

StoreChange update_file(const Entry& entry, std::string_view content) {
  return with_content(update(entry, file_item(entry.item.folder, entry.local, content)), content);
}

StoreChange removal(const Entry& entry) {
  StoreChange change = update(entry, entry.item);
  change.kind = Kind::remove;
  return change;
}

}  // namespace

TEST_CASE("a tree goes through scan and apply into another, in any order of the changes", "[sync]") {
  const TempDir a, b;
  std::filesystem::create_directories(a / "one/two");
  put(a / "one/two/deep", "deep content");
  put(a / "empty", "");
  put(a / "secret", "x");
  REQUIRE(::chmod((a / "secret").c_str(), 0400) == 0);
  REQUIRE(::chmod((a / "one/two").c_str(), 0555) == 0);
  REQUIRE(::symlink("../no/where", (a / "one/link").c_str()) == 0);
  const timespec times[2] = {{-5, 7}, {-5, 7}};  // before 1970
  REQUIRE(::utimensat(AT_FDCWD, (a / "secret").c_str(), times, 0) == 0);

  Tree from(a.path());
  CHECK(folders_of(*from.store) == std::vector<std::string>{"", "one", "one/two"});
  const auto all = from.scan();
  CHECK(all.size() == 6);
  std::vector<StoreChange> changes;
  for (const auto& [path, entry] : all) {
    StoreChange change = add(entry.item);
    if (entry.item.type == ItemType::file) change = with_content(std::move(change), from.read(entry));
    changes.push_back(std::move(change));
  }
  const bool reversed = GENERATE(false, true);
  if (reversed) std::reverse(changes.begin(), changes.end());
  Tree to(b / "made/by/the/first/change");
  CHECK(folders_of(*to.store).empty());
  const auto answers = to.store->apply(changes);
  const auto copied = to.scan();
  REQUIRE(answers.size() == changes.size());
  CHECK(copied.size() == all.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Entry answer = value_of(answers[i]);
    const std::string path = (answer.item.folder.empty() ? "" : answer.item.folder + "/") + answer.local;
    INFO(path);
    CHECK(answer.local == changes[i].item.name);
    REQUIRE(copied.contains(path));
    CHECK(copied.at(path).fingerprint == answer.fingerprint);  // or the next scan would take it for a change
    CHECK(same_state(copied.at(path).item, all.at(path).item));
    CHECK(same_state(answer.item, all.at(path).item));
    if (answer.item.type == ItemType::file) CHECK(to.read(answer) == from.read(all.at(path)));
  }
  CHECK(mode_of(to.root + "/one/two") == 0555);
  CHECK(info_of(to.root + "/secret").st_mtim.tv_sec == -5);
  CHECK(testing::entries_in(to.root) == 3);  // and no temporary files
}

TEST_CASE("a file that is added twice is one, and another of that name is busy", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  const Entry first = value_of(tree.apply(add_file("", "file", "content")));
  REQUIRE(::chmod((directory / "file").c_str(), 0600) == 0);
  const Entry second = value_of(tree.apply(add_file("", "file", "content")));
  CHECK(second.fingerprint == first.fingerprint);
  CHECK(mode_of(directory / "file") == 0640);
  CHECK(code_of(tree.apply(add_file("", "file", "CONTENT"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(add_file("", "file", "content and more"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(add(directory_item("", "file")))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(add(symlink_item("", "file", "x")))) == ErrorCode::busy);
  CHECK(content_of(directory / "file") == "content");

  CHECK(value_of(tree.apply(add(symlink_item("", "link", "file")))).item.target == "file");
  CHECK(value_of(tree.apply(add(symlink_item("", "link", "file")))).item.target == "file");
  CHECK(code_of(tree.apply(add(symlink_item("", "link", "else")))) == ErrorCode::busy);
  // What the link leads to has this content, the link has not.
  CHECK(code_of(tree.apply(add_file("", "link", "content"))) == ErrorCode::busy);
  CHECK(testing::entries_in(directory.path()) == 2);
}

TEST_CASE("an update replaces content and metadata of the file that was meant", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / "file", "before");
  const Entry updated = value_of(tree.apply(update_file(tree.find("file"), "after, and longer")));
  CHECK(content_of(directory / "file") == "after, and longer");
  CHECK(tree.find("file").fingerprint == updated.fingerprint);
  CHECK(mode_of(directory / "file") == 0640);

  Item other = updated.item;
  other.mode = 0;
  other.time = {77, 1};
  const Entry adjusted = value_of(tree.apply(update(updated, other)));
  CHECK(adjusted.fingerprint == tree.find("file").fingerprint);
  CHECK(adjusted.fingerprint.inode == updated.fingerprint.inode);
  CHECK(same_state(adjusted.item, tree.find("file").item));
  CHECK(mode_of(directory / "file") == 0);
  CHECK(info_of(directory / "file").st_mtim.tv_sec == 77);
  CHECK(content_of(directory / "file") == "after, and longer");
  CHECK(testing::entries_in(directory.path()) == 1);
}

TEST_CASE("a file that has changed is busy for update, removal and reading, and stays", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / "file", "seen");
  REQUIRE(::symlink("seen", (directory / "link").c_str()) == 0);
  const Entry seen = tree.find("file"), link = tree.find("link");
  put(directory / "file", "edited meanwhile");
  REQUIRE(::unlink((directory / "link").c_str()) == 0);
  REQUIRE(::symlink("edited", (directory / "link").c_str()) == 0);
  Item other = seen.item;
  other.mode = 0777;
  CHECK(code_of(tree.apply(update_file(seen, "new"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(seen, other))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(seen, directory_item("", "file")))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(removal(seen))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(removal(link))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(link, symlink_item("", "link", "new")))) == ErrorCode::busy);
  CHECK(code_of(tree.store->read("", seen)) == ErrorCode::busy);
  CHECK(content_of(directory / "file") == "edited meanwhile");
  CHECK(tree.find("link").item.target == "edited");
  CHECK(mode_of(directory / "file") != 0777);
  CHECK(testing::entries_in(directory.path()) == 2);

  REQUIRE(::unlink((directory / "file").c_str()) == 0);
  CHECK(code_of(tree.apply(update_file(seen, "new"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(seen, other))) == ErrorCode::busy);
  CHECK(code_of(tree.store->read("", seen)) == ErrorCode::not_found);
  CHECK(value_of(tree.apply(removal(seen))).local == "file");  // it is as it is to be
  CHECK(testing::entries_in(directory.path()) == 1);
}

TEST_CASE("a file that changes while it is read ends in busy", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / "file", "0123456789");
  const bool grows = GENERATE(false, true);
  const auto source = value_of(tree.store->read("", tree.find("file")));
  Bytes piece(5);
  CHECK(value_of(source->read(piece)) == 5);
  put(directory / "file", grows ? "0123456789 and more" : "01234");
  Bytes rest(100);
  CHECK(code_of(source->read(rest)) == ErrorCode::busy);
}

TEST_CASE("each type turns into each other", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  const auto make = [&](ItemType type) {
    return type == ItemType::file        ? add_file("", "x", "content")
           : type == ItemType::directory ? add(directory_item("", "x"))
                                         : add(symlink_item("", "x", "nowhere"));
  };
  constexpr ItemType kTypes[] = {ItemType::file, ItemType::directory, ItemType::symlink};
  for (const ItemType from : kTypes) {
    for (const ItemType to : kTypes) {
      if (from == to) continue;
      INFO(static_cast<int>(from) << " to " << static_cast<int>(to));
      const Entry before = value_of(tree.apply(make(from)));
      StoreChange change = make(to);
      change.kind = Kind::update;
      change.entry = before;
      const Entry after = value_of(tree.apply(std::move(change)));
      CHECK(after.item.type == to);
      CHECK(tree.find("x").item.type == to);
      CHECK(tree.find("x").fingerprint == after.fingerprint);
      CHECK(testing::entries_in(directory.path()) == 1);
      value_of(tree.apply(removal(after)));
      CHECK_FALSE(is_there(directory / "x"));
    }
  }
}

TEST_CASE("a directory that is not empty is busy, for removal and for a file in its place", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  std::filesystem::create_directory(directory / "d");
  put(directory / "d/kept", "kept");
  const Entry entry = tree.find("d");
  CHECK(code_of(tree.apply(removal(entry))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update_file(entry, "file"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(entry, symlink_item("", "d", "x")))) == ErrorCode::busy);
  CHECK(content_of(directory / "d/kept") == "kept");
  CHECK(testing::entries_in(directory.path()) == 1);
}

TEST_CASE("removals of a whole tree are done in one batch, in any order, answered in theirs", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  std::filesystem::create_directories(directory / "a/b/c");
  for (const char* path : {"a/1", "a/b/2", "a/b/c/3"}) put(directory / path, path);
  std::vector<StoreChange> changes;
  for (const auto& [path, entry] : tree.scan()) changes.push_back(removal(entry));
  if (GENERATE(false, true)) std::reverse(changes.begin(), changes.end());
  const auto answers = tree.store->apply(changes);
  REQUIRE(answers.size() == 6);
  for (std::size_t i = 0; i < answers.size(); ++i)
    CHECK(value_of(answers[i]).local == changes[i].entry.local);
  CHECK(testing::entries_in(directory.path()) == 0);
}

TEST_CASE("a directory becomes a file, and a file a directory with something in it, in one batch", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  std::filesystem::create_directory(directory / "d");
  put(directory / "d/inner", "inner");
  put(directory / "f", "f");
  std::vector<StoreChange> changes;
  changes.push_back(add_file("f", "inner", "moved"));
  changes.push_back(update(tree.find("f"), directory_item("", "f", 0555)));
  changes.push_back(update_file(tree.find("d"), "d"));
  changes.push_back(removal(tree.find("d/inner")));
  for (const auto& answer : tree.store->apply(changes)) value_of(answer);
  CHECK(content_of(directory / "f/inner") == "moved");
  CHECK(content_of(directory / "d") == "d");
  CHECK(mode_of(directory / "f") == 0555);
  CHECK(testing::entries_in(directory.path()) == 2);
}

TEST_CASE("a symlink in the place of a directory is not followed", "[sync]") {
  const TempDir directory, outside;
  put(outside / "victim", "victim");
  Tree tree(directory.path());
  std::filesystem::create_directory(directory / "d");
  put(directory / "d/victim", "victim");
  const Entry seen = tree.find("d/victim");
  std::filesystem::remove_all(directory / "d");
  REQUIRE(::symlink(outside.path().c_str(), (directory / "d").c_str()) == 0);

  CHECK(folders_of(*tree.store) == std::vector<std::string>{""});
  CHECK(tree.scan().size() == 1);
  const auto ignore = [](Entry) -> Result<void> {
    FAIL("seen through a link");
    return {};
  };
  CHECK(code_of(tree.store->scan("d", ignore, [](const std::string&, const Error&) {})) ==
        ErrorCode::not_found);
  CHECK(code_of(tree.store->read("d", seen)) == ErrorCode::not_found);
  CHECK(code_of(tree.apply(add_file("d", "new", "x"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(add_file("d/below", "new", "x"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(add(directory_item("", "d")))) == ErrorCode::busy);
  Entry as_it_is = seen;  // even if all but the way there is right
  as_it_is.fingerprint = Tree(outside.path()).find("victim").fingerprint;
  CHECK(value_of(tree.apply(removal(as_it_is))).local == "victim");  // it is gone from there
  CHECK(code_of(tree.apply(update_file(as_it_is, "x"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(as_it_is, file_item("d", "victim", "victim")))) == ErrorCode::busy);
  CHECK(testing::entries_in(outside.path()) == 1);
  CHECK(content_of(outside / "victim") == "victim");
  CHECK(mode_of(outside / "victim") != 0640);
}

TEST_CASE("names that lead elsewhere are refused", "[sync]") {
  const TempDir directory;
  std::filesystem::create_directory(directory / "root");
  put(directory / "victim", "victim");
  Tree tree(directory / "root");
  for (const char* name : {"../victim", "..", ".", "", "a/b", kTemporary}) {
    INFO(name);
    CHECK_FALSE(tree.apply(add_file("", name, "x")).has_value());
    CHECK_FALSE(tree.apply(add(directory_item("", name))).has_value());
    Entry entry = Tree(directory.path()).find("victim");
    entry.local = name;
    CHECK_FALSE(tree.apply(removal(entry)).has_value());
    CHECK_FALSE(tree.apply(update_file(entry, "x")).has_value());
  }
  for (const char* folder : {"..", "../root", "/tmp", "a//b", "a/../.."})
    CHECK_FALSE(tree.apply(add_file(folder, "new", "x")).has_value());
  CHECK_FALSE(tree.apply(add_file("", std::string("a\0b", 3), "x")).has_value());
  std::string deep = "d";
  for (int i = 0; i < 200; ++i) deep += "/d";
  CHECK_FALSE(tree.apply(add_file(deep, "new", "x")).has_value());
  CHECK(testing::entries_in(directory / "root") == 0);
  CHECK(testing::entries_in(directory.path()) == 2);
  CHECK(content_of(directory / "victim") == "victim");
}

TEST_CASE(
    "changes that make no sense in a tree are refused, and a file never gets content that is not its own",
    "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / "file", "content");
  const Entry file = tree.find("file");
  StoreChange move = update(file, file.item);
  move.kind = Kind::move;
  CHECK(code_of(tree.apply(move)) == ErrorCode::invalid_argument);
  Item message = file.item;
  message.type = ItemType::message;
  CHECK(code_of(tree.apply(add(message))) == ErrorCode::invalid_argument);
  StoreChange cut = add_file("", "cut", "all of it");
  cut.content.pop_back();
  CHECK(code_of(tree.apply(cut)) == ErrorCode::invalid_argument);
  put(directory / "half", "half");
  StoreChange cut_file = add(file_item("", "cut", "all of it"));
  cut_file.content_path = directory / "half";
  CHECK(code_of(tree.apply(cut_file)) == ErrorCode::corrupt);
  const Entry link = value_of(tree.apply(add(symlink_item("", "link", "x"))));
  CHECK(code_of(tree.apply(update(link, file_item("", "link", "")))) == ErrorCode::invalid_argument);
  CHECK(content_of(directory / "file") == "content");
  CHECK_FALSE(is_there(directory / "cut"));
  CHECK(testing::entries_in(directory.path()) == 3);
}

TEST_CASE(
    "a file with the content is taken, copied if it has another name, and given back if nothing came of it",
    "[sync]") {
  const TempDir directory, staging;
  Tree tree(directory.path());
  const auto staged = [&](const std::string& name, const std::string& as) {
    put(staging / name, "staged content");
    StoreChange change = add(file_item("", as, "staged content"));
    change.has_content = true;
    change.content_path = staging / name;
    change.may_take = true;
    return change;
  };
  value_of(tree.apply(staged("taken", "a")));
  CHECK(content_of(directory / "a") == "staged content");
  CHECK(mode_of(directory / "a") == 0640);
  CHECK_FALSE(is_there(staging / "taken"));

  StoreChange copied = staged("copied", "copy");
  copied.may_take = false;
  value_of(tree.apply(std::move(copied)));
  CHECK(content_of(directory / "copy") == "staged content");
  CHECK(content_of(staging / "copied") == "staged content");

  StoreChange linked = staged("linked", "b");
  REQUIRE(::link((staging / "linked").c_str(), (staging / "other").c_str()) == 0);
  value_of(tree.apply(std::move(linked)));
  put(staging / "other", "changed by its other name");
  CHECK(content_of(directory / "b") == "staged content");

  put(directory / "c", "something else");
  CHECK(code_of(tree.apply(staged("busy", "c"))) == ErrorCode::busy);
  CHECK(content_of(staging / "busy") == "staged content");
  CHECK(content_of(directory / "c") == "something else");

  StoreChange update_a = staged("update", "a");
  update_a.kind = Kind::update;
  update_a.entry = tree.find("a");
  const ino_t before = info_of(directory / "a").st_ino;
  value_of(tree.apply(std::move(update_a)));
  CHECK(info_of(directory / "a").st_ino != before);
  CHECK_FALSE(is_there(staging / "update"));  // where the old content must not turn up

  REQUIRE(::symlink((directory / "c").c_str(), (staging / "link").c_str()) == 0);
  StoreChange by_link = add(file_item("", "d", "something else"));
  by_link.content_path = staging / "link";
  by_link.may_take = true;
  CHECK_FALSE(tree.apply(std::move(by_link)).has_value());
  CHECK(testing::entries_in(directory.path()) == 4);
}

TEST_CASE("a read-only directory is filled, emptied, and read-only again", "[sync]") {
  const TempDir directory;
  const AsNobody nobody(directory.path());
  Tree tree(directory.path());
  std::vector<StoreChange> changes;
  changes.push_back(add_file("locked/inner", "file", "content"));
  changes.push_back(add(directory_item("", "locked", 0500)));
  changes.push_back(add(directory_item("locked", "inner", 0500)));
  for (const auto& answer : tree.store->apply(changes)) value_of(answer);
  CHECK(mode_of(directory / "locked") == 0500);
  CHECK(mode_of(directory / "locked/inner") == 0500);
  CHECK_FALSE(std::ofstream(directory / "locked/inner/direct").is_open());  // so it was worth the test

  value_of(tree.apply(update_file(tree.find("locked/inner/file"), "new content")));
  CHECK(content_of(directory / "locked/inner/file") == "new content");
  CHECK(mode_of(directory / "locked/inner") == 0500);
  CHECK(mode_of(directory / "locked") == 0500);

  // Its mode was changed for a moment in the same batch: that is no change by others.
  changes.clear();
  changes.push_back(removal(tree.find("locked/inner/file")));
  changes.push_back(update(tree.find("locked/inner"), directory_item("locked", "inner", 0300)));
  for (const auto& answer : tree.store->apply(changes)) value_of(answer);
  CHECK(mode_of(directory / "locked/inner") == 0300);
  REQUIRE(::chmod((directory / "locked/inner").c_str(), 0700) == 0);
  value_of(tree.apply(removal(tree.find("locked/inner"))));
  CHECK(mode_of(directory / "locked") == 0500);
  CHECK(testing::entries_in(directory / "locked") == 0);
}

TEST_CASE("a directory that cannot be listed is told of, and a root is an error", "[sync]") {
  const TempDir directory;
  const AsNobody nobody(directory.path());
  Tree tree(directory.path());
  std::filesystem::create_directories(directory / "closed/inner");
  REQUIRE(::chmod((directory / "closed").c_str(), 0) == 0);
  std::vector<std::string> skipped;
  const SyncStore::OnSkipped on_skipped = [&](const std::string& folder, const Error& error) {
    skipped.push_back(folder);
    CHECK(error.message() == "cannot list " + (directory / "closed") + ": Permission denied");
  };
  CHECK(value_of(tree.store->folders(on_skipped)) == std::vector<std::string>{""});
  CHECK(skipped == std::vector<std::string>{"closed"});
  REQUIRE(::chmod(directory.path().c_str(), 0) == 0);
  CHECK_FALSE(tree.store->folders(on_skipped).has_value());
  REQUIRE(::chmod(directory.path().c_str(), 0700) == 0);
  REQUIRE(::chmod((directory / "closed").c_str(), 0700) == 0);
  CHECK(folders_of(*tree.store).size() == 3);
}

TEST_CASE("a directory's mode is its state, and what is in it is not", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  const Entry made = value_of(tree.apply(add(directory_item("", "d", 0700))));
  put(directory / "d/file", "x");
  CHECK(tree.find("d").fingerprint == made.fingerprint);
  const Entry updated = value_of(tree.apply(update(made, directory_item("", "d", 0711))));
  CHECK(mode_of(directory / "d") == 0711);
  CHECK(updated.fingerprint == tree.find("d").fingerprint);
  CHECK(code_of(tree.apply(update(made, directory_item("", "d", 0755)))) == ErrorCode::busy);
  CHECK(mode_of(directory / "d") == 0711);
}

TEST_CASE("permission bits are kept, and setuid, setgid and sticky are neither seen nor set", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  Item file = file_item("", "file", "x");
  file.mode = 06755;
  CHECK_FALSE(tree.apply(with_content(add(file), "x")).has_value());
  CHECK_FALSE(std::filesystem::exists(directory / "file"));
  file.mode = 0755;
  CHECK(value_of(tree.apply(with_content(add(file), "x"))).item.mode == 0755);
  CHECK(mode_of(directory / "file") == 0755);
  const Entry made = value_of(tree.apply(add(directory_item("", "d", 0750))));
  CHECK(made.item.mode == 0750);
  CHECK(mode_of(directory / "d") == 0750);

  put(directory / "taken", "x");
  REQUIRE(::chmod((directory / "taken").c_str(), 04755) == 0);
  StoreChange taken = add(file_item("d", "taken", "x"));
  taken.item.mode = 0755;
  taken.has_content = true;
  taken.content_path = directory / "taken";
  taken.may_take = true;
  value_of(tree.apply(taken));
  CHECK(mode_of(directory / "d/taken") == 0755);

  REQUIRE(::chmod((directory / "file").c_str(), 04755) == 0);
  REQUIRE(::chmod((directory / "d").c_str(), 03750) == 0);
  CHECK(tree.find("file").item.mode == 0755);
  CHECK(tree.find("d").fingerprint == made.fingerprint);
  const Entry seen = tree.find("file");
  file.mode = 0775;
  CHECK(value_of(tree.apply(update(seen, file))).item.mode == 0775);
  CHECK(mode_of(directory / "file") == 0775);
  // Those of a directory are its own: a change leaves them, as it does with one that it only works in.
  CHECK(value_of(tree.apply(update(made, directory_item("", "d", 0710)))).item.mode == 0710);
  CHECK(mode_of(directory / "d") == 03710);
}

TEST_CASE("any name that Linux can have goes there and back", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  const std::string names[] = {"new\nline",
                               "\xff\xfe\x80",
                               std::string(255, 'n'),
                               " ",
                               "\\",
                               "-rf",
                               ".hidden",
                               "\x1b[31m",
                               ".kin-0123456789abcde.tmp",
                               ".kin-0123456789ABCDEF.tmp"};
  std::vector<StoreChange> changes;
  for (const std::string& name : names) {
    changes.push_back(add(directory_item("", name)));
    changes.push_back(add_file(name, name, name));
  }
  for (const auto& answer : tree.store->apply(changes)) value_of(answer);
  for (const std::string& name : names) CHECK(tree.read(tree.find(name + "/" + name)) == name);
  CHECK(folders_of(*tree.store).size() == std::size(names) + 1);
  Entry missing = tree.find("new\nline");
  missing.local = "no\nsuch";
  CHECK(error_of(tree.store->read("", missing)).message().find('\n') == std::string::npos);
}

TEST_CASE("special files are not seen, waited for, or overwritten", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  put(directory / "file", "x");
  CHECK(tree.scan().size() == 1);
  Entry entry = tree.find("file");
  entry.local = "fifo";
  CHECK_FALSE(tree.store->read("", entry).has_value());
  CHECK(code_of(tree.apply(removal(entry))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update_file(entry, "y"))) == ErrorCode::busy);
  CHECK(code_of(tree.apply(update(entry, file_item("", "fifo", "x")))) == ErrorCode::busy);
  CHECK_FALSE(tree.apply(add_file("", "fifo", "y")).has_value());
  StoreChange from_fifo = add(file_item("", "new", "y"));
  from_fifo.content_path = directory / "fifo";
  CHECK_FALSE(tree.apply(std::move(from_fifo)).has_value());
  CHECK(S_ISFIFO(info_of(directory / "fifo").st_mode));
  CHECK(testing::entries_in(directory.path()) == 2);
}

TEST_CASE("temporary files are not seen, and young ones are left to whoever writes them", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / kTemporary, "half of somethi");
  put(directory / (std::string("x") + kTemporary + ".part"), "x");
  std::filesystem::create_directory(directory / (std::string("d") + kTemporary));
  const timespec old[2] = {{1, 0}, {1, 0}};  // the mtime is no age: it is that of what is copied
  REQUIRE(::utimensat(AT_FDCWD, (directory / kTemporary).c_str(), old, 0) == 0);
  CHECK(tree.scan().empty());
  CHECK(folders_of(*tree.store).size() == 1);
  value_of(tree.apply(add_file("", "file", "x")));
  CHECK(testing::entries_in(directory.path()) == 4);
}

TEST_CASE("one change that fails leaves the others of its batch alone", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  put(directory / "taken", "x");
  std::vector<StoreChange> changes;
  changes.push_back(add_file("", "one", "1"));
  changes.push_back(add_file("", "taken", "y"));
  changes.push_back(add_file("taken", "below a file", "z"));
  changes.push_back(add_file("new", "two", "2"));
  const auto answers = tree.store->apply(changes);
  REQUIRE(answers.size() == 4);
  CHECK(value_of(answers[0]).local == "one");
  CHECK(code_of(answers[1]) == ErrorCode::busy);
  CHECK(code_of(answers[2]) == ErrorCode::busy);
  CHECK(value_of(answers[3]).local == "two");
  CHECK(mode_of(directory / "new") == 0700);  // until its own item comes
  CHECK(testing::entries_in(directory.path()) == 3);
}

TEST_CASE("what is deeper than 200 directories is told of, not entered", "[sync]") {
  const TempDir directory;
  Tree tree(directory.path());
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += i == 0 ? "d" : "/d";
  std::filesystem::create_directories(directory / deep + "/too deep");
  CHECK(folders_of(*tree.store).size() == 201);
  std::vector<std::string> skipped;
  testing::require_ok(tree.store->scan(
      deep,
      [](Entry) -> Result<void> {
        FAIL("emitted");
        return {};
      },
      [&](const std::string& local, const Error&) { skipped.push_back(local); }));
  CHECK(skipped == std::vector<std::string>{"too deep"});
}

TEST_CASE("a tree is a directory, or nothing yet", "[sync]") {
  const TempDir directory;
  put(directory / "file", "x");
  CHECK(detect_tree(directory.path()) == 1);
  CHECK(detect_tree(directory / "nothing") == 1);
  CHECK(detect_tree(directory / "file") == 0);
  CHECK(detect_tree(directory / "file/below") == 0);
  CHECK(code_of(open_tree(directory / "file")) == ErrorCode::invalid_argument);
  Tree tree(directory / "nothing");
  const auto ignore = [](Entry) -> Result<void> { return {}; };
  CHECK(code_of(tree.store->scan("", ignore, [](const std::string&, const Error&) {})) ==
        ErrorCode::not_found);
  Entry gone;
  gone.local = "gone";
  gone.item = file_item("", "gone", "");
  value_of(tree.apply(removal(gone)));
  CHECK_FALSE(is_there(directory / "nothing"));  // nothing is made to remove something from it
}

}  // namespace tree_test
}  // namespace kin::sync

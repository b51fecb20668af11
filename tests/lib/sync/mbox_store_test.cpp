#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_lock.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/sync_store.h"
#include "tests/support/expect.h"
#include "tests/support/random_bytes.h"
#include "tests/support/sync_folders.h"
#include "tests/support/temp_dir.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kin::sync {

int detect_mbox(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mbox(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_mbox_with(const std::string& root, const mbox::Options& options);

namespace mbox_test {
namespace {

using mbox::Marks;
using mbox::Options;
using testing::code_of;
using testing::error_of;
using testing::folders_of;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;
using Kind = StoreChange::Kind;

const std::string kLf =
    "From alice@example.org Mon Jan  2 03:04:05 2023\n"
    "Return-Path: <alice@example.org>\n"
    "From: Alice <alice@example.org>\n"
    "Subject: first\n"
    "Status: RO\n"
    "X-IMAPbase: 1672628645 0000000004\n"
    "X-UID: 1\n"
    "\n"
    "Hello,\n"
    ">From here on it is quoted.\n"
    "\n"
    "From the other end, no date.\n"
    "\n"
    "From bob@example.org Tue Jan  3 03:04:05 2023\n"
    "Subject: second\n"
    "Status: O\n"
    "X-Status: AF\n"
    "X-Keywords: $Forwarded work  NonJunk          \n"
    "Content-Length: 13\n"
    "\n"
    ">>From twice\n"
    "\n"
    "From - Wed Jan  4 03:04:05 +0100 2023\n"
    "Subject: third\n"
    " goes on\n"
    "\n"
    "no flags\n"
    "\n";

std::string with_crlf(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '\n' ? "\r" : "").push_back(c);
  return out;
}

void put(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct stat stat_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

void set_times(const std::string& path, time_t read, time_t written) {
  const timespec times[2] = {{read, 111}, {written, 222}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

Options quick() {
  Options options;
  options.lock_wait = std::chrono::milliseconds(150);
  return options;
}

std::unique_ptr<SyncStore> open_store(const std::string& root, const Options& options = quick()) {
  return value_of(open_mbox_with(root, options));
}

std::vector<Entry> scan(SyncStore& store, const std::string& folder) {
  std::vector<Entry> out;
  require_ok(store.scan(
      folder,
      [&](Entry entry) {
        out.push_back(std::move(entry));
        return Result<void>();
      },
      [](const std::string& local, const Error& error) { FAIL(local << ": " << error.message()); }));
  CHECK(std::is_sorted(out.begin(), out.end(),
                       [](const Entry& a, const Entry& b) { return a.local < b.local; }));
  return out;
}

std::string text_of(SyncStore& store, const std::string& folder, const Entry& entry) {
  const auto source = value_of(store.read(folder, entry));
  Bytes out(entry.item.size + 1);
  out.resize(value_of(source->read(out)));
  CHECK(out.size() == entry.item.size);
  return std::string(as_text(out));
}

std::vector<std::string> texts(SyncStore& store, const std::string& folder) {
  std::vector<std::string> out;
  for (const Entry& entry : scan(store, folder)) out.push_back(text_of(store, folder, entry));
  std::sort(out.begin(), out.end());
  return out;
}

Entry entry_with(SyncStore& store, const std::string& folder, std::string_view part) {
  for (Entry& entry : scan(store, folder))
    if (text_of(store, folder, entry).find(part) != std::string::npos) return std::move(entry);
  FAIL("no message with " << part);
  return {};
}

StoreChange add_change(const std::string& folder, const std::string& content, std::uint8_t flags = 0,
                       std::vector<std::string> words = {}) {
  StoreChange change;
  change.item.folder = folder;
  change.item.flags = flags;
  change.item.words = std::move(words);
  change.item.time.seconds = 1'700'000'000;
  change.has_content = true;
  change.content = Bytes(content.begin(), content.end());
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

StoreChange update_change(const std::string& folder, const Entry& entry, std::uint8_t flags,
                          std::vector<std::string> words = {}) {
  StoreChange change = change_of(Kind::update, folder, entry);
  change.item.flags = flags;
  change.item.words = std::move(words);
  return change;
}

StoreChange directory_change(Kind kind, const std::string& name) {
  StoreChange change;
  change.kind = kind;
  change.item.type = ItemType::directory;
  change.item.name = name;
  change.entry.item = change.item;
  return change;
}

Result<Entry> apply(SyncStore& store, StoreChange change) {
  std::vector<StoreChange> changes;
  changes.push_back(std::move(change));
  std::vector<Result<Entry>> answers = store.apply(std::move(changes));
  REQUIRE(answers.size() == 1);
  return answers[0];
}

// Of equal length, so that what else changes is seen by comparing lines.
std::vector<std::string> lines_without_status(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (text.compare(at, 8, "Status: ") != 0) out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string many_messages(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += fmt::format("From list@example.org Mon Jan  2 03:{:02}:05 2023\nSubject: number {}\n", i % 60, i);
    if (i % 3 == 0) out += "Status: O\n";
    if (i % 5 == 0) out += "X-Status: A\n";
    out += "\n" + std::string(as_text(testing::text_like(i, 300))) + "\n\n";
  }
  return out;
}

// Another program that holds a lock until the end of the scope.
class ForeignLock {
 public:
  explicit ForeignLock(const std::string& path, int milliseconds = 60'000) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      const int fd = ::open(path.c_str(), O_RDWR);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      const char done = ::fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
      if (::write(ready[1], &done, 1) == 1) ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
      ::_exit(0);
    }
    char done = 0;
    REQUIRE(::read(ready[0], &done, 1) == 1);
    REQUIRE(done == 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~ForeignLock() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_ = -1;
};

mbox::Place place_in(const Fd& directory, const std::string& name) { return {directory.get(), name, name}; }

Fd open_directory(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::vector<std::uint64_t> hashes_of(const std::string& file) {
  std::vector<std::uint64_t> out;
  for (const mbox::Range& range : mbox::find_messages(as_bytes(file)))
    out.push_back(mbox::message_hash(as_bytes(file).subspan(range.header, range.end - range.header)));
  return out;
}

}  // namespace

TEST_CASE("an mbox is read as the messages that a Maildir would have, with LF and CRLF", "[sync]") {
  const bool crlf = GENERATE(false, true);
  const auto line_ends = [&](const std::string& text) { return crlf ? with_crlf(text) : text; };
  const TempDir directory;
  put(directory / "box", line_ends(kLf));
  auto store = open_store(directory / "box");
  CHECK(folders_of(*store) == std::vector<std::string>{""});
  CHECK(
      texts(*store, "") ==
      std::vector<std::string>{
          line_ends(
              "Return-Path: <alice@example.org>\nFrom: Alice <alice@example.org>\nSubject: first\n\nHello,\n"
              ">From here on it is quoted.\n\nFrom the other end, no date.\n"),
          line_ends("Subject: second\n\n>>From twice\n"),
          line_ends("Subject: third\n goes on\n\nno flags\n")});
  const Entry first = entry_with(*store, "", "Subject: first"),
              second = entry_with(*store, "", "Subject: second"),
              third = entry_with(*store, "", "Subject: third");
  CHECK(first.item.flags == kSeen);
  CHECK(first.item.time.seconds == 1'672'628'645);
  CHECK(second.item.flags == (kReplied | kFlagged | kPassed));
  CHECK(second.item.words == std::vector<std::string>{"NonJunk", "work"});
  CHECK(third.item.flags == 0);
  CHECK(third.item.time.seconds == 1'672'801'445);
  CHECK(third.item.size == text_of(*store, "", third).size());
  CHECK(get(directory / "box") == line_ends(kLf));
}

TEST_CASE("every cut of an mbox is told by offsets that leave nothing out", "[sync]") {
  const std::string whole = GENERATE(false, true) ? with_crlf(kLf) : kLf;
  std::size_t boxes = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    if (!mbox::begins_as_mbox(cut)) continue;
    ++boxes;
    std::uint64_t at = 0;
    const std::vector<mbox::Range> ranges = mbox::find_messages(as_bytes(cut));
    std::string emitted;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      REQUIRE(ranges[i].begin == at);
      REQUIRE(ranges[i].header >= ranges[i].begin);
      REQUIRE(ranges[i].end >= ranges[i].header);
      at = i + 1 < ranges.size() ? ranges[i + 1].begin : cut.size();
      REQUIRE(at >= ranges[i].end);
      REQUIRE(at - ranges[i].end <= 2);
      const ByteView message = as_bytes(cut).subspan(ranges[i].header, ranges[i].end - ranges[i].header);
      const Marks marks = mbox::marks_of(message);
      REQUIRE(equal(mbox::with_marks(message, marks, "\n"), message));
    }
    REQUIRE(at == cut.size());
  }
  CHECK(boxes > whole.size() - 60);
}

TEST_CASE("every cut of an mbox can be added to and changed, and keeps its messages", "[sync]") {
  const TempDir directory;
  for (std::size_t size = 0; size <= kLf.size(); size += 3) {
    INFO(size);
    const std::string cut = kLf.substr(0, size), path = directory / "box";
    if (size > 0 && !mbox::begins_as_mbox(cut)) continue;
    std::filesystem::remove(path);
    put(path, cut);
    auto store = open_store(path);
    std::vector<StoreChange> changes;
    const std::vector<Entry> before = scan(*store, "");
    const std::vector<std::string> contents = texts(*store, "");
    for (const Entry& entry : before)
      changes.push_back(update_change("", entry, kSeen | kTrashed, {"later"}));
    for (const Result<Entry>& answer : store->apply(std::move(changes))) value_of(answer);
    REQUIRE(texts(*store, "") == contents);
    for (const Entry& entry : scan(*store, "")) REQUIRE(entry.item.flags == (kSeen | kTrashed));
    value_of(apply(*store, add_change("", "Subject: new\n\nbody\n")));
    REQUIRE(scan(*store, "").size() == before.size() + 1);
    entry_with(*store, "", "Subject: new");
  }
}

TEST_CASE("all sets of flags go into an mbox and come back", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  std::string local = entry_with(*store, "", "Subject: second").local;
  const std::string content = text_of(*store, "", entry_with(*store, "", "Subject: second"));
  for (unsigned flags = 0; flags <= kAllFlags; ++flags) {
    INFO(flags);
    const auto set = static_cast<std::uint8_t>(flags);
    const Entry before = entry_with(*store, "", "Subject: second");
    const Entry after = value_of(apply(*store, update_change("", before, set, {"work"})));
    CHECK(after.local == local);
    CHECK(after.item.flags == set);
    const Entry found = entry_with(*store, "", "Subject: second");
    CHECK(found.item.flags == set);
    CHECK(found.item.words == std::vector<std::string>{"work"});
    CHECK(found.fingerprint == before.fingerprint);
    CHECK(text_of(*store, "", found) == content);
    // And with a message that is added.
    const std::string added = fmt::format("Subject: added {}\n\nbody\n", flags);
    CHECK(value_of(apply(*store, add_change("", added, set))).item.flags == set);
    CHECK(entry_with(*store, "", fmt::format("added {}\n", flags)).item.flags == set);
  }
}

TEST_CASE("flags change in place, and no other byte does", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  const auto replaced = [&](std::string from, const std::string& to) {
    std::string out = kLf;
    const std::size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  const Entry first = entry_with(*store, "", "Subject: first");
  value_of(apply(*store, update_change("", first, 0)));
  CHECK(get(directory / "box") == replaced("Status: RO\n", "Status: O\n"));
  value_of(apply(*store, update_change("", entry_with(*store, "", "Subject: first"), kSeen)));
  CHECK(get(directory / "box") == kLf);

  const Entry third = entry_with(*store, "", "Subject: third");
  value_of(apply(*store, update_change("", third, kSeen | kFlagged | kPassed, {"a"})));
  CHECK(get(directory / "box") ==
        replaced(" goes on\n", " goes on\nStatus: RO\nX-Status: F\nX-Keywords: a $Forwarded\n"));
  value_of(apply(*store, update_change("", entry_with(*store, "", "Subject: third"), 0)));
  CHECK(get(directory / "box") == replaced(" goes on\n", " goes on\nStatus: O\n"));

  const Entry second = entry_with(*store, "", "Subject: second");
  value_of(apply(*store, update_change("", second, kPassed, {"NonJunk", "work"})));
  CHECK(get(directory / "box").find("X-Keywords: $Forwarded work  NonJunk          \n") != std::string::npos);
  CHECK(get(directory / "box").find("X-Status") == std::string::npos);
}

TEST_CASE("marking 199 messages read changes nothing but Status lines", "[sync]") {
  const TempDir directory;
  const std::string before = many_messages(199);
  put(directory / "box", before);
  const ino_t inode = stat_of(directory / "box").st_ino;
  auto store = open_store(directory / "box");
  std::vector<StoreChange> changes;
  for (const Entry& entry : scan(*store, ""))
    changes.push_back(update_change("", entry, entry.item.flags | kSeen));
  REQUIRE(changes.size() == 199);
  for (const Result<Entry>& answer : store->apply(std::move(changes)))
    CHECK((value_of(answer).item.flags & kSeen) != 0);
  const std::string after = get(directory / "box");
  CHECK(lines_without_status(after) == lines_without_status(before));
  CHECK(scan(*store, "").size() == 199);
  for (const Entry& entry : scan(*store, "")) CHECK((entry.item.flags & kSeen) != 0);
  CHECK(stat_of(directory / "box").st_ino == inode);
  CHECK(testing::entries_in(directory.path()) == 1);
}

TEST_CASE("what is added goes behind all earlier bytes of the same inode, with the file's line ends",
          "[sync]") {
  const bool crlf = GENERATE(false, true);
  const TempDir directory;
  const std::string before = crlf ? with_crlf(kLf) : kLf;
  put(directory / "box", before);
  const ino_t inode = stat_of(directory / "box").st_ino;
  auto store = open_store(directory / "box");
  const Entry added = value_of(apply(*store, add_change("", "Subject: x\n\nbody\n", kSeen)));
  const std::string after = get(directory / "box"), end = crlf ? "\r\n" : "\n";
  CHECK(after == before + "From MAILER-DAEMON Tue Nov 14 22:13:20 2023" + end +
                     "Subject: x\nStatus: RO\n\nbody\n" + end);
  CHECK(stat_of(directory / "box").st_ino == inode);
  CHECK(added.item.time.seconds == 1'700'000'000);
  const Entry found = entry_with(*store, "", "Subject: x");
  CHECK(found.local == added.local);
  CHECK(found.fingerprint == added.fingerprint);
  CHECK(found.item.time == added.item.time);
  // The table of before serves the next one, and does not serve when somebody else wrote.
  value_of(apply(*store, add_change("", "Subject: y\n\nbody\n")));
  put(directory / "box", get(directory / "box") + "From z Mon Jan  2 03:04:05 2023\nSubject: z\n\nz\n\n");
  value_of(apply(*store, add_change("", "Subject: z\n\nz\n")));  // is there
  CHECK(scan(*store, "").size() == 6);
}

TEST_CASE("a message has the envelope that it had where it came from", "[sync]") {
  const std::string date = " Thu Apr 14 01:02:03 2005\n", text = "Subject: s\n\ntext\n\n";
  struct Case {
    std::string sender, header, name;
  };
  // A name only where it is not what would be guessed.
  for (const Case& one :
       std::vector<Case>{{"a@b", "Return-Path: <a@b>\nFrom: c@d\n", ""},
                         {"c@d", "Return-Path: <>\nFrom: C <c@d>\n", ""},
                         {"c@d", "FROM:\n c@d\n", ""},
                         {"MAILER-DAEMON", "From: a b\n", ""},
                         {"list-bounces@x", "From: c@d\n", "list-bounces@x"},
                         {"/C=x/50%/", "From: c@d\n", "%2FC=x%2F50%25%2F"},
                         {"..", "From: c@d\n", "%2E."},
                         {"uucp!who remote from far", "From: c@d\n", "uucp!who remote from far"},
                         {"- Mon Jan 1", "From: c@d\n", "- Mon Jan 1"}}) {
    INFO(one.sender << ", " << one.header);
    const TempDir directory;
    put(directory / "a", "From " + one.sender + date + one.header + text);
    const auto from = open_store(directory / "a"), to = open_store(directory / "b");
    const Entry sent = scan(*from, "").at(0);
    CHECK(sent.item.name == one.name);
    testing::require_ok(check_item([&] {
      Item item = sent.item;
      item.object = object_id(as_bytes(one.header));
      return item;
    }()));
    StoreChange change = change_of(Kind::add, "", sent);
    const std::string content = text_of(*from, "", sent);
    change.content.assign(content.begin(), content.end());
    const Entry added = value_of(apply(*to, change));
    CHECK(added.item.name == one.name);
    CHECK(get(directory / "b") == get(directory / "a"));
  }
  // What cannot be one is as if there were none.
  for (const char* const name : {"a\nFrom x", "a%0Ab", " a", "a  b", "%", "x Thu Apr 14 01:02:03 2005"}) {
    INFO(name);
    const TempDir directory;
    StoreChange change;
    change.item.name = name;
    change.item.time = {1'113'440'523, 0};
    const std::string content = "From: c@d\n\ntext\n";
    change.content.assign(content.begin(), content.end());
    value_of(apply(*open_store(directory / "b"), change));
    CHECK(get(directory / "b") ==
          "From " + std::string(std::string_view(name) == "%" ? "%" : "c@d") + date + content + "\n");
  }
}

TEST_CASE("any content comes back from an mbox as it was", "[sync]") {
  const bool crlf = GENERATE(false, true);
  const TempDir directory;
  put(directory / "box", crlf ? with_crlf(kLf) : kLf);
  auto store = open_store(directory / "box");
  std::vector<std::string> contents = {
      "",
      "\n",
      "\r\n",
      "\n\n\n",
      "\r",
      "x",
      "x\r",
      "a: b\n\r",
      " starts with a space\n\nbody\n",
      "Subject: header only\n",
      "Subject: header only, cut",
      "Subject: empty body\n\n",
      "Subject: two empty lines\n\n\n",
      "Subject: no end\n\nbody",
      "Subject: crlf\r\n\r\nbody\r\n",
      "Subject: crlf, cut\r\n\r\nbody\r",
      "\nFrom the body\n",
      "From someone Mon Jan  2 03:04:05 2023\nSubject: with its envelope\n\nbody\n",
      "Subject: quotes\n\nFrom a\n>From b\n>>From c\n\nFrom d Mon Jan  2 03:04:05 2023\n\nFrom e Mon Jan  2 "
      "03:04:05 2023",
      "Subject: not quoted\n\n>From b\n > From c\n",
      "Status: RO\nX-Status: A\nX-UID: 7\nSubject: from another mbox\nContent-Length: 3\n\nabc\n",
      "X-Kin-Quoted: 1\nSubject: ours\nX-Kin-Kept-Status: RO\n\n>From x\n",
      "X-Kin-Quoted: 2\n\nbody\n",
      "X-Kin-Kept-Status: RO\nStatus:\n folded\n more\n\nFrom \n",
      "X-Keywords: a b\nX-IMAPbase: 1 2\nstatus : o\n\nbody\n",
  };
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    contents.emplace_back(as_text(testing::random_bytes(seed, 200)));
    // Of the pieces that matter, in any order.
    const char* const pieces[] = {"From ",
                                  ">",
                                  "\n",
                                  "\r\n",
                                  "Status: R",
                                  ":",
                                  " ",
                                  "X-Kin-Quoted: 1\n",
                                  "\r",
                                  "a",
                                  "From x Mon Jan  2 03:04:05 2023\n",
                                  "X-Kin-Kept-"};
    testing::Random random(seed);
    std::string made;
    for (int i = 0; i < 30; ++i) made += pieces[random.below(std::size(pieces))];
    contents.push_back(made);
  }
  std::vector<StoreChange> changes;
  for (std::size_t i = 0; i < contents.size(); ++i)
    changes.push_back(add_change("", contents[i], static_cast<std::uint8_t>(i % 64), {"word"}));
  const std::vector<Result<Entry>> answers = store->apply(std::move(changes));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    INFO(i << ": " << printable(contents[i]));
    const Entry entry = value_of(answers[i]);
    CHECK(entry.item.flags == i % 64);
    CHECK(entry.item.words == std::vector<std::string>{"word"});
    CHECK(text_of(*store, "", entry) == contents[i]);
  }
  CHECK(scan(*store, "").size() == contents.size() + 3);
  // Other flags, all at once, and then each one gone.
  changes.clear();
  for (const Result<Entry>& answer : answers)
    changes.push_back(update_change("", *answer, 63 - answer->item.flags));
  std::vector<StoreChange> removals;
  const std::vector<Result<Entry>> updated = store->apply(std::move(changes));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    INFO(i << ": " << printable(contents[i]));
    CHECK(value_of(updated[i]).item.flags == 63 - i % 64);
    CHECK(text_of(*store, "", *updated[i]) == contents[i]);
    removals.push_back(change_of(Kind::remove, "", *updated[i]));
  }
  for (const Result<Entry>& answer : store->apply(std::move(removals))) value_of(answer);
  CHECK(get(directory / "box") == (crlf ? with_crlf(kLf) : kLf));
}

TEST_CASE("what an mbox cannot hold is refused, and the file is as it was", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  const std::vector<std::string> bad_words[] = {{"two words"}, {"tab\there"}, {"cr\r"}};
  for (const auto& words : bad_words) {
    CHECK(code_of(apply(*store, add_change("", "Subject: x\n\n", 0, words))) == ErrorCode::unsupported);
    CHECK(code_of(apply(*store, update_change("", entry_with(*store, "", "first"), kSeen, words))) ==
          ErrorCode::unsupported);
  }
  CHECK(code_of(apply(*store, add_change("folder", "x\n"))) == ErrorCode::unsupported);
  CHECK(get(directory / "box") == kLf);
}

TEST_CASE("equal messages in an mbox are told apart, and an added one that is there is not added", "[sync]") {
  const TempDir directory;
  const std::string one = "From a Mon Jan  2 03:04:05 2023\nSubject: x\nStatus: R\n\nx\n\n",
                    two = "From b Tue Jan  3 03:04:05 2023\nSubject: x\n\nx\n\n";
  put(directory / "box", one + two);
  auto store = open_store(directory / "box");
  const std::vector<Entry> entries = scan(*store, "");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].local.substr(0, 17) == entries[1].local.substr(0, 17));
  CHECK(entries[0].local.ends_with("-00"));
  CHECK(entries[1].local.ends_with("-01"));
  CHECK(entries[0].item.flags == kSeen);
  CHECK(entries[1].item.flags == 0);
  StoreChange again = add_change("", "Subject: x\n\nx\n");
  again.item.copy = 1;
  CHECK(value_of(apply(*store, again)).local == entries[1].local);
  CHECK(get(directory / "box") == one + two);
  again.item.copy = 2;
  CHECK(value_of(apply(*store, again)).local.ends_with("-02"));
  // The second one is the first now, and the answer says so.
  std::vector<StoreChange> changes;
  changes.push_back(change_of(Kind::remove, "", entries[0]));
  changes.push_back(update_change("", entries[1], kFlagged));
  const auto answers = store->apply(std::move(changes));
  CHECK(value_of(answers[0]).local == entries[0].local);
  CHECK(value_of(answers[1]).local == entries[0].local);
  CHECK(answers[1]->item.flags == kFlagged);
}

TEST_CASE("a message that is not as it was is neither changed nor removed", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  const Entry third = entry_with(*store, "", "Subject: third");
  auto other = open_store(directory / "box");
  value_of(apply(*other, update_change("", third, kFlagged)));
  CHECK(code_of(apply(*store, update_change("", third, kSeen))) == ErrorCode::busy);
  CHECK(code_of(apply(*store, change_of(Kind::remove, "", third))) == ErrorCode::busy);
  CHECK(value_of(apply(*store, update_change("", third, kFlagged))).item.flags ==
        kFlagged);  // as wanted already
  value_of(apply(*other, change_of(Kind::remove, "", entry_with(*other, "", "Subject: third"))));
  CHECK(code_of(apply(*store, update_change("", third, kSeen))) == ErrorCode::busy);
  CHECK(code_of(store->read("", third)) == ErrorCode::not_found);
}

TEST_CASE("what is to be removed from an mbox and is gone is as it is to be", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  put(directory / "odd", "From nobody, on no day\n");
  auto store = open_store(directory.path());
  const Entry third = entry_with(*store, "box", "Subject: third");
  const std::vector<Entry> files = scan(*store, "");
  REQUIRE(files.size() == 1);
  value_of(apply(*store, change_of(Kind::remove, "box", third)));
  const std::string rest = get(directory / "box");
  CHECK(value_of(apply(*store, change_of(Kind::remove, "box", third))).local == third.local);
  CHECK(get(directory / "box") == rest);
  std::filesystem::remove(directory / "box");
  CHECK(value_of(apply(*store, change_of(Kind::remove, "box", third))).fingerprint == third.fingerprint);
  CHECK_FALSE(std::filesystem::exists(directory / "box"));
  for (int i = 0; i < 2; ++i)
    CHECK(value_of(apply(*store, change_of(Kind::remove, "", files[0]))).local == "file:odd");
  CHECK(testing::entries_in(directory.path()) == 0);
}

TEST_CASE("the numbers of a whole mbox stay when its first message goes", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  value_of(apply(*store, change_of(Kind::remove, "", entry_with(*store, "", "Subject: first"))));
  std::string expected = kLf.substr(kLf.find("From bob"));
  expected.insert(expected.find("\n\n") + 1, "X-IMAPbase: 1672628645 0000000004\n");
  CHECK(get(directory / "box") == expected);
  CHECK(scan(*store, "").size() == 2);
}

TEST_CASE("a foreign lock on an mbox is waited for, and then every change is busy", "[sync]") {
  const TempDir directory;
  put(directory / "a", kLf);
  put(directory / "b", kLf);
  auto store = open_store(directory.path());
  const Entry first = entry_with(*store, "a", "Subject: first");
  {
    const ForeignLock lock(directory / "a");
    std::vector<StoreChange> changes;
    changes.push_back(add_change("a", "Subject: x\n\n"));
    changes.push_back(update_change("a", first, 0));
    changes.push_back(add_change("b", "Subject: x\n\n"));
    const auto answers = store->apply(std::move(changes));
    CHECK(error_of(answers[0]).code() == ErrorCode::busy);
    CHECK(error_of(answers[1]).message().find("locked") != std::string::npos);
    CHECK(answers[2].has_value());
    const auto ignore = [](const Entry&) { return Result<void>(); };
    CHECK(code_of(store->scan("a", ignore, [](const std::string&, const Error&) {})) == ErrorCode::busy);
    CHECK(get(directory / "a") == kLf);
    CHECK_FALSE(std::filesystem::exists(directory / "a.lock"));
  }
  Options patient;
  patient.lock_wait = std::chrono::seconds(20);
  auto waiting = open_store(directory.path(), patient);
  const ForeignLock lock(directory / "a", 200);
  value_of(apply(*waiting, add_change("a", "Subject: x\n\n")));
  CHECK(scan(*waiting, "a").size() == 4);
}

TEST_CASE("a foreign dotlock is waited for, unless it is stale, and ours is removed", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  put(directory / "box.lock", "1\n");
  auto store = open_store(directory / "box");
  CHECK(code_of(apply(*store, add_change("", "Subject: x\n\n"))) == ErrorCode::busy);
  const auto ignore = [](const Entry&) { return Result<void>(); };
  CHECK(code_of(store->scan("", ignore, [](const std::string&, const Error&) {})) == ErrorCode::busy);
  CHECK(get(directory / "box.lock") == "1\n");
  CHECK(get(directory / "box") == kLf);
  set_times(directory / "box.lock", ::time(nullptr) - 299, ::time(nullptr) - 290);
  CHECK(code_of(apply(*store, add_change("", "Subject: x\n\n"))) == ErrorCode::busy);
  set_times(directory / "box.lock", ::time(nullptr) - 310, ::time(nullptr) - 310);
  value_of(apply(*store, add_change("", "Subject: x\n\n")));
  CHECK_FALSE(std::filesystem::exists(directory / "box.lock"));
  CHECK(scan(*store, "").size() == 4);
}

TEST_CASE("while a LockedBox is there others see both locks", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  const Fd parent = open_directory(directory.path());
  {
    const auto box = value_of(mbox::LockedBox::open(place_in(parent, "box"), quick()));
    CHECK(get(directory / "box.lock").starts_with(fmt::format("{}\nkin ", ::getpid())));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    const Fd other(::open((directory / "box").c_str(), O_RDWR));
    CHECK(::fcntl(other.get(), F_SETLK, &lock) != 0);
    CHECK(code_of(mbox::LockedBox::open(place_in(parent, "box"), quick())) == ErrorCode::busy);
    CHECK(std::filesystem::exists(directory / "box.lock"));
  }
  CHECK_FALSE(std::filesystem::exists(directory / "box.lock"));
}

TEST_CASE("a rewriting that was cut anywhere is finished, and keeps mail that came since", "[sync]") {
  const TempDir directory;
  const std::string path = directory / "box", copy = directory / ".box.kin-new";
  const Fd parent = open_directory(directory.path());
  std::string marked = kLf, shorter = kLf.substr(kLf.find("From bob"));
  marked.replace(marked.find("Status: O\n"), 10, "Status: RO\nX-Status: D\n");
  const std::string news = "From carol@example.org Thu Jan  5 03:04:05 2023\nSubject: news\n\nnews\n\n";
  for (const std::string& after : {marked, shorter, std::string()}) {
    for (std::size_t cut = 0; cut <= after.size() + 1; cut += 7) {
      for (const bool has_news : {false, true}) {
        INFO(after.size() << " cut at " << cut << (has_news ? " with news" : ""));
        // As it is being copied over; and at the end, when the file has its new length.
        std::string half = after.substr(0, cut) + (cut < kLf.size() ? kLf.substr(cut) : "");
        if (cut > after.size()) half = after;
        put(path, half + (has_news ? news : ""));
        MemoryView source(as_bytes(after));
        value_of(mbox::write_copy(place_in(parent, "box"), source, hashes_of(kLf)));
        auto store = open_store(path);
        const std::size_t messages = hashes_of(after).size();
        REQUIRE(scan(*store, "").size() == messages + (has_news ? 1 : 0));
        REQUIRE(get(path).starts_with(after));
        REQUIRE(get(path).size() >= after.size());
        if (has_news) REQUIRE(get(path).ends_with(news));
        if (!has_news) REQUIRE(get(path) == after);
        REQUIRE_FALSE(std::filesystem::exists(copy));
      }
    }
  }
}

TEST_CASE("a safety copy that is cut or changed is discarded, and the mbox is as it was", "[sync]") {
  const TempDir directory;
  const std::string path = directory / "box", copy = directory / ".box.kin-new";
  const Fd parent = open_directory(directory.path());
  MemoryView source(as_bytes("From x Mon Jan  2 03:04:05 2023\nSubject: x\n\n"));
  value_of(mbox::write_copy(place_in(parent, "box"), source, hashes_of(kLf)));
  const std::string whole = get(copy);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    for (const std::string& bad : {whole.substr(0, i), changed}) {
      put(path, kLf);
      put(copy, bad);
      auto store = open_store(path);
      REQUIRE(scan(*store, "").size() == 3);
      REQUIRE(get(path) == kLf);
      REQUIRE_FALSE(std::filesystem::exists(copy));
    }
  }
}

TEST_CASE("a safety copy that cannot be written leaves the mbox as it was", "[sync]") {
  const TempDir directory;
  put(directory / "box", kLf);
  auto store = open_store(directory / "box");
  const Entry first = entry_with(*store, "", "Subject: first");
  std::filesystem::create_directory(directory / ".box.kin-new");
  CHECK_FALSE(apply(*store, update_change("", first, 0)));
  CHECK(get(directory / "box") == kLf);
  CHECK_FALSE(std::filesystem::exists(directory / "box.lock"));
}

TEST_CASE("the times of an mbox are kept, and only new mail makes it look new", "[sync]") {
  const TempDir directory;
  const std::string path = directory / "box";
  put(path, kLf);
  const time_t written = 1'600'000'000, read = 1'600'000'100;
  set_times(path, read, written);
  auto store = open_store(path);
  const auto before = value_of(store->folder_fingerprint(""));
  REQUIRE(before.has_value());
  CHECK(value_of(store->folder_fingerprint("")) == before);
  const Entry first = entry_with(*store, "", "Subject: first");
  CHECK(stat_of(path).st_atim.tv_sec == read);
  value_of(apply(*store, update_change("", first, 0)));
  struct stat info = stat_of(path);
  CHECK(info.st_atim.tv_sec == read);
  CHECK(info.st_mtim.tv_sec == written);
  CHECK(info.st_mtim.tv_nsec == 223);
  const auto after = value_of(store->folder_fingerprint(""));
  REQUIRE(after.has_value());
  CHECK(after != before);
  value_of(apply(*store, add_change("", "Subject: x\n\n")));
  info = stat_of(path);
  CHECK(info.st_atim.tv_sec == read);
  CHECK(info.st_mtim.tv_sec > written + 1000);
  CHECK_FALSE(
      value_of(store->folder_fingerprint("")).has_value());  // it may change again within the same stamp
}

TEST_CASE("each mbox below a directory is a folder, and nothing else is", "[sync]") {
  const TempDir directory, outside;
  put(directory / "inbox", kLf);
  put(directory / "empty", "");
  put(directory / "lists/kin", with_crlf(kLf));
  put(directory / "notes.txt", "no mbox");
  put(directory / "only/text", "no mbox");
  for (const char* const name : {".hidden", "inbox.msf", "old~", "x.lock"}) put(directory / name, kLf);
  put(outside / "box", kLf);
  std::filesystem::create_symlink(outside / "box", directory / "link");
  std::filesystem::create_directory_symlink(outside.path(), directory / "lists/away");
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  auto store = open_store(directory.path());
  CHECK(folders_of(*store) == std::vector<std::string>{"empty", "inbox", "lists", "lists/kin"});
  CHECK(scan(*store, "empty").empty());
  CHECK(scan(*store, "inbox").size() == 3);
  CHECK(scan(*store, "lists").empty());
  CHECK(scan(*store, "lists/kin").size() == 3);
  const auto ignore = [](const Entry&) { return Result<void>(); };
  for (const char* const bad : {"gone", "link", "lists/away/box", "notes.txt", "fifo", "inbox/x"})
    CHECK(code_of(store->scan(bad, ignore, [](const std::string&, const Error&) {})) == ErrorCode::not_found);
  for (const char* const bad : {"../x", "a/../../x", ".hidden2", "x.lock", "a//b", "link", "lists/away/new",
                                "notes.txt", "fifo", "", "inbox/x"}) {
    INFO(bad);
    CHECK_FALSE(apply(*store, add_change(bad, "Subject: x\n\n")));
  }
  CHECK(get(outside / "box") == kLf);
  CHECK(testing::entries_in(outside.path()) == 1);
  CHECK(get(directory / "notes.txt") == "no mbox");
  CHECK(get(directory / "inbox") == kLf);
}

TEST_CASE("mbox folders are made, moved between and removed", "[sync]") {
  const TempDir directory;
  auto store = open_store(directory / "mail");
  CHECK(folders_of(*store).empty());
  value_of(apply(*store, directory_change(Kind::add, "a")));
  CHECK((stat_of(directory / "mail/a").st_mode & 07777) == 0600);
  value_of(apply(*store, directory_change(Kind::add, "a/b")));  // so that it is a directory
  value_of(apply(*store, directory_change(Kind::add, "a")));
  CHECK(folders_of(*store) == std::vector<std::string>{"a", "a/b"});
  const Entry entry = value_of(apply(*store, add_change("new/folder", "Subject: x\n\nx\n", kFlagged)));
  CHECK((stat_of(directory / "mail/new/folder").st_mode & 07777) == 0600);
  CHECK(code_of(apply(*store, add_change("a", "Subject: x\n\n"))) == ErrorCode::unsupported);
  CHECK(code_of(apply(*store, add_change("new/folder/below", "Subject: x\n\n"))) == ErrorCode::unsupported);
  CHECK(code_of(apply(*store, directory_change(Kind::remove, "new/folder"))) == ErrorCode::busy);

  StoreChange move = change_of(Kind::move, "new/folder", entry);
  move.item.folder = "a/b";
  move.item.flags = kFlagged | kSeen;
  const Entry moved = value_of(apply(*store, move));
  CHECK(moved.item.folder == "a/b");
  CHECK(scan(*store, "new/folder").empty());
  REQUIRE(scan(*store, "a/b").size() == 1);
  CHECK(scan(*store, "a/b")[0].item.flags == (kFlagged | kSeen));
  CHECK(text_of(*store, "a/b", moved) == "Subject: x\n\nx\n");
  CHECK_FALSE(apply(*store, move));  // it is gone from there

  value_of(apply(*store, directory_change(Kind::remove, "new/folder")));
  value_of(apply(*store, directory_change(Kind::remove, "new/folder")));
  CHECK(folders_of(*store) == std::vector<std::string>{"a", "a/b"});
  value_of(apply(*store, add_change("new", "Subject: y\n\n")));  // the directory is empty, and gives way
  CHECK(scan(*store, "new").size() == 1);
}

TEST_CASE("a message that cannot be removed where it was is not lost by a move", "[sync]") {
  const TempDir directory;
  put(directory / "a", kLf);
  auto store = open_store(directory.path());
  StoreChange move = change_of(Kind::move, "a", entry_with(*store, "a", "Subject: third"));
  move.item.folder = "b";
  put(directory / "a.lock", "1\n");
  CHECK(code_of(apply(*store, move)) == ErrorCode::busy);
  CHECK(get(directory / "a") == kLf);
  std::filesystem::remove(directory / "a.lock");
  value_of(apply(*store, move));
  CHECK(scan(*store, "a").size() == 2);
  CHECK(scan(*store, "b").size() == 1);
}

TEST_CASE("a file that begins as an mbox and cannot be taken apart is one file", "[sync]") {
  const TempDir directory;
  const std::string odd =
      "From nobody, on no day\n\nFrom x Mon Jan  2 03:04:05 2023\n\n" + std::string("\0\1", 2);
  put(directory / "sub/odd", odd);
  put(directory / "big", kLf + kLf);
  put(directory / "box", kLf);
  Options options = quick();
  options.most_bytes = kLf.size();
  auto store = open_store(directory.path(), options);
  CHECK(folders_of(*store) == std::vector<std::string>{"", "box", "sub"});
  const std::vector<Entry> files = scan(*store, "sub");
  REQUIRE(files.size() == 1);
  CHECK(files[0].local == "file:odd");
  CHECK(files[0].item.type == ItemType::file);
  CHECK(files[0].item.name == "odd");
  CHECK(text_of(*store, "sub", files[0]) == odd);
  REQUIRE(scan(*store, "").size() == 1);
  CHECK(text_of(*store, "", scan(*store, "")[0]) == kLf + kLf);
  // No message may make a box one that is too large.
  CHECK(code_of(apply(*store, add_change("box", "Subject: x\n\n"))) == ErrorCode::unsupported);
  CHECK(get(directory / "box") == kLf);

  const ino_t inode = stat_of(directory / "sub/odd").st_ino;
  StoreChange update = change_of(Kind::update, "sub", files[0]);
  update.has_content = true;
  update.content = Bytes{'F', 'r', 'o', 'm', ' ', 'x'};
  update.item.mode = 0640;
  update.item.time = {1'500'000'000, 5};
  const Entry updated = value_of(apply(*store, update));
  CHECK(get(directory / "sub/odd") == "From x");
  CHECK(stat_of(directory / "sub/odd").st_ino == inode);
  CHECK(updated.item.mode == 0640);
  CHECK(updated.item.time == Timestamp{1'500'000'000, 5});
  CHECK(scan(*store, "sub")[0].fingerprint == updated.fingerprint);
  CHECK(code_of(apply(*store, update)) == ErrorCode::busy);
  CHECK(code_of(store->read("sub", files[0])) == ErrorCode::busy);

  StoreChange add = update;
  add.kind = Kind::add;
  add.item.folder = "sub/more";
  CHECK(value_of(apply(*store, add)).local == "file:odd");
  CHECK(value_of(apply(*store, add)).local == "file:odd");  // there already
  CHECK(get(directory / "sub/more/odd") == "From x");
  add.content.push_back('y');
  CHECK(code_of(apply(*store, add)) == ErrorCode::busy);
  add.item.name = "other";
  add.content = Bytes{'n', 'o', 'n', 'e'};
  CHECK(code_of(apply(*store, add)) == ErrorCode::unsupported);
  value_of(apply(*store, change_of(Kind::remove, "sub", updated)));
  CHECK_FALSE(std::filesystem::exists(directory / "sub/odd"));
  CHECK(testing::entries_in(directory / "sub") == 1);

  put(directory / "root", odd);
  auto root = open_store(directory / "root");
  REQUIRE(scan(*root, "").size() == 1);
  CHECK(scan(*root, "")[0].item.name == "mbox");
  CHECK(text_of(*root, "", scan(*root, "")[0]) == odd);
}

TEST_CASE("an mbox that is not there is made by the first message", "[sync]") {
  const TempDir directory;
  auto store = value_of(open_mbox(directory / "deep/box"));
  CHECK(folders_of(*store).empty());
  const std::string path = directory / "content";
  put(path, "Subject: by path\n\nx\n");
  StoreChange change = add_change("", "");
  change.content_path = path;
  value_of(apply(*store, change));
  CHECK(texts(*store, "") == std::vector<std::string>{"Subject: by path\n\nx\n"});
  CHECK((stat_of(directory / "deep/box").st_mode & 07777) == 0600);
}

TEST_CASE("an mbox is recognised, and a Maildir and others are not taken for one", "[sync]") {
  const TempDir directory;
  put(directory / "mail/inbox", kLf);
  put(directory / "text/a", "From here\n");
  put(directory / "maildir/x", kLf);
  for (const char* const name : {"cur", "new", "tmp"})
    std::filesystem::create_directories(directory / "maildir" + ("/" + std::string(name)));
  std::filesystem::create_directory(directory / "empty");
  CHECK(detect_mbox(directory / "mail/inbox") == 85);
  CHECK(detect_mbox(directory / "text/a") == 85);
  CHECK(detect_mbox(directory / "mail") == 70);
  CHECK(detect_mbox(directory / "text") == 0);
  CHECK(detect_mbox(directory / "maildir") == 0);
  CHECK(detect_mbox(directory / "empty") == 0);
  CHECK(detect_mbox(directory / "gone") == 0);
  CHECK(detect_mbox("/dev/null") == 0);
}

TEST_CASE("mail that another program delivers while flags change is not lost", "[sync]") {
  constexpr int kMessages = 40;
  const TempDir directory;
  put(directory / "box", many_messages(20));
  const pid_t deliverer = ::fork();
  if (deliverer == 0) {
    for (int i = 0; i < kMessages; ++i) {
      const std::string text =
          fmt::format("From x Mon Jan  2 03:04:05 2023\nSubject: delivery {}\n\nx\n\n", i);
      // Locks by itself, with nothing of ours but the order.
      const Fd fd(::open((directory / "box").c_str(), O_WRONLY | O_APPEND));
      struct flock lock {};
      lock.l_type = F_WRLCK;
      if (::fcntl(fd.get(), F_SETLKW, &lock) != 0) ::_exit(1);
      int dotlock = -1;
      while ((dotlock = ::open((directory / "box.lock").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600)) < 0)
        ::usleep(1000);
      for (const char c : text)
        if (::write(fd.get(), &c, 1) != 1) ::_exit(1);
      ::close(dotlock);
      ::unlink((directory / "box.lock").c_str());
      ::usleep(2000);
    }
    ::_exit(0);
  }
  Options options;
  options.lock_wait = std::chrono::seconds(30);
  auto store = open_store(directory / "box", options);
  int status = 0;
  for (bool is_done = false; !is_done;) {
    is_done = ::waitpid(deliverer, &status, WNOHANG) == deliverer;
    std::vector<StoreChange> changes;
    for (const Entry& entry : scan(*store, ""))
      changes.push_back(update_change("", entry, entry.item.flags ^ kFlagged, {"seen-by-test"}));
    for (const Result<Entry>& answer : store->apply(std::move(changes))) value_of(answer);
  }
  CHECK(status == 0);
  const std::vector<std::string> found = texts(*store, "");
  CHECK(found.size() == 20 + kMessages);
  for (int i = 0; i < kMessages; ++i)
    CHECK(std::count(found.begin(), found.end(), fmt::format("Subject: delivery {}\n\nx\n", i)) == 1);
}

TEST_CASE("killed at any moment, a change of an mbox loses no message", "[sync]") {
  const TempDir directory;
  put(directory / "box", many_messages(300));
  Options options = quick();
  options.dotlock_stale = std::chrono::seconds(-1);  // those of the killed
  const std::vector<std::string> before = texts(*open_store(directory / "box", options), "");
  for (int round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto opened = open_mbox_with(directory / "box", options);
      for (std::uint8_t flags = 0; opened; ++flags) {
        std::vector<StoreChange> changes;
        const auto collect = [&](Entry entry) {
          changes.push_back(update_change("", entry, flags % 64, {std::string(1 + flags % 50, 'w')}));
          return Result<void>();
        };
        if (!(*opened)->scan("", collect, [](const std::string&, const Error&) {})) ::_exit(1);
        (*opened)->apply(std::move(changes));
      }
    }
    ::usleep(static_cast<useconds_t>(20'000 + 3'700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    auto store = open_store(directory / "box", options);
    INFO(round);
    REQUIRE(texts(*store, "") == before);
    std::vector<StoreChange> nothing;
    REQUIRE(store->apply(std::move(nothing)).empty());
    REQUIRE_FALSE(std::filesystem::exists(directory / ".box.kin-new"));
  }
}

}  // namespace mbox_test
}  // namespace kin::sync

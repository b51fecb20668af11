#include "lib/sync/replica_scan.h"

#include "lib/base/pause.h"
#include "lib/sync/base_finder.h"
#include "lib/sync/mounted_store.h"
#include "tests/support/as_nobody.h"
#include "tests/support/expect.h"
#include "tests/support/memory_table.h"
#include "tests/support/separate_mount.h"
#include "tests/support/temp_dir.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>

namespace kin::sync {
namespace scan_test {
namespace {

using testing::AsNobody;
using testing::require_ok;
using testing::TempDir;
using testing::value_of;
namespace fs = std::filesystem;

constexpr const char* kMessage = "From: a\nSubject: b\n\n";

// A store of some kind, with a message or file in each of three folders: at/one, at/one/two, other.
struct Stored {
  explicit Stored(const std::string& its_kind) : kind(its_kind) {
    for (const char* const folder : {"at/one", "at/one/two", "other"}) add(folder, "first");
  }

  void add(const std::string& folder, const std::string& text) const {
    const std::string path = root / folder;
    if (kind == "maildir") {
      for (const char* const part : {"/cur", "/new", "/tmp"}) fs::create_directories(path + part);
      std::ofstream(path + "/cur/" + text + ".host:2,S") << kMessage << text << "\n";
    } else if (kind == "mbox") {
      fs::create_directories(path);
      std::ofstream(path + "/box", std::ios::app) << "From a@b Thu Apr 14 00:00:00 2005\n"
                                                  << kMessage << text << "\n\n";
    } else {
      fs::create_directories(path);
      std::ofstream(path + (kind == "mh" ? text == "first" ? "/1" : "/2" : "/" + text))
          << kMessage << text << "\n";
    }
  }
  void set_mode(const std::string& directory, mode_t mode) const {
    REQUIRE(::chmod((root / directory).c_str(), mode) == 0);
  }

  const std::string kind;
  TempDir root;
};

struct Known {
  explicit Known(const Stored& stored)
      : kind(find_store_kind(stored.kind)), store(value_of(kind->open(stored.root.path()))) {}

  ScanCounts scan(const std::function<void()>& on_content = {}) {
    skipped.clear();
    ScanObserver observer;
    if (on_content)
      observer.on_content = [&](const ObjectId&, ByteView) -> Result<void> {
        on_content();
        return {};
      };
    observer.on_skipped = [&](const std::string& what, const Error& error) {
      skipped.insert(what);
      messages += error.message() + "\n";
    };
    return value_of(scan_store(*store, kind->is_mail, *replica, observer, {}));
  }

  const StoreKind* kind;
  testing::MemoryTable table;
  std::unique_ptr<Replica> replica = value_of(Replica::open(table, "here"));
  std::unique_ptr<SyncStore> store;
  std::set<std::string> skipped;
  std::string messages;
};

}  // namespace

TEST_CASE("what is below a directory that cannot be read keeps its last known state, in all kinds of stores",
          "[sync]") {
  for (const StoreKind& kind : store_kinds())
    for (const mode_t mode : {0000u, 0400u, 0100u}) {
      INFO(kind.name << ", mode " << mode);
      const Stored stored(kind.name);
      const AsNobody nobody(stored.root.path());
      Known known(stored);
      known.scan();
      CHECK(known.skipped.empty());
      const std::uint64_t items = known.replica->live_items();
      const SetDigest digest = known.replica->digest();
      for (const char* const closed : {"at", "at/one"}) {
        // The mode of a directory in a tree is its own state, so that this is another digest there.
        stored.set_mode(closed, mode);
        stored.add("other", "second");
        const ScanCounts counts = known.scan();
        CHECK(known.skipped == std::set<std::string>{closed});
        CHECK(known.messages.find(stored.root / closed) != std::string::npos);
        CHECK(known.messages.find("Permission denied") != std::string::npos);
        CHECK(counts.removed == 0);
        CHECK(counts.added == 1);
        CHECK(counts.skipped == 1);
        CHECK(counts.never_seen.empty());
        CHECK(known.replica->live_items() == items + 1);
        known.scan();  // no less the second time
        CHECK(known.replica->live_items() == items + 1);
        stored.set_mode(closed, 0700);
        known.scan();
        CHECK(known.skipped.empty());
        CHECK(known.replica->live_items() == items + 1);
        // What is gone elsewhere goes nevertheless.
        stored.set_mode(closed, mode);
        if (kind.name == std::string("mbox"))
          fs::remove_all(stored.root / "other");
        else
          fs::remove(stored.root /
                     ("other/" + std::string(kind.name == std::string("maildir") ? "cur/second.host:2,S"
                                             : kind.name == std::string("mh")    ? "2"
                                                                                 : "second")));
        known.scan();
        if (kind.name == std::string("mbox")) {
          CHECK(known.replica->live_items() < items);
          stored.add("other", "first");
        } else {
          CHECK(known.replica->live_items() == items);
        }
        stored.set_mode(closed, 0700);
        known.scan();
        CHECK(known.replica->live_items() == items);
      }
      if (kind.is_mail) CHECK(known.replica->digest() == digest);
      // And what is gone when it can be read again was deleted.
      fs::remove_all(stored.root / "at");
      CHECK(known.scan().removed > 0);
      CHECK(known.replica->live_items() < items);
    }
}

TEST_CASE("a message that moves to where was looked already is no deletion", "[sync]") {
  const Stored stored(GENERATE("maildir", "mh"));
  INFO(stored.kind);
  Known known(stored);
  known.scan();
  // While a message of a folder in between is read, that of the last one moves to the first.
  stored.add("at/one/two", "second");
  const bool is_maildir = stored.kind == "maildir";
  const std::string from = stored.root / (is_maildir ? "other/cur/first.host:2,S" : "other/1");
  const std::string to = stored.root / (is_maildir ? "at/one/cur/moved.host:2,S" : "at/one/7");
  const ScanCounts counts = known.scan([&] {
    if (fs::exists(from)) fs::rename(from, to);
  });
  CHECK(counts.added == 2);
  CHECK(counts.removed == 1);
  CHECK(known.scan().added == 0);
  CHECK(known.scan().removed == 0);
}

TEST_CASE("a deletion is noted, and once", "[sync]") {
  const Stored stored(GENERATE("maildir", "mh", "tree"));
  INFO(stored.kind);
  Known known(stored);
  stored.add("other", "second");
  known.scan();
  fs::remove(stored.root / (stored.kind == "maildir" ? "other/cur/first.host:2,S"
                            : stored.kind == "mh"    ? "other/1"
                                                     : "other/first"));
  CHECK(known.scan().removed == 1);
  const ScanCounts again = known.scan();
  CHECK(again.removed + again.added + again.changed == 0);
}

TEST_CASE("a directory that never could be read is named, and comes in once it can be", "[sync]") {
  for (const StoreKind& kind : store_kinds()) {
    INFO(kind.name);
    const Stored stored(kind.name);
    const AsNobody nobody(stored.root.path());
    Known known(stored);
    stored.set_mode("at/one", 0);
    CHECK(known.scan().never_seen == stored.root / "at/one");
    CHECK(known.skipped == std::set<std::string>{"at/one"});
    CHECK(known.replica->live_items() > 0);
    stored.set_mode("at/one", 0700);
    CHECK(known.scan().added >= 2);
    CHECK(known.skipped.empty());
  }
}

TEST_CASE("a Maildir folder whose messages cannot be listed is skipped, and not the others", "[sync]") {
  const Stored stored("maildir");
  const AsNobody nobody(stored.root.path());
  Known known(stored);
  known.scan();
  const std::uint64_t items = known.replica->live_items();
  for (const char* const part : {"other/cur", "other/new"}) {
    stored.set_mode(part, 0);
    stored.add("at/one", part + 6);
    CHECK(known.scan().removed == 0);
    CHECK(known.skipped == std::set<std::string>{"other"});
    stored.set_mode(part, 0700);
  }
  CHECK(known.replica->live_items() == items + 2);
}

// A store whose scans are stopped at some step, as by a kill: what was committed until then is what is known.
class StoppedStore : public SyncStore {
 public:
  StoppedStore(SyncStore& store, int steps) : store_(store), left_(steps) {}

  const char* kind() const override { return store_.kind(); }
  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override {
    KIN_TRY(step());
    return store_.folders(on_skipped);
  }
  Result<std::optional<std::uint64_t>> folder_fingerprint(const std::string& folder) override {
    return store_.folder_fingerprint(folder);
  }
  Result<void> scan(const std::string& folder, const OnEntry& on_entry,
                    const OnSkipped& on_skipped) override {
    return store_.scan(
        folder,
        [&](Entry entry) -> Result<void> {
          KIN_TRY(step());
          return on_entry(std::move(entry));
        },
        on_skipped);
  }
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override {
    KIN_TRY(step());
    return store_.read(folder, entry);
  }
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override {
    return store_.apply(std::move(changes));
  }
  std::string path_of(const std::string& folder, const Entry& entry) const override {
    return store_.path_of(folder, entry);
  }

  bool was_stopped() const { return left_ < 0; }

 private:
  Result<void> step() {
    if (--left_ < 0) return Error(ErrorCode::cancelled, "stopped");
    return {};
  }

  SyncStore& store_;
  int left_;
};

TEST_CASE("a scan of an MH folder that was packed or sorted may be killed at any step", "[sync]") {
  // The messages of a folder by number, before and after: of a and b there are two.
  const std::string before = "abcdabef";
  const std::string after = GENERATE("bcdabef", "bcdaef", "fedcbaab", "cab", "hgbaax", "badcef", "b");
  const bool commits_always = GENERATE(false, true);
  INFO(after << (commits_always ? ", committed at each message" : ""));
  const auto fill = [](const TempDir& root, const std::string& texts, const std::string& was) {
    std::map<char, std::vector<std::string>> files;  // of the same content; each keeps its inode
    const std::string folder = root / "inbox";
    fs::create_directories(folder);
    for (std::size_t i = 0; i < was.size(); ++i) {
      fs::rename(folder + "/" + std::to_string(i + 1), folder + "/,was" + std::to_string(i));
      files[was[i]].push_back(folder + "/,was" + std::to_string(i));
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string to = folder + "/" + std::to_string(i + 1);
      auto& old = files[texts[i]];
      if (old.empty()) {
        std::ofstream(to) << kMessage << texts[i] << "\n";
      } else {
        fs::rename(old.back(), to);
        old.pop_back();
      }
    }
    for (const auto& [text, left] : files)
      for (const std::string& path : left) fs::remove(path);
  };
  const auto state_of = [](Replica& replica) {
    std::multiset<std::string> out;
    require_ok(replica.for_each_live([&](const KnownItem& known) -> Result<void> {
      const auto row = value_of(replica.entry(known.item.folder, known.local));
      const bool is_folder = known.item.type == ItemType::directory;
      CHECK((is_folder || (row && row->item == known.id)));
      out.insert(known.item.object.hex() + " at " + known.local);
      return {};
    }));
    return out;
  };
  std::optional<std::multiset<std::string>> wanted;
  for (int steps = 1000;; steps = steps == 1000 ? 0 : steps + 1) {
    INFO(steps << " steps");
    const TempDir root;
    fill(root, before, "");
    const StoreKind* const kind = find_store_kind("mh");
    const auto store = value_of(kind->open(root.path()));
    testing::MemoryTable table;
    auto replica = value_of(Replica::open(table, "here"));
    value_of(scan_store(*store, true, *replica, {}, {}));
    fill(root, after, before);
    StoppedStore stopped(*store, steps);
    ScanObserver observer;
    if (commits_always)
      observer.on_content = [&](const ObjectId&, ByteView) { return replica->commit(false); };
    static_cast<void>(scan_store(stopped, true, *replica, observer, {}));
    replica = value_of(Replica::open(table, "here"));
    const ScanCounts counts = value_of(scan_store(*store, true, *replica, {}, {}));
    CHECK(counts.skipped == 0);
    const auto state = state_of(*replica);
    if (!wanted) {
      wanted = state;
      CHECK(state.size() == after.size() + 1);
      REQUIRE_FALSE(stopped.was_stopped());
      continue;
    }
    CHECK(state == *wanted);
    if (!stopped.was_stopped()) break;
  }
}

TEST_CASE("a message that was touched and copied is there twice", "[sync]") {
  const TempDir root;
  fs::create_directories(root / "inbox");
  std::ofstream(root / "inbox/1") << kMessage << "text\n";
  const auto store = value_of(find_store_kind("mh")->open(root.path()));
  testing::MemoryTable table;
  auto replica = value_of(Replica::open(table, "here"));
  value_of(scan_store(*store, true, *replica, {}, {}));
  const std::uint64_t items = replica->live_items();
  fs::copy_file(root / "inbox/1", root / "inbox/2");
  fs::last_write_time(root / "inbox/1", fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(value_of(scan_store(*store, true, *replica, {}, {})).added == 1);
  CHECK(replica->live_items() == items + 1);
}

TEST_CASE("what is missing is noted though the second look at its folder fails", "[sync]") {
  const TempDir root;
  for (int i = 1; i <= 4; ++i) {
    fs::create_directories(root / "inbox");
    std::ofstream(root / ("inbox/" + std::to_string(i))) << kMessage << i << "\n";
  }
  const auto store = value_of(find_store_kind("mh")->open(root.path()));
  testing::MemoryTable table;
  auto replica = value_of(Replica::open(table, "here"));
  value_of(scan_store(*store, true, *replica, {}, {}));
  for (int i = 2; i <= 4; ++i)
    fs::rename(root / ("inbox/" + std::to_string(i)), root / ("inbox/" + std::to_string(i - 1)));

  // One that cannot be looked at from its third time on.
  class Failing : public StoppedStore {
   public:
    explicit Failing(SyncStore& store) : StoppedStore(store, 1000) {}
    Result<void> scan(const std::string& folder, const OnEntry& on_entry,
                      const OnSkipped& on_skipped) override {
      if (++scans_ > 2) return Error(ErrorCode::busy, "is locked");
      return StoppedStore::scan(folder, on_entry, on_skipped);
    }

   private:
    int scans_ = 0;
  } failing(*store);
  CHECK(value_of(scan_store(failing, true, *replica, {}, {})).removed == 0);
  CHECK(replica->live_items() == 5);
  replica = value_of(Replica::open(table, "here"));
  CHECK(value_of(scan_store(*store, true, *replica, {}, {})).removed == 1);
  CHECK(replica->live_items() == 4);
}

TEST_CASE("a scan tells of its progress also while a content is read slowly", "[sync]") {
  const TempDir root;
  std::ofstream(root / "large") << std::string(1 << 20, 'x');
  const auto store = value_of(find_store_kind("tree")->open(root.path()));
  class Slow : public StoppedStore {
   public:
    explicit Slow(SyncStore& store) : StoppedStore(store, 1000) {}
    Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override {
      class Source : public ByteSource {
       public:
        explicit Source(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
        Result<std::size_t> read(std::span<std::uint8_t> into) override {
          pause_for(std::chrono::milliseconds(210));
          return source_->read(into);
        }

       private:
        const std::unique_ptr<ByteSource> source_;
      };
      KIN_TRY_ASSIGN(auto source, StoppedStore::read(folder, entry));
      return std::unique_ptr<ByteSource>(std::make_unique<Source>(std::move(source)));
    }
  } slow(*store);
  testing::MemoryTable table;
  const auto replica = value_of(Replica::open(table, "here"));
  int told = 0;
  ScanObserver observer;
  observer.on_progress = [&](const std::string&, std::uint64_t) { ++told; };
  value_of(scan_store(slow, false, *replica, observer, {}));
  CHECK(told >= 4);
}

TEST_CASE("mounts are found by what the system says of them", "[sync]") {
  const std::string info =
      "22 27 0:20 / / rw - ext4 /dev/a rw\n"
      "23 22 0:21 / /home/mail rw shared:2 - ext4 /dev/b rw\n"
      "24 22 0:22 /sub /home/mail/at/a\\040b\\134c rw - ext4 /dev/b rw\n"
      "25 22 0:22 / /home/mail/at rw - tmpfs x rw\n25 22 0:22 / /home/mail/at rw - tmpfs x rw\n"
      "26 22 0:22 / /home/mailbox rw - tmpfs x rw\nx y z\n\n27 22 0:23 / /home/mail/";
  CHECK(mounts_below("/home/mail", info) == std::vector<std::string>{"at", "at/a b\\c"});
  CHECK(mounts_below("/", info).size() == 5);
  CHECK(mounts_below("/elsewhere", info).empty());
}

namespace {

// A store with a directory on which a disk is mounted, as far as the system says.
struct StoredWithDisk {
  StoredWithDisk(const StoreKind& its_kind, std::string its_place)
      : kind(its_kind), stored(its_kind.name), place(std::move(its_place)) {
    REQUIRE(::chmod(elsewhere.path().c_str(), 0755) == 0);
    list(true);
  }

  void list(bool is_mounted) const {
    std::ofstream(mounts) << "1 2 0:3 / " << (is_mounted ? stored.root / place : "/proc") << " rw - x y z\n";
  }
  // Its directory is another one then.
  void unmount() const {
    fs::rename(stored.root / place, elsewhere / "disk");
    fs::create_directory(stored.root / place);
    list(false);
  }
  void mount() const {
    fs::remove(stored.root / place);
    fs::rename(elsewhere / "disk", stored.root / place);
    list(true);
  }
  ScanCounts scan() {
    store = value_of(
        MountedStore::open(value_of(kind.open(stored.root.path())), stored.root.path(), *replica, mounts));
    ScanObserver observer;
    skipped.clear();
    observer.on_skipped = [&](const std::string& what, const Error& error) {
      skipped.push_back(what);
      why = error.message();
    };
    const ScanCounts counts = value_of(scan_store(*store, kind.is_mail, *replica, observer, {}));
    require_ok(store->remember());
    return counts;
  }

  const StoreKind& kind;
  const Stored stored;
  const std::string place;
  const TempDir elsewhere;
  const std::string mounts = elsewhere / "mountinfo";
  testing::MemoryTable table;
  std::unique_ptr<Replica> replica = value_of(Replica::open(table, "here"));
  std::unique_ptr<MountedStore> store;
  std::vector<std::string> skipped;
  std::string why;  // the last one
};

}  // namespace

TEST_CASE("an empty directory whose disk is not mounted loses nothing, in all kinds of stores", "[sync]") {
  for (const StoreKind& kind : store_kinds()) {
    INFO(kind.name);
    StoredWithDisk with(kind, "at");
    with.scan();
    CHECK(with.skipped.empty());
    const SetDigest digest = with.replica->digest();
    with.unmount();
    with.stored.set_mode("at", 0555);
    for (int again = 0; again < 2; ++again) {
      const ScanCounts counts = with.scan();
      CHECK(counts.removed + counts.changed + counts.added == 0);
      CHECK(counts.never_seen.empty());
      CHECK(with.skipped == std::vector<std::string>{"at"});
      CHECK(with.replica->digest() == digest);
    }
    // Nothing is put there, where it would be hidden later.
    StoreChange change;
    change.item.type = ItemType::directory;
    change.item.folder = kind.is_mail ? "" : "at";
    change.item.name = kind.is_mail ? "at/new" : "new";
    const auto answers = with.store->apply({change});
    REQUIRE(answers.size() == 1);
    CHECK(testing::code_of(answers[0]) == ErrorCode::busy);
    CHECK(fs::is_empty(with.stored.root / "at"));

    with.mount();
    CHECK(with.scan().removed == 0);
    CHECK(with.replica->digest() == digest);
    CHECK(with.skipped.empty());
    // What is deleted from it while it is there was deleted; likewise if its directory is gone.
    fs::remove_all(with.stored.root / "at/one");
    CHECK(with.scan().removed > 0);
    with.stored.add("at/one", "first");
    const std::uint64_t fewer = (with.scan(), with.replica->live_items());
    fs::remove_all(with.stored.root / "at");
    with.list(false);
    CHECK(with.scan().removed > 0);
    CHECK(with.replica->live_items() < fewer);
    CHECK(with.skipped.empty());
  }
}

TEST_CASE("a mount is not forgotten where the system does not say what is mounted", "[sync]") {
  for (const StoreKind& kind : store_kinds()) {
    INFO(kind.name);
    StoredWithDisk with(kind, "at");
    with.scan();
    const SetDigest digest = with.replica->digest();
    fs::remove(with.mounts);
    CHECK(with.scan().removed == 0);
    CHECK(with.skipped.empty());
    with.unmount();
    fs::remove(with.mounts);
    CHECK(with.scan().removed == 0);
    CHECK(with.skipped == std::vector<std::string>{"at"});
    CHECK(with.why.find("could not be found out") != std::string::npos);
    with.list(false);
    CHECK(with.scan().removed == 0);
    CHECK(with.skipped == std::vector<std::string>{"at"});
    CHECK(with.replica->digest() == digest);
    // A directory with something else in it is one that is wanted so.
    with.stored.add("at/three", "second");
    CHECK(with.scan().removed > 0);
    CHECK(with.skipped.empty());
  }
}

TEST_CASE("a mount is not forgotten while it cannot be looked at", "[sync]") {
  for (const StoreKind& kind : store_kinds()) {
    INFO(kind.name);
    StoredWithDisk with(kind, "at/one");
    with.scan();
    const std::uint64_t items = with.replica->live_items();
    with.stored.set_mode("at", 0);  // a server that does not answer looks the same
    {
      const AsNobody nobody(with.stored.root.path());
      CHECK(with.scan().removed == 0);
    }
    CHECK(std::count(with.skipped.begin(), with.skipped.end(), "at/one") == 1);
    with.stored.set_mode("at", 0755);
    with.unmount();
    // Nor where there is a directory that cannot be opened in its place.
    with.stored.set_mode("at/one", 0);
    {
      const AsNobody nobody(with.stored.root.path());
      CHECK(with.scan().removed == 0);
      CHECK(with.skipped == std::vector<std::string>{"at/one"});
    }
    // Of mbox a directory without mailboxes is none; but that the disk is in is.
    with.stored.set_mode("at/one", 0755);
    CHECK(with.scan().removed == 0);
    CHECK(with.skipped == std::vector<std::string>{"at/one"});
    CHECK(with.replica->live_items() == items);
  }
}

TEST_CASE("a disk that is mounted when it is looked at is there at the first look", "[sync]") {
  for (const StoreKind& kind : store_kinds()) {
    INFO(kind.name);
    StoredWithDisk with(kind, "at");
    with.scan();
    const std::uint64_t items = with.replica->live_items();
    for (int again = 0; again < 2; ++again) {
      with.unmount();
      with.list(true);  // so it is on demand
      const testing::MountOnDemand mount(with.stored.root / "at", with.elsewhere / "disk");
      CHECK(with.scan().removed == 0);
      CHECK(with.skipped.empty());
      CHECK(with.replica->live_items() == items);
      fs::remove_all(with.elsewhere / "disk.below");
    }
  }
}

TEST_CASE("of a mount that was never seen as an entry no permissions are made up", "[sync]") {
  StoredWithDisk with(*find_store_kind("tree"), "at/one");
  const auto modes = [&] {
    std::map<std::string, std::uint32_t> out;
    require_ok(with.replica->for_each_live([&](const KnownItem& known) -> Result<void> {
      if (known.item.type == ItemType::directory) out[known.item.name] = known.item.mode;
      return {};
    }));
    return out;
  };
  with.stored.set_mode("at", 0311);
  {
    const AsNobody nobody(with.stored.root.path());
    with.scan();
  }
  CHECK(modes().count("one") == 0);
  with.stored.set_mode("at", 0755);
  with.unmount();
  with.scan();
  CHECK(modes().count("one") == 0);
  CHECK(std::count(with.skipped.begin(), with.skipped.end(), "at/one") == 1);
  with.mount();
  with.scan();
  CHECK(modes().at("one") == 0755);
  CHECK(with.skipped.empty());
}

TEST_CASE("to note mounts leaves other notes alone", "[sync]") {
  const Stored stored("mh");
  testing::MemoryTable table;
  auto replica = value_of(Replica::open(table, "here"));
  BaseFinder bases(*replica, nullptr);
  const std::string text = "Message-ID: <1@example.org>\n\nfirst";
  const ObjectId object = object_id(as_bytes(text));
  require_ok(bases.add(object, as_bytes(text)));
  const auto store = value_of(MountedStore::open(value_of(find_store_kind("mh")->open(stored.root.path())),
                                                 stored.root.path(), *replica));
  value_of(scan_store(*store, true, *replica, {}, {}));
  require_ok(store->remember());
  CHECK(value_of(bases.find(as_bytes("In-Reply-To: <1@example.org>\n\nsecond"))) ==
        std::vector<ObjectId>{object});
}

TEST_CASE("a disk that goes while it is looked at loses nothing", "[sync]") {
  const Stored stored("tree");
  const TempDir elsewhere;
  const std::string mounts = elsewhere / "mountinfo";
  std::ofstream(mounts) << "1 2 0:3 / " << stored.root / "at"
                        << " rw - x y z\n";
  testing::MemoryTable table;
  auto replica = value_of(Replica::open(table, "here"));
  const auto open = [&] {
    return value_of(MountedStore::open(value_of(find_store_kind("tree")->open(stored.root.path())),
                                       stored.root.path(), *replica, mounts));
  };
  auto store = open();
  value_of(scan_store(*store, false, *replica, {}, {}));
  require_ok(store->remember());
  const std::uint64_t items = replica->live_items();
  // Between the listing of folders and the look into them.
  class Unmounted : public StoppedStore {
   public:
    Unmounted(SyncStore& store, std::function<void()> unmount)
        : StoppedStore(store, 1000), unmount_(std::move(unmount)) {}
    Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override {
      auto out = StoppedStore::folders(on_skipped);
      std::exchange(unmount_, [] {})();
      return out;
    }

   private:
    std::function<void()> unmount_;
  };
  store = open();
  Unmounted unmounted(*store, [&] {
    fs::rename(stored.root / "at", elsewhere / "disk");
    fs::create_directory(stored.root / "at");
    std::ofstream(mounts) << "";
  });
  CHECK(value_of(scan_store(unmounted, false, *replica, {}, {})).removed == 0);
  CHECK(replica->live_items() == items);
}

}  // namespace scan_test
}  // namespace kin::sync

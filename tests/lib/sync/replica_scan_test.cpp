#include "lib/sync/replica_scan.h"

#include "tests/support/as_nobody.h"
#include "tests/support/expect.h"
#include "tests/support/memory_table.h"
#include "tests/support/temp_dir.h"

#include <fstream>
#include <set>
#include <sys/stat.h>

namespace kin::sync {
namespace scan_test {
namespace {

using testing::AsNobody;
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

}  // namespace scan_test
}  // namespace kin::sync

#include "lib/sync/former_contents.h"
#include "tests/support/random_bytes.h"
#include "tests/support/sync_pair.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace kin::testing {
namespace {

using sync::Direction;
using sync::SessionOptions;

std::string mail(int number, const std::string& more = "") {
  return "From: someone" + std::to_string(number % 7) + "@example.org\nMessage-ID: <" +
         std::to_string(number) + "@example.org>\nSubject: message " + std::to_string(number) +
         "\n\nSome text of message " + std::to_string(number) + ".\n" + more;
}

void fill(MemoryStore& store, int count, const std::string& folder = "") {
  for (int i = 0; i < count; ++i) store.put_message(folder, "m" + std::to_string(i), mail(i), sync::kSeen);
}

void require_same(const SyncEndForTest& a, const SyncEndForTest& b) {
  const bool is_same = a.store.view() == b.store.view();  // contents would fill the screen
  REQUIRE(is_same);
}

TEST_CASE("what one end has comes to the other, and then costs next to nothing", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 100, "Lists");
  fill(a.store, 20);
  const auto first = exchange(a, b);
  REQUIRE_FALSE(first.error);
  CHECK(first.outcome.is_equal);
  require_same(a, b);
  CHECK(a.store.view().size() == 120);
  const auto second = exchange(a, b);
  CHECK(second.outcome.was_equal);
  CHECK(second.bytes <= 200);
  CHECK(second.turns == 2);
  CHECK(exchange(b, a).outcome.was_equal);
}

TEST_CASE("both ends' new messages reach the other", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 30);
  exchange(a, b);
  a.store.put_message("", "new-a", "only on a\n");
  b.store.put_message("", "new-b", "only on b\n");
  b.store.put_message("Other", "new-c", "in a new folder\n");
  const auto link = exchange(a, b);
  CHECK(link.outcome.is_equal);
  require_same(a, b);
  CHECK(a.store.view().size() == 33);
}

TEST_CASE("200 changed flags take at most 2.5 KB, and 200 moves 3 KB", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 2000, "Lists");
  exchange(a, b);
  int left = 200;
  for (auto& [local, stored] : a.store.contents["Lists"])
    if (left-- > 0) stored.item.flags |= sync::kFlagged;
  const auto flags = exchange(a, b);
  require_same(a, b);
  CHECK(flags.bytes <= 2500);
  auto& lists = b.store.contents["Lists"];
  for (int i = 0; i < 200; ++i) b.store.contents["Archive"].insert(lists.extract(std::prev(lists.end())));
  const auto moves = exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents["Archive"].size() == 200);
  CHECK(moves.bytes <= 3000);
}

TEST_CASE("flags of both ends are merged one by one, all 64 times 64 of them", "[sync]") {
  for (const std::uint8_t base : {0, 0x3f, 0x15, 0x2a}) {
    SyncEndForTest a, b;
    for (int i = 0; i < 4096; ++i) a.store.put_message("", "m" + std::to_string(i), std::to_string(i), base);
    exchange(a, b);
    const auto number_of = [](const MemoryStore::Stored& stored) {
      return std::stoi(std::string(as_text(stored.content)));
    };
    for (auto& [local, stored] : a.store.contents[""]) stored.item.flags = number_of(stored) % 64;
    for (auto& [local, stored] : b.store.contents[""]) stored.item.flags = number_of(stored) / 64;
    const auto link = exchange(a, b);
    REQUIRE(link.outcome.is_equal);
    require_same(a, b);
    bool all_right = true;
    for (const auto& [local, stored] : a.store.contents[""]) {
      const int ours = number_of(stored) % 64, theirs = number_of(stored) / 64;
      const int expected = base ^ ((ours ^ base) | (theirs ^ base));
      if (stored.item.flags != expected) all_right = false;
    }
    CHECK(all_right);
    CHECK(exchange(a, b).outcome.was_equal);
  }
}

TEST_CASE("words are merged one by one", "[sync]") {
  SyncEndForTest a, b;
  a.store.put_message("", "m", "text", 0, {"Junk", "todo"});
  exchange(a, b);
  a.store.contents[""].begin()->second.item.words = {"todo", "work"};
  b.store.contents[""].begin()->second.item.words = {"Junk", "later", "todo"};
  exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents[""].begin()->second.item.words == std::vector<std::string>{"later", "todo", "work"});
}

TEST_CASE("a deletion reaches the other end, and the content is in its trash", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 10);
  exchange(a, b);
  a.store.contents[""].erase("m3");
  exchange(a, b);
  require_same(a, b);
  CHECK(b.store.view().size() == 9);
  CHECK(b.trash.has(sync::object_id(as_bytes(mail(3)))));
}

TEST_CASE("what was moved by one and deleted by the other stays where it was moved to", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 5);
  exchange(a, b);
  a.store.contents["Kept"].insert(a.store.contents[""].extract("m1"));
  for (auto at = b.store.contents[""].begin(); at != b.store.contents[""].end(); ++at)
    if (as_text(at->second.content) == mail(1)) {
      b.store.contents[""].erase(at);
      break;
    }
  exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents["Kept"].size() == 1);
  CHECK(a.store.view().size() == 5);
}

TEST_CASE("what was moved by one and flagged by the other is moved, whoever begins", "[sync]") {
  for (const bool mover_begins : {false, true}) {
    SyncEndForTest a, b;
    fill(a.store, 3);
    exchange(a, b);
    a.store.contents["Kept"].insert(a.store.contents[""].extract("m1"));
    for (auto& [local, stored] : b.store.contents[""])
      if (as_text(stored.content) == mail(1)) stored.item.flags = sync::kFlagged;
    const auto link = mover_begins ? exchange(a, b) : exchange(b, a);
    if (link.error) FAIL(link.error->message());
    CHECK(link.outcome.is_equal);
    require_same(a, b);
    CHECK(a.store.contents["Kept"].size() == 1);
    CHECK(a.store.view().size() == 3);
    CHECK(exchange(a, b).outcome.was_equal);
  }
}

TEST_CASE("what was moved to two places is in both", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 1);
  exchange(a, b);
  a.store.contents["One"].insert(a.store.contents[""].extract(a.store.contents[""].begin()));
  b.store.contents["Two"].insert(b.store.contents[""].extract(b.store.contents[""].begin()));
  exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents["One"].size() == 1);
  CHECK(a.store.contents["Two"].size() == 1);
  CHECK(a.store.view().size() == 2);
}

TEST_CASE("what was flagged by one and deleted by the other is deleted, and in the trash", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 2);
  exchange(a, b);
  a.store.contents[""]["m0"].item.flags = sync::kFlagged;
  for (auto at = b.store.contents[""].begin(); at != b.store.contents[""].end(); ++at)
    if (as_text(at->second.content) == mail(0)) {
      b.store.contents[""].erase(at);
      break;
    }
  exchange(a, b);
  require_same(a, b);
  CHECK(a.store.view().size() == 1);
  CHECK(a.trash.has(sync::object_id(as_bytes(mail(0)))));
}

TEST_CASE("the same message twice in a folder is two on the other end", "[sync]") {
  SyncEndForTest a, b;
  a.store.put_message("", "one", "twice", sync::kSeen);
  a.store.put_message("", "two", "twice", sync::kFlagged);
  exchange(a, b);
  require_same(a, b);
  CHECK(b.store.view().size() == 2);
  a.store.contents[""].erase("one");
  exchange(a, b);
  CHECK(b.store.view().size() == 1);
  require_same(a, b);
}

TEST_CASE("a renumbered folder sends nothing", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 50);
  exchange(a, b);
  MemoryStore::Folder renamed;
  int number = 0;
  for (auto& [local, stored] : a.store.contents[""]) {
    // Each takes the name that another had.
    renamed["m" + std::to_string((number++ + 7) % 50)] = stored;
  }
  a.store.contents[""] = renamed;
  const auto link = exchange(a, b);
  CHECK(link.outcome.was_equal);
  CHECK(link.bytes <= 200);
}

TEST_CASE("a lost state costs a comparison, and neither loses nor doubles anything", "[sync]") {
  for (const int differences : {0, 1, 20, 300}) {
    for (const bool both : {false, true}) {
      SyncEndForTest a, b;
      fill(a.store, 3000);
      exchange(a, b);
      a.lose_state();
      if (both) b.lose_state();
      for (int i = 0; i < differences; ++i) {
        auto& end = i % 2 == 0 ? a : b;
        end.store.put_message("", "x" + std::to_string(i), "d" + std::to_string(i));
      }
      const auto link = exchange(a, b);
      INFO(differences << " differences, " << link.bytes << " bytes");
      if (link.error) FAIL(link.error->message());
      CHECK(link.outcome.is_equal);
      require_same(a, b);
      CHECK(a.store.view().size() == 3000U + static_cast<std::size_t>(differences));
      if (differences == 0) CHECK(link.bytes <= 200);
      if (differences == 20) CHECK(link.bytes <= 1700);  // 1,024 and twenty small messages
      CHECK(exchange(a, b).outcome.was_equal);
    }
  }
}

TEST_CASE("without history both ends send at the same time", "[sync]") {
  const auto add_large = [](SyncEndForTest& end, std::uint64_t seed) {
    // Few, since to compare takes turns as well, more for more differences.
    for (std::uint64_t i = 0; i < 4; ++i)
      end.store.put_message("", "large" + std::to_string(i),
                            std::string(as_text(random_bytes(seed + i, 450'000))));
  };
  const auto turns = [&](bool a_has_more, bool b_has_more) {
    SyncEndForTest a, b;
    fill(a.store, 20);
    fill(b.store, 20);
    if (a_has_more) add_large(a, 100);
    if (b_has_more) add_large(b, 200);
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    require_same(a, b);
    return link.turns;
  };
  // No more than 256 KiB are on their way unacknowledged, so 1.8 MB take some turns, and those of the other
  // direction take no others.
  const std::uint64_t there = turns(true, false), back = turns(false, true);
  REQUIRE(std::min(there, back) > 12);
  CHECK(turns(true, true) <= std::max(there, back) + 2);
}

TEST_CASE("what an end has deleted comes back at once from one that has lost its state", "[sync]") {
  for (const bool loser_begins : {true, false}) {
    SyncEndForTest a, b;
    fill(a.store, 10);
    exchange(a, b);
    b.store.contents[""].clear();
    a.lose_state();
    CHECK((loser_begins ? exchange(a, b) : exchange(b, a)).outcome.is_equal);
    require_same(a, b);
    CHECK(b.store.view().size() == 10);
    CHECK(exchange(a, b).outcome.was_equal);
  }
}

TEST_CASE("without history, flags of both are joined, but not those that lead to deletion", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 10);
  exchange(a, b);
  a.lose_state();
  a.store.contents[""]["m0"].item.flags = sync::kFlagged | sync::kTrashed;
  const auto link = exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents[""]["m0"].item.flags == (sync::kFlagged | sync::kSeen));
  CHECK(link.bytes < 1200);
}

TEST_CASE("a state that was copied takes part as a replica of its own", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 20);
  exchange(a, b);
  SyncEndForTest copy;
  copy.store.contents = a.store.contents;
  copy.table = a.table;
  copy.identity = "elsewhere";
  copy.open();
  CHECK(copy.replica->was_copied());
  copy.scan();
  CHECK(copy.replica->id() != a.replica->id());
  a.store.put_message("", "of-a", "of a");
  copy.store.put_message("", "of-copy", "of the copy");
  exchange(a, b);
  exchange(copy, b);
  exchange(a, b);
  require_same(a, b);
  require_same(copy, b);
  CHECK(a.store.view().size() == 22);
}

TEST_CASE("what is not in another directory was not deleted there", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 30);
  exchange(a, b);
  // Its disk is not mounted, or was replaced; something is there all the same.
  a.store.contents.clear();
  a.store.put_message("", "stray", "a stray message");
  a.identity = "another";
  a.open();
  if (GENERATE(false, true))
    exchange(a, b);
  else
    exchange(b, a);
  CHECK(a.store.view().size() == 31);
  require_same(a, b);
}

TEST_CASE("a deletion reaches one who was never met, and has it from a peer", "[sync]") {
  SyncEndForTest a, b, c;
  fill(a.store, 12);
  exchange(a, b);
  exchange(b, c);
  a.store.contents[""].erase("m1");
  exchange(a, b);
  if (GENERATE(false, true))
    exchange(a, c);
  else
    exchange(c, a);
  CHECK(a.store.view().size() == 11);
  require_same(a, c);
}

TEST_CASE("a move to where the same message is goes from where it was", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 12);
  exchange(a, b);
  // One end copies it, the other moves it and marks it.
  SyncEndForTest& copies = GENERATE(true, false) ? a : b;
  SyncEndForTest& moves = &copies == &a ? b : a;
  const auto find = [](SyncEndForTest& end) {
    for (auto& [local, stored] : end.store.contents[""])
      if (as_text(stored.content) == mail(3)) return local;
    return std::string();
  };
  const std::string copied = find(copies), moved = find(moves);
  REQUIRE(!copied.empty());
  REQUIRE(!moved.empty());
  copies.store.contents["Other"]["c"] = copies.store.contents[""][copied];
  moves.store.contents["Other"]["m"] = moves.store.contents[""][moved];
  moves.store.contents["Other"]["m"].item.flags = sync::kFlagged;
  moves.store.contents[""].erase(moved);
  exchange(a, b);
  exchange(a, b);
  require_same(a, b);
  CHECK(a.store.contents[""].size() == 11);
  CHECK(a.store.contents["Other"].size() == 1);
}

TEST_CASE("three replicas come to the same through a hub", "[sync]") {
  SyncEndForTest hub, one, two;
  fill(one.store, 40);
  exchange(one, hub);
  exchange(two, hub);
  one.store.contents[""]["m1"].item.flags = sync::kFlagged;
  two.store.put_message("Sent", "s", "sent from two");
  for (auto& [local, stored] : two.store.contents[""])
    if (as_text(stored.content) == mail(2)) stored.item.flags = 0;
  one.store.contents[""].erase("m9");
  exchange(one, hub);
  exchange(two, hub);
  exchange(one, hub);
  require_same(one, hub);
  require_same(two, hub);
  CHECK(one.store.view().size() == 40);
  CHECK(exchange(one, hub).bytes <= 200);
  CHECK(exchange(two, hub).bytes <= 200);
  // And in a ring, without a conflict.
  const auto ring = exchange(one, two);
  CHECK(ring.outcome.was_equal);
}

TEST_CASE("a mass deletion is refused, and nothing is changed", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 200);
  exchange(a, b);
  auto& folder = a.store.contents[""];
  for (int i = 0; i < 60; ++i) folder.erase("m" + std::to_string(i));
  const auto refused = exchange(a, b);
  REQUIRE(refused.error);
  CHECK(refused.error->message().find("60 of 200") != std::string::npos);
  CHECK(b.store.view().size() == 200);
  // The same where the other end begins.
  const auto again = exchange(b, a);
  REQUIRE(again.error);
  CHECK(b.store.view().size() == 200);
  SessionOptions allowed;
  allowed.allow_deletes = true;
  CHECK(exchange(a, b, allowed).outcome.is_equal);
  CHECK(b.store.view().size() == 140);
}

TEST_CASE("a rehearsal changes nothing on either end", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 50);
  exchange(a, b);
  a.store.put_message("", "more", "more on a");
  b.store.put_message("", "other", "more on b");
  a.store.contents[""].erase("m1");
  const auto before_a = a.store.view(), before_b = b.store.view();
  SessionOptions options;
  options.dry_run = true;
  const auto link = exchange(a, b, options);
  CHECK_FALSE(link.error);
  CHECK(a.store.view() == before_a);
  CHECK(b.store.view() == before_b);
  CHECK(link.outcome.planned_bytes_in > 0);
  CHECK(link.outcome.planned_bytes_out > 0);
  CHECK(exchange(a, b).outcome.is_equal);
  require_same(a, b);
}

TEST_CASE("a rehearsal tells the bytes that it takes", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 50);
  exchange(a, b);
  SyncEndForTest& giver = GENERATE(true, false) ? a : b;
  for (std::uint64_t i = 0; i < 40; ++i)
    giver.store.put_message("", "new" + std::to_string(i), std::string(as_text(random_bytes(i, 2'000))));
  SessionOptions options;
  options.dry_run = true;
  const sync::SessionOutcome planned = exchange(a, b, options).outcome;
  const std::uint64_t real = exchange(a, b).bytes;
  const std::uint64_t told = planned.planned_bytes_in + planned.planned_bytes_out;
  CHECK(told <= real);
  CHECK(told > real - 2'000);
}

TEST_CASE("a mirror is as its source, whichever end begins", "[sync]") {
  for (const bool pull : {false, true}) {
    SyncEndForTest source, target;
    fill(source.store, 30);
    exchange(source, target);
    target.store.put_message("", "only-there", "not in the source");
    target.store.contents[""].begin()->second.item.flags = sync::kFlagged;
    target.store.contents[""].erase(std::prev(std::prev(target.store.contents[""].end())));
    source.store.put_message("", "newest", "only in the source");
    const auto before = source.store.view();
    SessionOptions options;
    options.direction = Direction::mirror;
    options.to_initiator = pull;
    const auto link = pull ? exchange(target, source, options) : exchange(source, target, options);
    if (link.error) FAIL(link.error->message());
    CHECK(source.store.view() == before);
    CHECK(target.store.view() == before);
    CHECK(target.trash.has(sync::object_id(as_bytes("not in the source"))));
    CHECK(exchange(source, target).outcome.was_equal);
  }
}

TEST_CASE("with nothing at one end there is nothing to compare", "[sync]") {
  const auto direction = GENERATE(Direction::mirror, Direction::collect, Direction::both);
  for (const bool pull : {false, true}) {
    SyncEndForTest source, target, other, other_target;
    fill(source.store, 300);
    fill(other.store, 300);
    SessionOptions options;
    options.direction = direction;
    options.to_initiator = pull;
    options.compare = direction == Direction::both;
    const auto link = pull ? exchange(target, source, options) : exchange(source, target, options);
    if (link.error) FAIL(link.error->message());
    CHECK(link.outcome.is_equal);
    require_same(source, target);
    // As many turns as where history tells that the one has nothing of the other's; and no symbols, which
    // took 10,000 bytes. Messages of equal times come in another order, which compresses otherwise.
    const auto known = exchange(other, other_target);
    CHECK(link.bytes < known.bytes + 2'500);
    CHECK(link.turns <= known.turns);
  }
}

TEST_CASE("to collect adds and does nothing else", "[sync]") {
  for (const bool pull : {false, true}) {
    SyncEndForTest source, target;
    fill(source.store, 30);
    exchange(source, target);
    target.store.put_message("", "only-there", "not in the source");
    source.store.contents[""].erase("m4");
    source.store.put_message("", "newest", "only in the source");
    const auto before = source.store.view();
    SessionOptions options;
    options.direction = Direction::collect;
    options.to_initiator = pull;
    const auto link = pull ? exchange(target, source, options) : exchange(source, target, options);
    if (link.error) FAIL(link.error->message());
    CHECK(source.store.view() == before);
    CHECK(target.store.view().size() == 32);
  }
}

TEST_CASE("a file that both have changed is kept twice", "[sync]") {
  SyncEndForTest a(false), b(false);
  a.store.put_file("", "notes", "first", 1000);
  exchange(a, b);
  a.store.put_file("", "notes", "by a", 2000);
  b.store.put_file("", "notes", "by b, later", 3000);
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  CHECK(link.conflicts.size() == 1);
  require_same(a, b);
  REQUIRE(a.store.contents[""].size() == 2);
  CHECK(as_text(a.store.contents[""]["notes"].content) == "by b, later");
  CHECK(exchange(a, b).outcome.was_equal);
  // A file that one has changed is changed on the other, and the old content is kept.
  a.store.put_file("", "notes", "once more", 4000);
  exchange(a, b);
  require_same(a, b);
  CHECK(b.trash.has(sync::object_id(as_bytes("by b, later"))));
}

TEST_CASE("a file that both have changed is kept twice, whichever is newer and whoever begins", "[sync]") {
  for (const bool ours_is_newer : {false, true})
    for (const bool known_content : {false, true}) {
      SyncEndForTest a(false), b(false);
      a.store.put_file("", "notes", "first", 1000);
      if (known_content) {  // then it travels without its content
        a.store.put_file("", "other", "by a", 500);
        b.store.put_file("", "another", "by b", 500);
      }
      exchange(a, b);
      a.store.put_file("", "notes", "by a", ours_is_newer ? 3000 : 2000);
      b.store.put_file("", "notes", "by b", 2500);
      const auto link = exchange(a, b);
      if (link.error) FAIL(link.error->message());
      CHECK(link.outcome.is_equal);
      CHECK_FALSE(link.outcome.peer_failed);
      require_same(a, b);
      CHECK(a.store.contents[""].size() == (known_content ? 4U : 2U));
      CHECK(as_text(a.store.contents[""]["notes"].content) == (ours_is_newer ? "by a" : "by b"));
      CHECK(exchange(a, b).outcome.was_equal);
    }
}

// As `kin sync` does: where all changes were made and the ends are not the same, their items are compared.
void exchange_until_same(SyncEndForTest& a, SyncEndForTest& b) {
  const auto link = exchange(a, b);
  if (!link.error && link.outcome.is_equal) return;
  SessionOptions options;
  options.compare = !link.error;
  CHECK(exchange(a, b, options).outcome.is_equal);
}

TEST_CASE("a conflict loses and doubles nothing, wherever the machine stops", "[sync]") {
  struct World {
    std::map<std::string, MemoryStore::Folder> a_contents, b_contents;
    MemoryTable a_table, b_table;
  };
  for (const bool ours_is_newer : {false, true}) {
    SyncEndForTest a(false), b(false);
    for (const char* const name : {"notes", "zebra"}) a.store.put_file("", name, "first", 1000);
    exchange(a, b);
    for (const std::string name : {"notes", "zebra"}) {
      a.store.put_file("", name, name + " by a", ours_is_newer ? 3000 : 2000);
      b.store.put_file("", name, name + " by b", 2500);
    }
    std::vector<World> stops;
    const auto note_stop = [&] { stops.push_back({a.store.contents, b.store.contents, a.table, b.table}); };
    a.store.on_apply = b.store.on_apply = note_stop;
    CHECK(exchange(a, b).conflicts.size() == 2);
    const auto expected = a.store.view();
    a.store.on_apply = b.store.on_apply = nullptr;
    CHECK(stops.size() >= 8);
    for (const World& world : stops) {
      const auto has = [&](const std::string& content) {
        for (const auto* const contents : {&world.a_contents, &world.b_contents})
          for (const auto& [local, stored] : contents->at(""))
            if (as_text(stored.content) == content) return true;
        return false;
      };
      for (const char* const content : {"notes by a", "notes by b", "zebra by a", "zebra by b"})
        CHECK(has(content));
      a.store.contents = world.a_contents;
      b.store.contents = world.b_contents;
      a.table = world.a_table;
      b.table = world.b_table;
      a.crash();
      b.crash();
      exchange_until_same(a, b);
      CHECK(a.store.view() == expected);  // also by name: a second try finds what the first has kept
      require_same(a, b);
    }
  }
}

TEST_CASE("it is known what is in the trash before it is nowhere else", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 5);
  exchange(a, b);
  a.store.contents[""].erase("m3");
  int notes = -1;
  b.store.on_apply = [&] {
    MemoryTable table = b.table;
    table.crash();
    const auto replica = value_of(sync::Replica::open(table, b.identity));
    notes = 0;
    const auto counted = replica->for_each_note(as_bytes("t"), [&](ByteView, ByteView) -> Result<void> {
      ++notes;
      return {};
    });
    REQUIRE(counted);
  };
  exchange(a, b);
  CHECK(notes == 1);
}

TEST_CASE("a merge that could not be made is not taken as seen", "[sync]") {
  SyncEndForTest a, b;
  a.store.put_message("", "m", "text", 0);
  exchange(a, b);
  a.store.contents[""].begin()->second.item.flags = sync::kSeen;
  b.store.contents[""].begin()->second.item.flags = sync::kFlagged;
  a.store.fail_after = a.store.applied;
  exchange(a, b);
  a.store.fail_after = UINT64_MAX;
  exchange_until_same(a, b);
  require_same(a, b);
  CHECK(a.store.contents[""].begin()->second.item.flags == (sync::kSeen | sync::kFlagged));
}

TEST_CASE("a state that was restored from an older one loses nothing", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 10);
  exchange(a, b);
  const MemoryTable older = a.table;
  a.store.put_message("", "later", "written later");
  exchange(a, b);
  a.table = older;
  a.open();
  a.store.put_message("", "again", "written after the state was restored");
  exchange_until_same(a, b);
  require_same(a, b);
  CHECK(b.store.view().size() == 12);
  // And where the other end begins.
  a.table = older;
  a.open();
  a.store.put_message("", "once more", "and once more");
  exchange_until_same(b, a);
  require_same(a, b);
  CHECK(b.store.view().size() == 13);
  // And where nothing has changed since: it takes a new id.
  a.table = older;
  a.open();
  const auto id = a.replica->id();
  a.store.contents = {{"", {}}};
  b.store.contents = {{"", {}}};
  SessionOptions options;
  options.kind = 1;
  sync::Session session(a.parts(), options, {});
  sync::Hello hello;
  hello.kind = 1;
  hello.replica = 77;
  hello.seen.add(id, 1, a.replica->last_sequence() + 1);
  require_ok(session.receive({sync::FrameType::hello, sync::encode_hello(hello)}));
  CHECK(a.replica->id() != id);
}

TEST_CASE("an older file of an end that was restored does not replace the newer one", "[sync]") {
  SyncEndForTest a(false), b(false);
  b.store.put_file("", "notes", "first", 1000);
  a.store.put_file("", "own", "of a", 1000);
  exchange(a, b);
  const MemoryTable older = b.table;
  b.store.put_file("", "notes", "second", 2000);
  exchange(a, b);
  for (const char* const name : {"p", "q", "r", "s"}) b.store.put_file("", name, name, 2500);
  exchange(a, b);
  REQUIRE(as_text(a.store.contents[""]["notes"].content) == "second");
  // State and files are as they were, and the next changes get stamps that a has seen.
  b.table = older;
  b.open();
  b.store.put_file("", "notes", "first", 1000);
  for (const char* const name : {"p", "q", "r", "s"}) b.store.contents[""].erase(name);
  b.store.put_file("", "new", "after the restore", 3000);
  a.store.put_file("", "more", "of a", 3000);
  exchange_until_same(a, b);
  require_same(a, b);
  bool is_there = false;
  for (const auto& [name, entry] : b.store.contents[""]) is_there |= as_text(entry.content) == "second";
  CHECK(is_there);
}

TEST_CASE("what could not be read is sent once it can be", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 3);
  exchange(a, b);
  b.store.put_message("", "odd", "cannot be read now");
  b.scan();
  const auto kept = b.store.contents[""]["odd"];
  b.store.contents[""]["odd"].content =
      Bytes(kept.content.size(), 'x');  // not what the scan saw, though it looks the same
  const auto link = exchange(a, b);
  CHECK_FALSE(link.outcome.is_equal);
  b.store.contents[""]["odd"] = kept;
  CHECK(exchange(a, b).outcome.is_equal);
  require_same(a, b);
}

TEST_CASE("what all know to be deleted is forgotten after a time", "[sync]") {
  SyncEndForTest hub, one, two;
  fill(one.store, 5);
  exchange(one, hub);
  exchange(two, hub);
  const auto known = value_of(one.replica->with_object(sync::object_id(as_bytes(mail(1))), 1));
  REQUIRE(known.size() == 1);
  one.store.contents[""].erase("m1");
  exchange(one, hub);
  CHECK(value_of(one.replica->find(known[0].id)));  // who was never met may have it
  exchange(two, hub);
  require_same(one, two);
  CHECK(value_of(hub.replica->find(known[0].id)));
  require_ok(hub.replica->forget_deleted(std::time(nullptr) - 60));
  CHECK(value_of(hub.replica->find(known[0].id)));
  require_ok(hub.replica->forget_deleted(std::time(nullptr) + 60));
  CHECK_FALSE(value_of(hub.replica->find(known[0].id)));
}

TEST_CASE("a peer cannot delete much by deleting little at a time", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 200);
  exchange(a, b);
  for (int i = 0; i < 100; ++i) a.store.contents[""].erase("m" + std::to_string(i));
  a.scan();
  // What an honest end would refuse to send, with a parcel between.
  sync::SessionOptions options;
  options.kind = 1;
  sync::Session session(b.parts(), options, {});
  sync::Hello hello;
  hello.kind = 1;
  hello.replica = a.replica->id();
  hello.seen = a.replica->seen();
  hello.items = a.replica->live_items();
  hello.digest = a.replica->digest();
  require_ok(session.receive({sync::FrameType::hello, sync::encode_hello(hello)}));
  const auto codec = find_codec(static_cast<std::uint8_t>(CodecId::zstd))->make(1);
  const Bytes empty = value_of(sync::encode_parcel({}, {}, 0, {}, *codec));
  require_ok(session.receive({sync::FrameType::parcel, empty}));
  std::vector<sync::Record> records;
  const auto peer = b.replica->peers().begin()->second.seen;
  require_ok(a.replica->for_each_unseen(peer, [&](const sync::KnownItem& known) -> Result<void> {
    records.push_back(
        {sync::Record::Kind::remove, known.stamp, {}, {}, Bytes(known.id.begin(), known.id.end()), {}});
    return {};
  }));
  REQUIRE(records.size() == 100);
  bool refused = false;
  for (std::size_t i = 0; i < records.size() && !refused; i += 10) {
    const std::vector<sync::Record> some(records.begin() + static_cast<std::ptrdiff_t>(i),
                                         records.begin() + static_cast<std::ptrdiff_t>(i) + 10);
    refused = !session.receive({sync::FrameType::records, sync::encode_records(some)}) ||
              !session.receive({sync::FrameType::parcel, empty}) || !session.settle();
  }
  CHECK(refused);
  CHECK(b.store.view().size() >= 150);
}

TEST_CASE("a parcel that was not understood is sent again before the end counts", "[sync]") {
  // The base is another one there, and messages large and small lean on it.
  for (const std::size_t size : {std::size_t{3000}, std::size_t{300'000}}) {
    SyncEndForTest a, b;
    const std::string text(as_text(text_like(5, 20'000)));
    a.store.put_message("", "base", mail(1) + text);
    exchange(a, b);
    a.scan();
    b.scan();
    for (auto& [local, stored] : b.store.contents[""]) stored.content = Bytes(stored.content.size(), 'z');
    for (int i = 0; i < 3; ++i)
      a.store.put_message("", "answer" + std::to_string(i),
                          "In-Reply-To: <1@example.org>\n" + mail(10 + i) + text +
                              std::string(as_text(random_bytes(static_cast<std::uint64_t>(i), size))));
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    CHECK(b.store.contents[""].size() == 4);
    CHECK(link.outcome.is_equal);
  }
}

TEST_CASE("a base that is gone costs another turn, and no message", "[sync]") {
  SyncEndForTest a, b;
  const std::string text(3000, 'x');
  a.store.put_message("", "base", mail(1, as_text(random_bytes(7, 4000)).data()));
  a.store.put_message("", "parent", mail(1) + text);
  exchange(a, b);
  // Behind its back, after it was looked at: the file is another now, though its entry looks the same.
  a.scan();
  b.scan();
  for (auto& [local, stored] : b.store.contents[""]) stored.content = Bytes(stored.content.size(), 'z');
  a.store.put_message("", "answer", "In-Reply-To: <1@example.org>\n" + mail(2) + text + mail(1));
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  bool found = false;
  for (const auto& [local, stored] : b.store.contents[""])
    found |= as_text(stored.content).starts_with("In-Reply-To");
  CHECK(found);
}

std::string with_change(std::string content, std::size_t at) {
  return content.replace(at, 10, "something else");
}

TEST_CASE("a changed file costs its change, whether it was scanned or came from the other end", "[sync]") {
  for (const std::size_t size : {std::size_t{20'000}, std::size_t{2'000'000}}) {
    SyncEndForTest a(false), b(false);
    std::string content(as_text(random_bytes(1, size)));
    a.store.put_file("", "image", content, 1000);
    exchange(a, b);
    // By turns: each changes what the other made of it.
    std::int64_t time = 2000;
    for (int turn = 0; turn < 4; ++turn) {
      SyncEndForTest& changes = turn % 2 == 0 ? b : a;
      content = with_change(content, size / 2 + static_cast<std::size_t>(turn) * 1000);
      changes.store.put_file("", "image", content, ++time);
      const auto link = exchange(a, b);
      if (link.error) FAIL(link.error->message());
      require_same(a, b);
      CHECK(link.outcome.is_equal);
      CHECK(as_text(a.store.contents[""]["image"].content) == content);
      CHECK(link.bytes < 3 * sync::block_bytes(size) + 1000);
    }
  }
}

TEST_CASE("a difference that cannot be played costs that file again, and no other", "[sync]") {
  SyncEndForTest a(false), b(false);
  std::map<std::string, std::string> contents;
  for (int i = 0; i < 3; ++i) {
    std::string& content = contents["file" + std::to_string(i)];
    content = as_text(random_bytes(static_cast<std::uint64_t>(i), 20'000));
    a.store.put_file("", "file" + std::to_string(i), content, 1000);
  }
  exchange(a, b);
  a.scan();
  b.scan();
  // Blocks of equal hashes that are not equal would look like this.
  const ObjectId object = sync::object_id(as_bytes(contents["file1"]));
  const auto files = value_of(a.replica->with_object(object, 1));
  auto signature = value_of(sync::former_content(*a.replica, files.at(0).id, object));
  REQUIRE(signature);
  std::swap(signature->blocks[3], signature->blocks[9]);
  require_ok(sync::note_content(*a.replica, files[0].id, *signature));
  for (auto& [name, content] : contents) {
    content = with_change(content, 9000);
    a.store.put_file("", name, content, 2000);
  }
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  require_same(a, b);
  CHECK(link.outcome.is_equal);
  CHECK(link.bytes > 20'000);
  CHECK(link.bytes < 27'000);
}

TEST_CASE("a changed large file goes on where it was cut off", "[sync]") {
  SyncEndForTest a(false), b(false);
  std::string content(as_text(random_bytes(1, 3'000'000)));
  a.store.put_file("", "image", content, 1000);
  exchange(a, b);
  content.replace(1'000'000, 600'000, std::string(as_text(random_bytes(2, 600'000))));
  a.store.put_file("", "image", content, 2000);
  const auto cut = exchange(a, b, {}, 400'000);
  REQUIRE(cut.error);
  const auto rest = exchange(a, b);
  REQUIRE_FALSE(rest.error);
  CHECK(rest.skipped == std::vector<std::string>());
  require_same(a, b);
  CHECK(rest.bytes < 600'000 - 400'000 + 35'000);
}

TEST_CASE("a file that both have changed is settled, though neither has what the other leans on", "[sync]") {
  for (const std::size_t size : {std::size_t{20'000}, std::size_t{200'000}}) {
    SyncEndForTest a(false), b(false);
    const std::string content(as_text(random_bytes(1, size)));
    a.store.put_file("", "image", content, 1000);
    exchange(a, b);
    a.store.put_file("", "image", with_change(content, 5000), 2000);
    b.store.put_file("", "image", with_change(content, 9000), 3000);
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    CHECK(link.skipped == std::vector<std::string>());
    CHECK(link.outcome.is_equal);
    require_same(a, b);
    CHECK_FALSE(link.outcome.peer_failed);
    CHECK(a.store.contents[""].size() == 2);
    CHECK(as_text(a.store.contents[""]["image"].content) == with_change(content, 9000));
    CHECK(exchange(a, b).outcome.was_equal);
  }
}

TEST_CASE("a file that becomes a link is in the trash", "[sync]") {
  SyncEndForTest a(false), b(false);
  a.store.put_file("", "notes", "worth keeping", 1000);
  exchange(a, b);
  auto& notes = a.store.contents[""]["notes"];
  notes.item.type = sync::ItemType::symlink;
  notes.item.target = "elsewhere";
  notes.item.mode = 0;
  notes.content.clear();
  notes.number += 1000;
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  CHECK(b.store.contents[""]["notes"].item.type == sync::ItemType::symlink);
  CHECK(b.trash.has(sync::object_id(as_bytes("worth keeping"))));
}

TEST_CASE("a conflict whose other content is not here is settled once, with one copy", "[sync]") {
  for (const bool ours_is_newer : {false, true}) {
    SyncEndForTest a(false), b(false);
    a.store.put_file("", "notes", "first", 1000);
    a.store.put_file("", "other", "content of other", 1000);
    exchange(a, b);
    // Theirs travels without its content, which is no longer here.
    b.store.put_file("", "notes", "content of other", 2000);
    a.store.contents[""].erase("other");
    a.store.put_file("", "notes", "by a", ours_is_newer ? 3000 : 1500);
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    CHECK(link.outcome.is_equal);
    CHECK_FALSE(link.outcome.peer_failed);
    require_same(a, b);
    REQUIRE(a.store.contents[""].size() == 2);
    std::multiset<std::string> found;
    for (const auto& [name, stored] : a.store.contents[""]) found.emplace(as_text(stored.content));
    CHECK(found == std::multiset<std::string>{"by a", "content of other"});
  }
}

TEST_CASE("a large file that was copied to two places comes to both in one exchange", "[sync]") {
  SyncEndForTest a(false), b(false);
  const std::string content(as_text(random_bytes(1, 1'500'000)));
  a.store.put_file("", "image", content, 1000);
  exchange(a, b);
  for (const char* name : {"copy", "second copy", "third copy"}) a.store.put_file("", name, content, 2000);
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  CHECK(link.skipped == std::vector<std::string>());
  CHECK(link.outcome.is_equal);
  CHECK(link.bytes < 1000);
  require_same(a, b);
}

TEST_CASE("what a crash left in the trash under a hash is not taken for that content", "[sync]") {
  SyncEndForTest a(false), b(false);
  a.store.put_file("", "notes", "worth keeping", 1000);
  exchange(a, b);
  const ObjectId object = sync::object_id(as_bytes("worth keeping"));
  std::filesystem::create_directories(b.directory / "trash");
  std::ofstream(b.trash.path_of(object)) << "half";
  a.store.put_file("", "notes", "another content", 2000);
  exchange(a, b);
  require_same(a, b);
  CHECK(b.trash.check(object).has_value());
}

TEST_CASE("what is put into the trash again stays as long as what is new there", "[sync]") {
  const TempDir directory;
  sync::ContentFiles trash(directory / "trash");
  const Bytes content = random_bytes(1, 1000);
  const ObjectId object = sync::object_id(content);
  for (int i = 0; i < 2; ++i) {
    MemorySource source(content);
    require_ok(trash.put(object, source));
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000);
    if (i == 0) std::filesystem::last_write_time(trash.path_of(object), old);
  }
  trash.remove_older_than(3600);
  CHECK(trash.has(object));
}

TEST_CASE("a parcel that is needed again counts once, however many lean on it", "[sync]") {
  SyncEndForTest a, b;
  a.store.put_message("", "base", mail(1) + std::string(as_text(text_like(5, 20'000))));
  exchange(a, b);
  a.scan();
  b.scan();
  for (auto& [local, stored] : b.store.contents[""]) stored.content = Bytes(stored.content.size(), 'z');
  a.store.put_message(
      "", "large",
      "In-Reply-To: <1@example.org>\n" + mail(2) + std::string(as_text(random_bytes(1, 600'000))));
  const auto link = exchange(a, b);
  if (link.error) FAIL(link.error->message());
  CHECK(link.skipped == std::vector<std::string>());
  CHECK(link.outcome.is_equal);
  CHECK_FALSE(link.outcome.peer_failed);
}

TEST_CASE("a folder that came and is deleted at once is deleted on the other end too", "[sync]") {
  for (const bool is_mail : {true, false}) {
    SyncEndForTest a(is_mail), b(is_mail);
    for (int i = 0; i < 3; ++i) {
      if (is_mail) a.store.put_message("Sub", "m" + std::to_string(i), mail(i));
      if (!is_mail) a.store.put_file("Sub", "f" + std::to_string(i), mail(i), 1000);
    }
    if (is_mail) a.store.contents.try_emplace("Empty");
    exchange(a, b);
    require_same(a, b);
    b.store.contents.erase("Sub");
    b.store.contents.erase("Empty");
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    CHECK(link.outcome.is_equal);
    CHECK(a.store.contents["Sub"].empty());
    CHECK_FALSE(a.store.contents.contains("Empty"));
  }
}

TEST_CASE("a content that was edited unseen is not replaced because its former one is in the trash",
          "[sync]") {
  SyncEndForTest a(false), b(false);
  a.store.put_file("", "notes", "first", 1000);
  exchange(a, b);
  const Bytes first{'f', 'i', 'r', 's', 't'};
  MemorySource former(first);
  require_ok(b.trash.put(sync::object_id(as_bytes("first")), former));
  b.store.contents[""]["notes"].content = Bytes{'e', 'd', 'i', 't', 's'};  // it looks the same
  a.store.put_file("", "notes", "second", 2000);
  exchange(a, b);
  CHECK(as_text(b.store.contents[""]["notes"].content) == "edits");
}

TEST_CASE("more replicas than can be kept are refused, and the state stays readable", "[sync]") {
  sync::VersionSet seen;
  for (std::uint64_t i = 1; i <= 5000; ++i) seen.add(i, 1, 1);
  CHECK(seen.fits());
  seen.add(9'999'999, 1, 1);
  CHECK_FALSE(seen.fits());
  WireWriter out;
  seen.encode(out);
  WireReader in(out.bytes());
  CHECK(sync::VersionSet::decode(in) == seen);
}

TEST_CASE("what came before a cut and was changed and deleted since is deleted on the other end", "[sync]") {
  for (const bool was_known : {true, false}) {
    SyncEndForTest a, b;
    a.store.put_message("", "first", mail(1));
    if (was_known) exchange(a, b);
    a.store.put_message("", "second", mail(2));
    // It arrives, and this end does not learn of that.
    std::uint64_t cut = 100;
    for (; b.store.view().size() < 2; ++cut) {
      REQUIRE(cut < 2000);
      exchange(a, b, {}, cut);
    }
    a.store.contents[""]["second"].item.flags = sync::kSeen;
    a.scan();
    a.store.contents[""].erase("second");
    const auto link = exchange(a, b);
    if (link.error) FAIL(link.error->message());
    CHECK(link.outcome.is_equal);
    require_same(a, b);
    CHECK(b.store.view().size() == 1);
  }
}

TEST_CASE("a link of differences that is cut at any byte loses nothing", "[sync]") {
  const auto prepare = [](SyncEndForTest& a, SyncEndForTest& b) {
    const std::string small(as_text(random_bytes(1, 4000))), large(as_text(random_bytes(2, 60'000)));
    a.store.put_file("", "small", small, 1000);
    a.store.put_file("", "large", large, 1000);
    exchange(a, b);
    a.store.put_file("", "large", with_change(large, 30'000), 2000);
    b.store.put_file("", "small", with_change(small, 2000), 2000);
  };
  std::uint64_t length = 0;
  std::multiset<std::string> expected;
  {
    SyncEndForTest a(false), b(false);
    prepare(a, b);
    length = exchange(a, b).bytes;
    expected = a.store.view();
    require_same(a, b);
  }
  for (std::uint64_t cut = 0; cut < length; cut += 3) {
    INFO("cut after " << cut);
    SyncEndForTest a(false), b(false);
    prepare(a, b);
    REQUIRE(exchange(a, b, {}, cut).error);
    if (cut % 2 == 1) a.crash();
    if (cut % 9 == 3) b.crash();
    const auto again = exchange(a, b);
    REQUIRE_FALSE(again.error);
    CHECK(again.outcome.is_equal);
    CHECK(a.store.view() == expected);
    require_same(a, b);
  }
}

TEST_CASE("a link that is cut at any byte loses nothing, and the next exchange finishes", "[sync]") {
  const auto prepare = [](SyncEndForTest& a, SyncEndForTest& b) {
    fill(a.store, 6);
    exchange(a, b);
    a.store.put_message("", "small", mail(100), sync::kSeen);
    a.store.put_message("New", "other", mail(101));
    b.store.put_message("", "theirs", mail(102), sync::kFlagged);
    a.store.contents[""]["m1"].item.flags = sync::kFlagged;
    b.store.contents[""].begin()->second.item.flags = sync::kReplied;
    a.store.contents["New"].insert(a.store.contents[""].extract("m2"));
    a.store.contents[""].erase("m3");
  };
  std::uint64_t length = 0;
  std::multiset<std::string> expected;
  {
    SyncEndForTest a, b;
    prepare(a, b);
    length = exchange(a, b).bytes;
    expected = a.store.view();
    require_same(a, b);
  }
  REQUIRE(length > 300);
  for (std::uint64_t cut = 0; cut < length; ++cut) {
    INFO("cut after " << cut);
    SyncEndForTest a, b;
    prepare(a, b);
    const auto link = exchange(a, b, {}, cut);
    REQUIRE(link.error);
    if (cut % 2 == 1) a.crash();
    if (cut % 3 == 1) b.crash();
    const auto again = exchange(a, b);
    REQUIRE_FALSE(again.error);
    CHECK(again.outcome.is_equal);
    require_same(a, b);
    CHECK(a.store.view() == expected);
  }
}

TEST_CASE("a large message goes on where it was cut off", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 3);
  exchange(a, b);
  const Bytes large = random_bytes(3, 600'000);
  a.store.put_message("", "large", std::string(as_text(large)));
  const auto cut = exchange(a, b, {}, 400'000);
  REQUIRE(cut.error);
  CHECK(b.store.view().size() == 3);
  const auto rest = exchange(a, b);
  REQUIRE_FALSE(rest.error);
  require_same(a, b);
  CHECK(rest.bytes < 600'000 - 400'000 + 35'000);
}

TEST_CASE("a cut costs 32 KiB at most, whatever was sent before", "[sync]") {
  const auto prepare = [](SyncEndForTest& a, SyncEndForTest& b) {
    fill(a.store, 3);
    exchange(a, b);
    // By these, a parcel holds much; and then it cannot.
    for (int i = 0; i < 100; ++i) {
      std::string log;
      for (int line = 0; line < 400; ++line)
        log += "line " + std::to_string(line) + " of a log that says the same\n";
      a.store.put_message("", "log" + std::to_string(i), log + std::to_string(i));
    }
    for (std::uint64_t i = 0; i < 6; ++i)
      a.store.put_message("", "small" + std::to_string(i), std::string(as_text(random_bytes(i, 30'000))));
    a.store.put_message("", "large", std::string(as_text(random_bytes(9, 600'000))));
  };
  std::uint64_t whole = 0;
  {
    SyncEndForTest a, b;
    prepare(a, b);
    whole = exchange(a, b).bytes;
  }
  for (std::uint64_t cut_after = 3'000; cut_after < whole; cut_after += 41'003) {
    INFO("cut after " << cut_after << " of " << whole);
    SyncEndForTest a, b;
    prepare(a, b);
    const auto cut = exchange(a, b, {}, cut_after);
    REQUIRE(cut.error);
    const auto rest = exchange(a, b);
    REQUIRE_FALSE(rest.error);
    require_same(a, b);
    CHECK(cut.bytes + rest.bytes <= whole + (32 << 10));
  }
}

TEST_CASE("what a store refuses is tried again, and not taken as done", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 20);
  b.store.fail_after = 5;
  const auto link = exchange(a, b);
  CHECK_FALSE(link.outcome.is_equal);
  CHECK(link.outcome.peer_failed);
  b.store.fail_after = UINT64_MAX;
  CHECK(exchange(a, b).outcome.is_equal);
  require_same(a, b);
}

TEST_CASE("a peer that says anything at all is an error at worst", "[sync]") {
  SyncEndForTest a, b;
  fill(a.store, 12);
  fill(b.store, 6, "Else");
  const Bytes said = exchange(a, b).from_initiator;
  const auto before = b.store.view();
  const auto hear = [&](const Bytes& bytes) {
    SessionOptions options;
    options.kind = 1;
    sync::Session session(b.parts(), options, {});
    sync::FrameReader reader;
    reader.add(bytes);
    for (;;) {
      const auto frame = reader.next();
      if (!frame || !*frame) break;
      if (!session.receive(**frame)) break;
      if (!session.settle()) break;
      for (auto more = session.next(); more && *more; more = session.next()) {
      }
    }
    session.abandon();
  };
  Random random(11);
  for (int turn = 0; turn < 2000; ++turn) {
    Bytes damaged = said;
    const auto changes = 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes; ++i)
      damaged[random.below(damaged.size())] = static_cast<std::uint8_t>(random.below(256));
    if (turn % 5 == 0) damaged.resize(random.below(damaged.size()));
    hear(damaged);
  }
  // Nothing of what was there may go: deletions come with stamps that are seen already, or with references.
  for (const std::string& one : before) CHECK(b.store.view().contains(one));
}

}  // namespace
}  // namespace kin::testing

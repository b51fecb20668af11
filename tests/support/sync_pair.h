// Two ends of an exchange in one process, and the link between them: which can be counted, and cut.
#pragma once

#include "lib/sync/replica_scan.h"
#include "lib/sync/session.h"
#include "tests/support/expect.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_table.h"
#include "tests/support/temp_dir.h"

#include <limits>
#include <memory>

namespace kin::testing {

struct SyncEndForTest {
  explicit SyncEndForTest(bool mail = true) : is_mail(mail) { open(); }

  void open() {
    replica = value_of(sync::Replica::open(table, identity));
    bases = std::make_unique<sync::BaseFinder>(*replica, nullptr);
  }
  void scan() {
    if (replica->was_copied()) require_ok(replica->start_anew({}));
    sync::ScanObserver observer;
    observer.on_content = [this](const ObjectId& object, ByteView content) {
      return bases->add(object, content);
    };
    value_of(sync::scan_store(store, is_mail, *replica, observer, {}));
  }
  // What is not on the disk is lost.
  void crash() {
    table.crash();
    open();
  }
  void lose_state() {
    table.lose();
    open();
  }
  sync::SessionParts parts() { return {*replica, store, *bases, trash, incoming}; }

  bool is_mail;
  std::string identity = "here";
  TempDir directory;
  MemoryTable table;
  MemoryStore store;
  std::unique_ptr<sync::Replica> replica;
  std::unique_ptr<sync::BaseFinder> bases;
  sync::ContentFiles trash{directory / "trash"}, incoming{directory / "incoming"};
};

struct LinkForTest {
  // So many bytes get through, of both directions together.
  std::uint64_t cut_after = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = 0;  // that got through
  std::uint64_t turns = 0;  // changes of direction
  Bytes from_initiator;     // all of them
  std::vector<sync::FrameType> types_from_responder;
  sync::SessionOutcome outcome;
  std::vector<std::string> conflicts;
  std::vector<std::string> skipped;  // by either end, and why
  std::optional<Error> error;
};

// Scans both, and runs an exchange until it ends or is cut.
inline LinkForTest exchange(SyncEndForTest& a, SyncEndForTest& b, sync::SessionOptions options = {},
                            std::uint64_t cut_after = std::numeric_limits<std::uint64_t>::max()) {
  a.scan();
  b.scan();
  LinkForTest link;
  link.cut_after = cut_after;
  options.kind = 1;
  options.is_initiator = true;
  sync::SessionObserver observer;
  observer.on_conflict = [&](const sync::Item& item, const std::string&) {
    link.conflicts.push_back(item.name);
  };
  observer.on_skipped = [&](const std::string& what, const Error& error) {
    link.skipped.push_back(what + ": " + error.message());
  };
  sync::Session first(a.parts(), options, observer);
  sync::SessionOptions other;
  other.kind = 1;
  sync::SessionObserver other_observer;
  other_observer.on_skipped = observer.on_skipped;
  sync::Session second(b.parts(), other, other_observer);
  sync::FrameReader to_first, to_second;
  int direction = -1;
  // Takes all that one end has to say to the other; false once nothing more goes.
  const auto pass = [&](sync::Session& from, sync::Session& to, sync::FrameReader& reader,
                        int way) -> Result<bool> {
    bool any = false;
    for (;;) {
      KIN_TRY_ASSIGN(const auto frame, from.next());
      if (!frame) break;
      any = true;
      const std::size_t through = std::min<std::uint64_t>(frame->size(), link.cut_after - link.bytes);
      if (direction != way) ++link.turns;
      direction = way;
      link.bytes += through;
      if (way == 0) append(link.from_initiator, ByteView(*frame).first(through));
      if (way == 1) link.types_from_responder.push_back(static_cast<sync::FrameType>(frame->front()));
      reader.add(ByteView(*frame).first(through));
      if (through < frame->size()) return Error(ErrorCode::io, "cut");
    }
    for (;;) {
      KIN_TRY_ASSIGN(const auto frame, reader.next());
      if (!frame) break;
      KIN_TRY(to.receive(*frame));
    }
    KIN_TRY(to.settle());
    return any;
  };
  for (;;) {
    auto there = pass(first, second, to_second, 0);
    auto back = there ? pass(second, first, to_first, 1) : Result<bool>(false);
    if (!there || !back) {
      // What came whole before the cut is still dealt with.
      for (auto* end : {&first, &second}) {
        auto& reader = end == &first ? to_first : to_second;
        for (auto frame = reader.next(); frame && *frame; frame = reader.next())
          if (!end->receive(**frame)) break;
        end->abandon();
      }
      link.error = !there ? there.error() : back.error();
      break;
    }
    if (!*there && !*back) break;
  }
  link.outcome = first.outcome();
  return link;
}

}  // namespace kin::testing

// Session: one exchange between two replicas, as a machine that takes frames and gives frames. It knows
// nothing of pipes, so that tests can run two of them against each other and cut the link at any byte.
// docs/protocol.md tells the order of things. One thread at a time.
#pragma once

#include "lib/sync/frame.h"
#include "lib/sync/incoming.h"
#include "lib/sync/outgoing.h"
#include "lib/sync/set_comparison.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kin::sync {

struct SessionOptions {
  bool is_initiator = false;
  std::uint8_t kind = 0;  // of store
  std::string peer_name;  // for people
  // What the initiator asks for; the other end follows.
  Direction direction = Direction::both;
  bool to_initiator = false;
  bool dry_run = false, allow_deletes = false, compare = false;
  bool stays = false;  // the link is kept after the exchange: pause.h
};

struct SessionObserver {
  // Changes made here, or to be made by the other end.
  std::function<void(const Record&record)> on_received, on_sent;
  std::function<void(const Item& item, const std::string& how)> on_conflict;
  std::function<void(const std::string& what, const Error& error)> on_skipped;
  std::function<void(std::uint64_t bytes)> on_content;  // sent or received
  std::function<void()> on_compared;  // the sets of items were compared, since history did not help
};

// What it all works on.
struct SessionParts {
  Replica& replica;
  SyncStore& store;
  BaseFinder& bases;
  ContentFiles& trash;
  ContentFiles& incoming;
  const Formats* formats = nullptr;  // in which messages are opened on their way; none: they are not
};

struct SessionOutcome {
  bool was_equal = false;                                     // there was nothing to do
  bool is_equal = false;                                      // by the digests, both ends have the same now
  bool peer_failed = false;                                   // the other end could not make all changes
  std::uint64_t planned_bytes_in = 0, planned_bytes_out = 0;  // of contents, in a rehearsal
  std::uint64_t content_bytes_out = 0;
};

class Session {
 public:
  // The parts must outlive it.
  Session(const SessionParts& parts, SessionOptions options, SessionObserver observer);

  // After an error it is over: what is next() then tells the other end why.
  Result<void> receive(const Frame& frame);
  // What is to be sent next; nothing: there is none until more is received.
  Result<std::optional<Bytes>> next();
  // There is nothing to read at the moment: makes what was received so far, and acknowledges it.
  Result<void> settle();
  // The link is gone: what was received is kept.
  void abandon();
  bool finished() const { return finished_; }

  void set_speed(std::uint64_t bytes_per_second) { outgoing_->set_speed(bytes_per_second); }
  std::uint64_t acked_bytes() const { return acked_bytes_; }
  bool awaits_ack() const { return outgoing_->unacked_bytes() > 0; }
  std::uint64_t content_bytes_left() const { return outgoing_->content_bytes_left(); }
  std::uint8_t peer_kind() const { return theirs_.kind; }  // of store; 0: not known
  bool is_dry_run() const { return options_.dry_run; }
  // After the exchange, as the initiator wishes it.
  bool keeps_link() const { return options_.stays; }
  // By what the other end says it did not understand the greeting: it may be of an older kin.
  bool greeting_was_refused() const { return greeting_was_refused_; }
  // The state was found to be older than what the other end has seen of it, and has another id now: once
  // more.
  bool must_run_again() const { return must_run_again_; }
  const SessionOutcome& outcome() const { return outcome_; }

 private:
  Result<void> on_hello(ByteView payload);
  Result<void> on_symbols(ByteView payload);
  Result<void> on_more(ByteView payload);
  Result<void> on_difference(ByteView payload);
  Result<void> on_elsewise(ByteView payload);
  Result<void> on_end(ByteView payload);
  Result<void> on_done(ByteView payload);
  Result<void> on_announced(const Item& item, const Stamp& stamp);

  Result<void> begin();
  Result<void> begin_plain();
  Result<void> answer_difference(const SetComparison::Difference& difference);
  Result<void> agree();
  Result<void> guard_deletions();
  Result<void> on_need(ByteView payload);
  Result<void> unite(const VersionSet& theirs, const VersionSet& peer_has);
  Result<void> guard(const std::map<std::string, std::uint64_t>& deletions, bool are_gone, const char* where);
  Result<void> take_merged();
  Result<bool> ask_for_needed();
  Result<void> conclude_receiving();
  bool sends() const;     // this end's changes go to the other
  bool receives() const;  // and the other's come here
  void put(FrameType type, ByteView payload) { out_.push_back(encode_frame(type, payload)); }

  const SessionParts parts_;
  SessionOptions options_;
  const SessionObserver observer_;

  Hello ours_, theirs_;
  PeerView peer_;
  std::unique_ptr<Incoming> incoming_;
  std::unique_ptr<Outgoing> outgoing_;
  std::deque<Bytes> out_;

  bool greeted_ = false, sending_ = false, end_sent_ = false, finished_ = false, must_run_again_ = false;
  bool greeting_was_refused_ = false;
  bool exchanges_ = false;  // what differs is known, or needs not be: changes may come
  std::uint64_t needs_sent_ = 0, needs_received_ = 0;
  std::uint64_t signs_received_ = 0;  // of life
  std::optional<End> their_end_;
  std::uint64_t acks_sent_ = 0, acked_bytes_ = 0;
  std::uint64_t unsettled_bytes_ = 0;  // of parcels that came

  // While sets are compared.
  Bytes our_hello_, their_hello_;
  std::optional<SetComparison> comparison_;
  std::vector<ItemId> rest_;  // ours, to be sent if the other end does not tell of them
  std::unordered_set<ItemId, ItemIdHash> dealt_with_;
  SessionOutcome outcome_;
};

}  // namespace kin::sync

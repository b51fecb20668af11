#include "lib/sync/session.h"

#include "lib/base/random.h"
#include "lib/sync/deletion_guard.h"
#include "lib/sync/pause.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

namespace kin::sync {
namespace {

constexpr std::uint64_t kMostUnackedBytes = 256 << 10;
constexpr std::uint64_t kMostUnsettledBytes = 28 << 10;  // with the next parcel, all that a kill costs
constexpr std::int64_t kMostPeerAgeSeconds = 180 * 86'400;
constexpr std::uint64_t kMostNeeds = 1000;
constexpr std::size_t kMostNeeded = 100'000;  // in one frame

}  // namespace

Session::Session(const SessionParts& parts, SessionOptions options, SessionObserver observer)
    : parts_(parts), options_(std::move(options)), observer_(std::move(observer)) {
  Outgoing::Observer out;
  out.on_record = observer_.on_sent;
  out.on_content = observer_.on_content;
  out.on_skipped = observer_.on_skipped;
  outgoing_ = std::make_unique<Outgoing>(parts_.replica, parts_.store, parts_.bases, parts_.formats, peer_,
                                         false, std::move(out));
  if (options_.is_initiator) {
    ours_.dry_run = options_.dry_run;
    ours_.allow_deletes = options_.allow_deletes;
    ours_.direction = options_.direction;
    ours_.to_initiator = options_.to_initiator;
    ours_.compare = options_.compare;
    ours_.stays = options_.stays;
  }
  ours_.kind = options_.kind;
  ours_.replica = parts_.replica.id();
  ours_.seen = parts_.replica.seen();
  ours_.digest = parts_.replica.digest();
  ours_.items = parts_.replica.live_items();
  ours_.held = parts_.incoming.parts();
  ours_.nonce = random_number();
  if (!options_.is_initiator) return;
  our_hello_ = encode_hello(ours_);
  put(FrameType::hello, our_hello_);
}

bool Session::sends() const {
  return options_.direction == Direction::both || options_.to_initiator != options_.is_initiator;
}

bool Session::receives() const {
  return options_.direction == Direction::both || options_.to_initiator == options_.is_initiator;
}

Result<void> Session::receive(const Frame& frame) {
  if (frame.type == FrameType::error) {
    greeting_was_refused_ = !greeted_ && as_text(frame.payload).starts_with(kGreeting);
    return Error(ErrorCode::io, "the other end: " + printable(as_text(frame.payload)));
  }
  if (frame.type == FrameType::hello) return on_hello(frame.payload);
  // Of the pause before: it looks through its store, or has said before it heard of this exchange that it
  // changed. Or of the exchange before that: what its end has said already.
  const bool is_of_pause = frame.type == FrameType::changed || frame.type == FrameType::ack;
  if (is_of_pause && options_.stays && options_.is_initiator && !greeted_ && ++signs_received_ <= kMostSigns)
    return {};
  if (finished_ && frame.type == FrameType::ack)
    return {};  // of the last parcels: the end has said it already
  if (!greeted_ || finished_) return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  switch (frame.type) {
    case FrameType::records:
      if (their_end_ || !exchanges_) break;
      return incoming_->records(frame.payload);
    case FrameType::parcel: {
      if (their_end_ || !exchanges_ || options_.dry_run || !receives()) break;
      KIN_TRY(guard_deletions());
      if (observer_.on_content) observer_.on_content(frame.payload.size());
      KIN_TRY(incoming_->parcel(frame.payload));
      unsettled_bytes_ += frame.payload.size();
      return unsettled_bytes_ < kMostUnsettledBytes ? Result<void>() : settle();
    }
    case FrameType::ack: {
      WireReader in(frame.payload);
      const std::uint64_t parcels = in.varint();
      KIN_TRY(in.finish("an acknowledgement"));
      const std::uint64_t before = outgoing_->unacked_bytes();
      outgoing_->acked(parcels);
      acked_bytes_ += before - outgoing_->unacked_bytes();
      return {};
    }
    case FrameType::need:
      if (!exchanges_ || ++needs_received_ > kMostNeeds) break;
      return on_need(frame.payload);
    case FrameType::symbols:
      return on_symbols(frame.payload);
    case FrameType::more:
      return on_more(frame.payload);
    case FrameType::difference:
      return on_difference(frame.payload);
    case FrameType::elsewise:
      return on_elsewise(frame.payload);
    case FrameType::end:
      if (their_end_ || !exchanges_) break;
      return on_end(frame.payload);
    case FrameType::done:
      return on_done(frame.payload);
    default:
      break;
  }
  return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
}

Result<void> Session::on_hello(ByteView payload) {
  if (greeted_) return Error(ErrorCode::corrupt, "the other end greeted twice");
  greeted_ = true;
  KIN_TRY_ASSIGN(theirs_, decode_hello(payload));
  their_hello_.assign(payload.begin(), payload.end());
  if (theirs_.kind != ours_.kind && !options_.is_initiator) {  // who began tells it, and may know what to do
    put(FrameType::hello, encode_hello(ours_));
    finished_ = true;
    return {};
  }
  if (theirs_.kind != ours_.kind) {
    const auto name = [](std::uint8_t number) {
      const StoreKind* const kind = find_store_kind(number);
      return std::string(kind == nullptr ? "of a kind that this kin does not know" : kind->name);
    };
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("the two stores are of different kinds: here {}, there {}; --kind sets it for both",
                    name(ours_.kind), name(theirs_.kind)));
  }
  if (parts_.replica.was_copied())
    return Error(ErrorCode::invalid_argument, "what is known of this store is of another one");
  if (theirs_.replica == ours_.replica)
    return Error(ErrorCode::invalid_argument, "both ends are the same store, or share one state");
  const bool was_restored = theirs_.seen.last(ours_.replica) > parts_.replica.last_sequence();
  if (was_restored) {
    // The state here was restored from an older one: its next changes would have stamps that were used
    // before.
    KIN_TRY(parts_.replica.take_new_id());
    ours_.replica = parts_.replica.id();
    must_run_again_ = options_.is_initiator;
    if (must_run_again_)
      return Error(ErrorCode::io,
                   "what is known of this store is older than what the other end has seen of it");
  }
  if (!options_.is_initiator) {
    options_.direction = theirs_.direction;
    options_.to_initiator = theirs_.to_initiator;
    options_.dry_run = theirs_.dry_run;
    options_.allow_deletes = theirs_.allow_deletes;
    options_.stays = theirs_.stays;
    // Whom it has never finished an exchange with, it cannot tell by history what it has; but where one of
    // the two has seen nothing that the other has not: so it is after a first exchange that was cut.
    const bool is_stranger = !parts_.replica.peers().contains(theirs_.replica) &&
                             !ours_.seen.is_within(theirs_.seen) && !theirs_.seen.is_within(ours_.seen);
    ours_.compare = theirs_.compare || was_restored || options_.direction != Direction::both ||
                    (is_stranger && ours_.items > 0 && theirs_.items > 0);
    our_hello_ = encode_hello(ours_);
    put(FrameType::hello, our_hello_);
  }
  options_.compare = options_.is_initiator ? theirs_.compare : ours_.compare;
  if (ours_.digest == theirs_.digest) return agree();
  return begin();
}

// Both have the same: then each has seen all that the other has.
Result<void> Session::agree() {
  finished_ = true;
  outcome_.was_equal = outcome_.is_equal = true;
  if (options_.dry_run) return {};
  VersionSet seen = ours_.seen;
  seen.add(theirs_.seen);
  const auto peer = parts_.replica.peers().find(theirs_.replica);
  if (seen == ours_.seen && peer != parts_.replica.peers().end() && peer->second.seen == seen) return {};
  return unite(theirs_.seen, seen);
}

// All that the other end has seen was seen here as well, but for what could not be made.
Result<void> Session::unite(const VersionSet& theirs, const VersionSet& peer_has) {
  VersionSet seen = parts_.replica.seen();
  seen.add(theirs);
  if (incoming_)
    for (const Stamp& stamp : incoming_->failed()) seen.remove(stamp);
  if (!seen.fits() || !peer_has.fits())
    return Error(ErrorCode::corrupt, "there are more replicas than can be");
  parts_.replica.set_seen(std::move(seen));
  parts_.replica.set_peer({theirs_.replica, peer_has, options_.peer_name, std::time(nullptr)});
  KIN_TRY(parts_.replica.commit(true));
  return parts_.replica.forget_deleted(std::time(nullptr) - kMostPeerAgeSeconds);
}

Result<void> Session::begin() {
  const std::uint64_t source_items = sends() ? ours_.items : theirs_.items;
  if (options_.direction == Direction::mirror && source_items == 0 && !options_.allow_deletes)
    return Error(ErrorCode::invalid_argument,
                 "the store that is to be mirrored is empty; nothing was changed (--allow-deletes empties "
                 "the other one)");
  peer_.seen = theirs_.seen;
  const bool compare = options_.compare;
  peer_.was_compared = compare;
  const bool was_asked_for = options_.is_initiator ? ours_.compare : theirs_.compare;
  // One that has a new name was restored from an older state, and has given some stamps twice.
  const bool are_known = ours_.seen.last(ours_.replica) > 0 && theirs_.seen.last(theirs_.replica) > 0;
  peer_.history_counts = !was_asked_for && are_known && options_.direction == Direction::both;

  Incoming::Observer in;
  in.on_change = observer_.on_received;
  if (options_.direction == Direction::both) in.on_conflict = observer_.on_conflict;
  in.on_skipped = observer_.on_skipped;
  in.on_content = [this](const ObjectId& object, ByteView content) {
    return parts_.bases.add(object, content);
  };
  if (options_.direction != Direction::both && !receives())
    in.on_announced = [this](const Item& item, const Stamp& stamp) { return on_announced(item, stamp); };
  auto conflicts = options_.is_initiator ? Incoming::Conflicts::merge : Incoming::Conflicts::leave;
  if (options_.direction == Direction::mirror && receives()) conflicts = Incoming::Conflicts::take;
  if (options_.direction == Direction::mirror && !options_.is_initiator)
    conflicts = Incoming::Conflicts::leave;
  if (options_.direction == Direction::collect) conflicts = Incoming::Conflicts::leave;
  if (options_.dry_run) conflicts = Incoming::Conflicts::rehearse;
  incoming_ = std::make_unique<Incoming>(parts_.replica, parts_.store, parts_.trash, parts_.incoming,
                                         parts_.formats, peer_, theirs_.replica, conflicts, std::move(in));
  if (options_.dry_run) {
    Outgoing::Observer out;
    if (options_.is_initiator) out.on_record = observer_.on_sent;
    out.on_skipped = observer_.on_skipped;
    outgoing_ = std::make_unique<Outgoing>(parts_.replica, parts_.store, parts_.bases, parts_.formats, peer_,
                                           true, std::move(out));
  }
  for (const auto& [object, bytes] : theirs_.held) outgoing_->set_held(object, bytes);
  if (!compare) {
    KIN_TRY(outgoing_->add_unseen());
    if (options_.is_initiator) KIN_TRY(guard(outgoing_->deletions_by_folder(), true, "there"));
    sending_ = exchanges_ = true;
    return {};
  }
  comparison_.emplace(parts_.replica, options_.is_initiator ? our_hello_ : their_hello_,
                      options_.is_initiator ? their_hello_ : our_hello_, ours_.items, theirs_.items);
  if (options_.is_initiator && observer_.on_compared) observer_.on_compared();
  if (comparison_->is_plain()) return begin_plain();
  if (options_.is_initiator) return {};
  KIN_TRY_ASSIGN(const Bytes symbols, comparison_->first_symbols());
  put(FrameType::symbols, symbols);
  return {};
}

Result<void> Session::on_need(ByteView payload) {
  WireReader in(payload);
  const std::size_t count = in.count(9);
  if (count == 0 || count > kMostNeeded) in.fail();
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    const ReplicaId replica = in.u64();
    const std::uint64_t sequence = in.varint();
    KIN_TRY(outgoing_->send_again({replica, sequence}));
  }
  end_sent_ = false;
  return in.finish("a list of what is needed");
}

Result<void> Session::guard(const std::map<std::string, std::uint64_t>& deletions, bool are_gone,
                            const char* where) {
  if (options_.allow_deletes || options_.dry_run) return {};
  return check_deletions(parts_.replica, deletions, are_gone, where);
}

Result<void> Session::guard_deletions() {
  if (!incoming_->wants_to_delete()) return {};
  KIN_TRY(guard(incoming_->deletions_by_folder(), false, "here"));
  incoming_->allow_deletions();
  return {};
}

Result<void> Session::take_merged() {
  if (options_.dry_run) return {};
  for (const auto& [id, replaces] : incoming_->take_merged()) {
    dealt_with_.insert(id);
    KIN_TRY(outgoing_->add_merged(id, replaces));
  }
  return {};
}

// True: some of what came could not be used, and another end will follow.
Result<bool> Session::ask_for_needed() {
  std::vector<Stamp> needed = incoming_->take_needed();
  if (needed.empty()) return false;
  if (needs_sent_ == kMostNeeds)
    return Error(ErrorCode::io, "too much of what came could not be made; run it again to go on");
  needed.resize(std::min(needed.size(), kMostNeeded));  // the others are told of again in the next exchange
  ++needs_sent_;
  WireWriter out;
  out.varint(needed.size());
  for (const Stamp& stamp : needed) {
    out.u64(stamp.replica);
    out.varint(stamp.sequence);
  }
  put(FrameType::need, out.bytes());
  their_end_.reset();
  return true;
}

Result<void> Session::settle() {
  // Behind the end an acknowledgement would say nothing, and come into what follows over the same link.
  if (!incoming_ || finished_) return {};
  unsettled_bytes_ = 0;
  if (incoming_->has_pending()) KIN_TRY(incoming_->flush());
  if (incoming_->parcels() > acks_sent_) {
    acks_sent_ = incoming_->parcels();
    KIN_TRY(ask_for_needed());
    WireWriter out;
    out.varint(acks_sent_);
    put(FrameType::ack, out.bytes());
  }
  return {};
}

Result<void> Session::on_end(ByteView payload) {
  KIN_TRY_ASSIGN(their_end_, decode_end(payload));
  if (their_end_->needs < needs_sent_) {  // it was sent before what was asked for: another one follows
    their_end_.reset();
    return {};
  }
  outcome_.planned_bytes_in = their_end_->planned_bytes;
  KIN_TRY(guard_deletions());
  KIN_TRY(incoming_->flush());
  KIN_TRY(incoming_->place_held_back());
  const bool takes_mirror = options_.direction == Direction::mirror && options_.is_initiator && receives();
  if (!takes_mirror) KIN_TRY(incoming_->remove_directories());
  KIN_TRY_ASSIGN(const bool asked, ask_for_needed());
  if (asked) return {};
  return conclude_receiving();
}

Result<void> Session::conclude_receiving() {
  KIN_TRY(take_merged());
  if (options_.is_initiator) {
    if (!peer_.was_compared) return {};
    // Now it is known which of ours the other end has in another state.
    std::vector<ItemId> rest;
    for (const ItemId& id : rest_)
      if (!dealt_with_.contains(id) && !incoming_->was_told_of(id)) rest.push_back(id);
    if (options_.direction == Direction::mirror && receives()) {
      for (const ItemId& id : rest) KIN_TRY(incoming_->remove_own(id));
      KIN_TRY(guard_deletions());
      KIN_TRY(incoming_->flush());
      KIN_TRY(incoming_->remove_directories());
    } else if (sends()) {
      KIN_TRY(outgoing_->add(rest));
      KIN_TRY(guard(outgoing_->deletions_by_folder(), true, "there"));
    }
    sending_ = true;
    return {};
  }
  // The initiator's end is that of all.
  outcome_.is_equal = parts_.replica.digest() == their_end_->digest;
  if (outcome_.is_equal) incoming_->forget_failed();
  KIN_TRY(incoming_->settle_left(their_end_->seen));
  if (!options_.dry_run && options_.direction != Direction::collect)
    KIN_TRY(unite(their_end_->seen, their_end_->seen));
  End done;
  done.seen = parts_.replica.seen();
  for (const Stamp& stamp : outgoing_->unsent()) done.seen.remove(stamp);
  done.digest = parts_.replica.digest();
  put(FrameType::done, encode_end(done));
  finished_ = true;
  return {};
}

Result<void> Session::on_done(ByteView payload) {
  if (!options_.is_initiator || !end_sent_)
    return Error(ErrorCode::corrupt, "the other end sent a frame out of turn");
  KIN_TRY_ASSIGN(const End done, decode_end(payload));
  outcome_.is_equal = done.digest == parts_.replica.digest();
  if (outcome_.is_equal) incoming_->forget_failed();
  finished_ = true;
  if (options_.dry_run || options_.direction == Direction::collect) return {};
  outcome_.peer_failed = !parts_.replica.seen().is_within(done.seen);
  return unite(done.seen, done.seen);
}

Result<std::optional<Bytes>> Session::next() {
  if (!out_.empty()) {
    Bytes frame = std::move(out_.front());
    out_.pop_front();
    return std::optional<Bytes>(std::move(frame));
  }
  if (!sending_ || end_sent_ || finished_) return std::optional<Bytes>();
  if (options_.dry_run && options_.is_initiator) {
    for (;;) {  // it is told, and not sent
      const std::uint64_t before = outgoing_->totals().parcel_bytes;
      KIN_TRY_ASSIGN(const auto frame, outgoing_->next_frame());
      if (!frame) break;
      const std::uint64_t contents = outgoing_->totals().parcel_bytes - before;  // the frame only names them
      outcome_.planned_bytes_out += contents > 0 ? contents : frame->size();
    }
  } else if (!outgoing_->empty()) {
    if (outgoing_->next_is_parcel() && outgoing_->unacked_bytes() >= kMostUnackedBytes && !options_.dry_run)
      return std::optional<Bytes>();
    KIN_TRY_ASSIGN(auto frame, outgoing_->next_frame());
    if (frame) return frame;
  }
  // The initiator has the last word, since it may have merged something.
  if (options_.is_initiator && !their_end_) return std::optional<Bytes>();
  end_sent_ = true;
  End end;
  end.seen = parts_.replica.seen();
  for (const Stamp& stamp : outgoing_->unsent()) end.seen.remove(stamp);
  end.digest = parts_.replica.digest();
  end.needs = needs_received_;
  outcome_.content_bytes_out = outgoing_->totals().content_bytes;
  if (options_.dry_run) end.planned_bytes = outgoing_->totals().parcel_bytes;
  return std::optional<Bytes>(encode_frame(FrameType::end, encode_end(end)));
}

void Session::abandon() {
  // Deletions that were not checked stay undone.
  if (incoming_ && !options_.dry_run) static_cast<void>(incoming_->flush().has_value());
}

}  // namespace kin::sync

// Outgoing: what one end of an exchange has to send, and in which order: first all that needs no content
// (flags, moves, deletions), then new contents, the small ones first. So a reader of mail sees his folders
// change at once, and attachments last. One thread at a time.
#pragma once

#include "lib/sync/content_sender.h"
#include "lib/sync/record.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace kin::sync {

struct SendTotals {
  std::uint64_t records = 0, contents = 0;
  std::uint64_t content_bytes = 0;  // as they are
  std::uint64_t parcel_bytes = 0;   // as they travel
};

class Outgoing {
 public:
  struct Observer {
    std::function<void(const Record& record)> on_record;  // as it is sent; of contents as `full`
    std::function<void(std::uint64_t bytes)> on_content;  // so many more of them are on their way
    std::function<void(const std::string& what, const Error& error)> on_skipped;
  };

  // All must outlive it. `formats` may be null: then nothing is opened. `rehearsal`: contents are encoded,
  // and not sent.
  Outgoing(Replica& replica, SyncStore& store, BaseFinder& bases, const Formats* formats, PeerView& peer,
           bool rehearsal, Observer observer);

  // What is to be sent: all that the peer has not seen, or these.
  Result<void> add_unseen();
  Result<void> add(const std::vector<ItemId>& items);
  // One more, as the outcome of a merge with a state of the peer's.
  Result<void> add_merged(const ItemId& item, const Stamp& replaces);
  // Could not be made there of what was sent: once more, without bases.
  Result<void> send_again(const Stamp& stamp);
  // The peer has so much of a content already.
  void set_held(const ObjectId& object, std::uint64_t bytes) { contents_.set_held(object, bytes); }
  void set_speed(std::uint64_t bytes_per_second) { contents_.set_speed(bytes_per_second); }

  bool empty() const;
  // A frame that is ready to be sent; nothing: there is none at the moment.
  Result<std::optional<Bytes>> next_frame();

  std::uint64_t content_bytes_left() const { return contents_.bytes_left(); }
  std::uint64_t deletions() const { return deletions_.size(); }
  // How many deletions each folder gets.
  std::map<std::string, std::uint64_t> deletions_by_folder() const;
  const SendTotals& totals() const { return totals_; }
  // What could not be sent: the peer must not believe that it has seen it.
  const std::vector<Stamp>& unsent() const { return unsent_; }
  std::uint64_t parcels() const { return parcels_; }
  // So many parcels were dealt with by the other end.
  void acked(std::uint64_t parcels);
  std::uint64_t unacked_bytes() const { return unacked_bytes_; }
  bool next_is_parcel() const { return early_.empty() && !contents_.empty(); }

 private:
  struct Task {
    ItemId item{};
    Record::Kind kind = Record::Kind::remove;
    ItemId source{};  // of a move or place
    Stamp replaces;
  };
  struct OnItsWay {
    std::vector<Stamp> stamps;  // of what is in it
    std::uint64_t bytes = 0;
  };
  struct Arrival {
    ItemId item{};
    Stamp replaces;
  };

  Result<void> sort_out(const KnownItem& known, const Stamp& replaces);
  Result<void> place_arrivals();
  Result<std::optional<ItemId>> find_content_at_peer(const KnownItem& known);
  Result<std::optional<Record>> make_record(const Task& task);
  void tell(Record record);
  Result<Bytes> records_frame();
  Result<std::optional<Bytes>> parcel_frame();
  void note_sent(const ContentSender::Made& made);
  void may_ask_again(const Stamp& stamp);
  void skip(const KnownItem& known, const Error& error);

  Replica& replica_;
  SyncStore& store_;
  PeerView& peer_;
  const bool rehearsal_;
  const Observer observer_;

  std::vector<Arrival> arrivals_;
  std::map<ObjectId, ItemId> departing_;       // what goes from one place, and may come at another
  std::unordered_set<std::uint64_t> planned_;  // contents that are on the list, by the front of their hashes
  std::deque<Task> early_, late_, last_;
  ContentSender contents_;
  std::map<ItemId, std::string> deletions_;  // and the folder
  std::map<Stamp, int> tries_;
  std::unordered_set<ItemId, ItemIdHash> told_before_;  // in a state that was merged since
  std::set<Stamp> sent_again_;                          // or to be, and not out yet; or given up
  std::map<Stamp, Stamp> replaces_;                     // of what was sent: the state that it answers

  std::uint64_t parcels_ = 0, acked_ = 0, unacked_bytes_ = 0;
  std::map<std::uint64_t, OnItsWay> on_their_way_;  // by number; until it is known what became of them
  SendTotals totals_;
  std::vector<Stamp> unsent_;
};

}  // namespace kin::sync

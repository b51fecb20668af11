// Incoming: makes the changes that the other end tells of. Only what follows upon a state that the other end
// has seen is made as it is told. Where both ends have changed an item, the one that began the exchange
// merges, and sends the outcome; the other waits for that. So no item is ever merged twice, by two ends, to
// two states.
//
// A change is made in the store first and then noted here. After a crash between the two, the next scan finds
// it in the store as if it had been made there, with the same outcome: that both ends have it. One thread at
// a time.
#pragma once

#include "lib/sync/content_files.h"
#include "lib/sync/parcel_reader.h"
#include "lib/sync/record.h"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace kin::sync {

class Incoming {
 public:
  // Merge them, leave them to the other end, take the other end's state; or tell what would be, and change
  // nothing.
  enum class Conflicts { merge, leave, take, rehearse };

  struct Observer {
    std::function<void(const Record& record)>
        on_change;  // that was made; kinds as of records, new ones as `full`
    std::function<void(const Item& item, const std::string& how)> on_conflict;
    std::function<void(const std::string& what, const Error& error)> on_skipped;
    std::function<Result<void>(const ObjectId& object, ByteView content)> on_content;  // new here
    // The other end has it, and was asked for no more than that.
    std::function<Result<void>(const Item& item, const Stamp& stamp)> on_announced;
  };

  // `formats` may be null, and `peer_id` is that of the other end: it tells of what it has seen, and of its
  // own.
  Incoming(Replica& replica, SyncStore& store, ContentFiles& trash, ContentFiles& parts,
           const Formats* formats, PeerView& peer, ReplicaId peer_id, Conflicts conflicts, Observer observer);

  Result<void> records(ByteView payload);
  Result<void> parcel(ByteView payload);
  // An item that the other end does not have, and that is to go for that reason.
  Result<void> remove_own(const ItemId& id);
  // What is to go waits until it is allowed; more of it has to be allowed again.
  void allow_deletions() { may_delete_ = true; }
  bool wants_to_delete() const { return !may_delete_ && !deletions_.empty(); }
  // In all of the exchange.
  const std::map<std::string, std::uint64_t>& deletions_by_folder() const { return deletions_by_folder_; }
  // Makes what waits; on the disk when it returns.
  Result<void> flush();
  // Once the other end has told all: what had no room before, because a directory of it was none, ...
  Result<void> place_held_back();
  // ... and then directories go, or become something else, since what was in them is gone.
  Result<void> remove_directories();

  bool has_pending() const { return waiting_bytes_ > 0 || !pending_.empty() || !to_settle_.empty(); }
  std::uint64_t parcels() const { return parcels_; }  // that came
  // Items that cannot be made of what came; they are to be sent again. Each is told once.
  std::vector<Stamp> take_needed() { return std::exchange(needed_, {}); }
  // Outcomes of merges, which the other end has to be told; and the state of its own that each replaces.
  std::vector<std::pair<ItemId, Stamp>> take_merged() { return std::exchange(merged_, {}); }
  // Whether the other end has told of this item.
  bool was_told_of(const ItemId& id) const { return told_of_.contains(id); }
  // The other end has seen all this, and sends no more: a conflict in which it has seen the state here is
  // settled by it.
  Result<void> settle_left(const VersionSet& seen);
  // Not made: they are not to be taken as seen.
  const std::set<Stamp>& failed() const { return failed_; }
  // Both ends have the same now, by whichever way: so all was made.
  void forget_failed() { failed_.clear(); }

 private:
  // A state that an item is to have.
  struct Wish {
    Record::Kind kind = Record::Kind::full;
    Stamp stamp, replaces;
    ItemId id{};
    Item item;
    bool deleted = false;
    bool has_content = false;
    Bytes content;
    std::string content_path;
    Stamp answers;                    // the state of the other end that was merged into it
    std::optional<KnownItem> source;  // of a move: what goes
    Stamp removed;
  };
  struct Pending {
    Wish wish;
    StoreChange change;
    std::optional<KnownItem> before;
    std::optional<BlockSignature> signature;  // of a file's new content
  };
  // A conflict whose other version is on its way into the store. What it is in conflict with gives way only
  // once it is there.
  struct Settlement {
    Wish wish;
    ItemId copy{};
  };

  Result<void> take_record(Record record);
  Result<void> take_piece(Piece piece);
  Result<void> miss(const Piece& piece);
  bool differs(const KnownItem& own) const;  // from what the other end knows
  bool follows(const KnownItem& own, const Wish& wish) const;
  bool will_be_merged(const KnownItem& own) const;
  Result<void> decide(Wish wish);
  Result<void> decide_with_room(Wish wish, const std::optional<KnownItem>& own);
  Result<void> tell(Wish wish, const std::optional<KnownItem>& own, bool conflicts);
  Merged merged_state(const Wish& wish, const KnownItem& own) const;
  bool needs_room(const Wish& wish, const std::optional<KnownItem>& own) const;
  Result<bool> clear_the_way(Wish& wish, const std::optional<KnownItem>& own);
  Result<bool> clear_above(Wish& wish);
  Result<std::vector<KnownItem>> known_above(const Item& item);
  Result<std::optional<KnownItem>> obstacle_above(const Item& item);
  Result<void> hold_back(Wish wish, const KnownItem& obstacle);
  Result<void> make_directory_of(const KnownItem& obstacle);
  Result<void> bring_back(const KnownItem& directory);
  Result<void> keep_directory(Wish wish, const KnownItem& own);
  Result<bool> keeps_directory(Wish& wish, const std::optional<KnownItem>& own);
  Result<bool> has_unseen_below(const std::string& folder);
  void leave(const Wish& wish);
  Result<void> merge_with(Wish wish, const KnownItem& own);
  Result<void> settle(Wish wish, const KnownItem& own);
  Result<void> settle_kept();
  Result<void> make(Wish wish, const std::optional<KnownItem>& own);
  Result<void> make_deletions();
  Result<void> apply_pending();
  std::set<std::string> contents_in_use() const;
  Result<ItemId> keep_other_version(const Item& other, const Wish& wish, const KnownItem& own, bool is_ours);
  Result<bool> find_content(Wish& wish);
  bool get_content(Wish& wish);
  Result<void> keep_in_trash(const KnownItem& known);
  Result<void> note_made(const Pending& pending, const Entry& entry);
  Result<void> note_state(const Wish& wish, const std::optional<KnownItem>& own, const std::string& local);
  static Wish removal_of(const Wish& wish);
  static std::optional<BlockSignature> signature_of(const Wish& wish);
  void note_seen(const Wish& wish);
  void queue_deletion(Wish wish);
  void need(const Stamp& stamp);
  void skip(const Wish& wish, const Error& error);

  Replica& replica_;
  SyncStore& store_;
  ContentFiles& trash_;
  ContentFiles& parts_;
  PeerView& peer_;
  const ReplicaId peer_id_;
  const Conflicts conflicts_;
  const Observer observer_;

  bool is_mail_ = false;
  bool may_delete_ = false;
  std::vector<Wish> deletions_;  // until they are allowed
  std::unordered_set<ItemId, ItemIdHash> queued_;
  // Directories that are to go, or to be something else, by path: what is in others comes first.
  std::map<std::string, Wish, std::greater<>> directories_;
  std::map<ItemId, Wish> held_back_;
  bool is_last_try_ = false;  // of those that were held back
  std::vector<Settlement> to_settle_;
  std::vector<Pending> pending_;
  std::set<ItemId> going_;  // by what is pending
  bool has_uncommitted_trash_ = false;
  std::set<std::string> folders_made_;  // in which something was made
  std::set<ItemId> pending_items_;
  std::size_t waiting_bytes_ = 0;
  ParcelReader reader_;
  std::uint64_t parcels_ = 0;
  std::vector<Stamp> needed_;
  std::set<Stamp> asked_for_;  // parts of contents that follow one that was not understood
  std::map<std::string, std::uint64_t> deletions_by_folder_;
  std::map<ItemId, std::vector<Stamp>> left_;  // conflicts that the other end is to settle
  std::vector<std::pair<ItemId, Stamp>> merged_;
  std::set<Stamp> failed_;
  std::unordered_set<ItemId, ItemIdHash> told_of_;  // while sets are compared
  std::optional<std::string> clear_folder_;  // all above it are directories, when it was last looked at
  std::set<ItemId> told_conflicts_;          // in a rehearsal
};

}  // namespace kin::sync

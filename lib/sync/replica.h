// Replica: what is known of a store: its items and their stamps, where they are in it, and what others have
// seen.
//
// All of it can be lost, at the price of a longer first exchange: the store is scanned again, by a replica of
// another id, and a set reconciliation finds what differs. So nothing here is worth more than the store
// itself, and it must never be trusted against it.
//
// Changes are seen at once; the for_each... commit them first. One thread at a time.
#pragma once

#include "lib/sync/item_merge.h"
#include "lib/sync/sync_store.h"
#include "lib/sync/table.h"
#include "lib/sync/version_set.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kin::sync {

// The sum of all items' state hashes: the same on two replicas if what they have is.
using SetDigest = std::array<std::uint64_t, 2>;

// A state that was replaced, kept as long as some peer may have changed it: the base of a merge.
struct PastState {
  Stamp stamp;
  ItemState state;
};

struct KnownItem {
  ItemId id{};
  Stamp stamp;
  Item item;  // of a deleted one: as it was
  bool deleted = false;
  std::string local;            // by which the store has it
  std::vector<PastState> past;  // oldest first

  ItemState state() const { return deleted ? ItemState() : ItemState(item); }
};

// What a scan saw of an entry, so that it need not be read again.
struct SeenEntry {
  Fingerprint fingerprint;
  std::uint64_t look = 0;  // of flags and all else that is seen without reading it
  ItemId item{};
};
std::uint64_t look_of(const Entry& entry);

struct Peer {
  ReplicaId id = 0;
  VersionSet seen;
  std::string name;  // where it was found, for people
  std::int64_t last_seconds = 0;
};

class Replica {
 public:
  // `identity` is that of the machine and the directory. Where it is another than before, the state was
  // copied, or the directory is another one: then was_copied(), and start_anew() is to be called before
  // anything else.
  static Result<std::unique_ptr<Replica>> open(Table& table, std::string_view identity);

  // How many items were there, when the table was last written; 0 also if it is new.
  static Result<std::uint64_t> known_items(Table& table);

  ReplicaId id() const { return id_; }
  bool is_new() const { return is_new_; }          // nothing was known
  bool was_copied() const { return was_copied_; }  // by its identity
  // As if nothing had been known, but for notes that begin so. Two replicas of one id would take each other's
  // changes for known; and what is not in another directory was not deleted there.
  Result<void> start_anew(ByteView kept_notes);
  const VersionSet& seen() const { return seen_; }
  void add_seen(const Stamp& stamp);
  void set_seen(VersionSet seen);
  const SetDigest& digest() const { return digest_; }
  std::uint64_t live_items() const { return live_; }
  Stamp next_stamp();
  std::uint64_t last_sequence() const { return last_sequence_; }
  // The state is older than what others have seen of this replica: it was restored. Stamps must not be used
  // twice.
  Result<void> take_new_id();

  Result<std::optional<KnownItem>> find(const ItemId& id);
  Result<std::optional<KnownItem>> find_by_stamp(const Stamp& stamp);
  // Those whose ids begin so; at most `most`.
  Result<std::vector<KnownItem>> find_by_prefix(ByteView prefix, std::size_t most);
  // Live items with this content; at most `most`.
  Result<std::vector<KnownItem>> with_object(const ObjectId& object, std::size_t most);
  Result<void> for_each_live(const std::function<Result<void>(const KnownItem& known)>& visit);
  // Items whose last change is not in `seen`, deleted ones too.
  Result<void> for_each_unseen(const VersionSet& seen,
                               const std::function<Result<void>(KnownItem known)>& visit);

  // The item's new state; its past states are kept as far as peers may need them.
  Result<void> set(KnownItem known);

  // What was deleted before `least_seconds` (since 1970), and all peers know of, needs not be known any
  // longer. Peers that were not met since then are given up: when one comes back, its items are compared, and
  // what was deleted meanwhile comes with it.
  Result<void> forget_deleted(std::int64_t least_seconds);

  Result<std::optional<SeenEntry>> entry(const std::string& folder, const std::string& local);
  void set_entry(const std::string& folder, const std::string& local, const SeenEntry& seen);
  void forget_entry(const std::string& folder, const std::string& local);
  // Of one folder, in the order of `local`; as committed.
  using OnSeen = std::function<Result<void>(std::string local, const SeenEntry& seen)>;
  class EntryCursor {
   public:
    bool valid() const { return valid_; }
    const std::string& local() const { return local_; }
    const SeenEntry& seen() const { return seen_; }
    Result<void> next();

   private:
    friend class Replica;
    Result<void> read();
    std::unique_ptr<TableCursor> cursor_;
    Bytes prefix_;
    bool valid_ = false;
    std::string local_;
    SeenEntry seen_;
  };
  Result<EntryCursor> entries_of(const std::string& folder);

  // Folders that a scan has seen, and their fingerprints then.
  Result<std::map<std::string, std::optional<std::uint64_t>>> folders();
  void set_folder(const std::string& folder, std::optional<std::uint64_t> fingerprint);
  void forget_folder(const std::string& folder);

  const std::map<ReplicaId, Peer>& peers() const { return peers_; }
  void set_peer(Peer peer);

  // Rows for others: small things that live and die with the rest. The first byte of a key says whose it is
  // (replica_rows.h).
  Result<std::optional<Bytes>> note(ByteView key);
  void set_note(ByteView key, std::optional<Bytes> value);
  Result<void> for_each_note(ByteView prefix,
                             const std::function<Result<void>(ByteView key, ByteView value)>& visit);

  std::size_t uncommitted_bytes() const { return pending_bytes_; }
  Result<void> commit(bool durable);

 private:
  explicit Replica(Table& table) : table_(table) {}

  Result<void> load(std::string_view identity);
  Result<std::optional<Bytes>> get(const Bytes& key);
  void put(Bytes key, std::optional<Bytes> value);
  void forget_past(KnownItem& known) const;
  void save_head();

  Table& table_;
  ReplicaId id_ = 0;
  bool is_new_ = false, was_copied_ = false;
  std::string identity_;
  std::uint64_t last_sequence_ = 0;
  VersionSet seen_;
  SetDigest digest_{};
  std::uint64_t live_ = 0;
  std::map<ReplicaId, Peer> peers_;
  struct InOrder {
    bool operator()(const Bytes& a, const Bytes& b) const { return as_text(a) < as_text(b); }
  };
  std::map<Bytes, std::optional<Bytes>, InOrder> pending_;
  std::size_t pending_bytes_ = 0;
  bool head_changed_ = false;
};

}  // namespace kin::sync

// Repository: a Backend with packs, index, snapshots and keys, as a BlockStore.
//
// Order of writing: packs, sync, index segment, sync, snapshot, sync. Whatever happens in between, what a
// snapshot names is there. Any number of processes may write at once; there is no lock. A reader may have its
// index from before it listed the snapshots; so what it then misses, it looks for once more in the segments
// that have come since.
#pragma once

#include "lib/base/mutex.h"
#include "lib/engine/block_store.h"
#include "store/backend.h"
#include "store/block_cache.h"
#include "store/config.h"
#include "store/index_segment.h"
#include "store/key_file.h"
#include "store/marks.h"
#include "store/object_index.h"
#include "store/pack.h"
#include "store/parity_file.h"
#include "store/repository_features.h"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kin::store {

struct OpenOptions {
  // Asked once if the repository is encrypted. A null function means that there is no way to ask.
  std::function<Result<std::string>()> password;
  std::string cache_directory;  // the repository's own folder is made below it
  bool use_cache = true;
  // Told once if the cache cannot be had, other than as it is in use, or fails later; all goes on with a
  // temporary one. Any thread may call it.
  std::function<void(const Error&)> on_cache_lost;
  // Told of what is wrong but hinders nothing: a key of another repository.
  std::function<void(const Error&)> on_warning;
  // Told of packs that were damaged or missing and are healed, and whether they could be put back. Any thread
  // may call it.
  std::function<void(const ObjectId& pack, const Result<void>& put_back)> on_healed;
  bool heal = true;      // where there is parity for it
  bool put_back = true;  // what is healed; else it is in memory only
  // Of healed packs that cannot be put back, as on a medium that is read-only. What was asked for last is
  // kept, however large.
  std::size_t healed_bytes = 64 << 20;
  std::size_t block_cache_bytes = 16 << 20;
  // Of features, and of cuts. Others are for studies, in repositories that nobody will open again.
  std::size_t window_bytes = Scanner::kWindowBytes;
};

struct StoredSnapshot {
  SnapshotId id;
  Snapshot snapshot;
};

// Longer than any chain that kin writes; ends a cycle in forged headers.
inline constexpr unsigned kMostChain = 64;

class Repository : public BlockStore {
 public:
  // invalid_argument if there is one already. No password: not encrypted. `features`: the most in a sketch.
  static Result<void> create(Backend& backend, const std::optional<std::string>& password,
                             const PasswordCost& cost = {}, unsigned features = Scanner::kDefaultFeatures,
                             unsigned parity_percent = 0, Access access = Access::read_write);
  // no_repository, wrong_password, corrupt, unsupported.
  static Result<std::unique_ptr<Repository>> open(std::unique_ptr<Backend> backend,
                                                  const OpenOptions& options);
  ~Repository() override;

  Backend& backend() { return *backend_; }
  const Config& config() const { return config_; }
  const Key& master_key() const { return master_key_; }
  const std::string& key_name() const { return key_name_; }  // of the key that opened it; empty if plain
  std::string id() const;

  // What its access permits, and whether this kin knows all that a writer has to. Whoever adds to the
  // repository asks the first, and whoever removes or replaces something the second, before anything is done;
  // all that is below does so by itself. refused, or unsupported.
  Result<void> require_writable() const;
  Result<void> require_removable() const;
  // From now on; who has the repository open does not see it. Permitted whatever the access is.
  Result<void> set_access(Access access);

  // Keys of an encrypted repository. Durable on return.
  Result<std::string> add_key(const std::string& password, const PasswordCost& cost = {});
  Result<void> remove_key(const std::string& name);
  Result<std::string> replace_key(const std::string& password,
                                  const PasswordCost& cost = {});  // the one in use

  // Objects. Reads the index segments that the cache lacks before the first lookup; after that,
  // refresh_index() sees those of others. A segment that cannot be read is an error, unless there is someone
  // to tell.
  Result<void> refresh_index(const std::function<void(const Error&)>& on_damage = {});
  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override;
  Result<bool> contains(const ObjectId& id) override;
  Result<BlockRef> locate(const ObjectId& id) override;
  Result<std::shared_ptr<const BlockContent>> load_block(const BlockRef& block) override;
  // Without the payload, which may be damaged while this reads well.
  Result<BlockHeader> block_header(const BlockRef& block);
  // As it is stored; decode() says whether the payload is sound.
  Result<OpenedBlock> open_block_at(const BlockRef& block);
  // Stored ones only. What was committed before list_snapshots() was last called is found.
  Result<std::optional<Location>> find_location(const ObjectId& id);
  Result<Chain> chain(const ObjectId& id) override;
  ObjectIndex& index() { return *index_; }

  ObjectId id_of(ByteView object) const override;
  const Scanner& scanner() const override { return scanner_; }
  RepositoryFeatures& features() override;
  // Reads from the packs' headers the features of segments that the feature store lacks, for who looks for
  // kin without writing; begin_writing() does it too.
  Result<void> fill_features(const std::stop_token& stop);
  // Another process has the feature store: this one has an empty one of its own. To be asked after the first
  // use.
  bool features_are_elsewhere() const { return came_second_; }
  // Where this process keeps what it may lose: never to be backed up, or restored over.
  std::vector<std::string> local_directories() const;
  Result<bool> claim(const ObjectId& id) override;
  bool is_stored_again(const ObjectId& id) const override;
  Result<std::uint64_t> append(const EncodedBlock& block) override;
  Result<void> flush() override;
  std::set<ObjectId> written_packs() const;  // since this was opened, by this
  // From now on no new pack gets the name of one that was there: a prune may be about to remove that.
  // begin_writing() calls it where there are marks.
  void name_packs_anew();
  Result<SnapshotId> commit(const Snapshot& snapshot) override;

  // Before the first claim(). If the last backup from here did not end well, there may be packs that are
  // whole but in no index segment: their objects become known again, so that they are not stored twice. Gives
  // the number of such packs.
  Result<std::size_t> begin_writing(const std::stop_token& stop = {});
  // Packs that are missing, or that could not be read since. What is in them, or leans on them, no longer
  // counts as stored, so that a backup which meets it again stores it again.
  std::vector<ObjectId> lost_packs() const;
  std::uint64_t times_stored_again() const;  // objects, for that reason, since this was opened
  // begin_writing() looks for them; here for who only asks what a backup would do.
  Result<void> find_lost_packs();
  // Someone found this pack to be damaged. The next backup must know of it too: it does not read what it
  // takes for stored.
  void lose_damaged(const ObjectId& pack);

  // Parity. Whoever reads a pack that is damaged or missing heals it, if there is parity for it, and puts it
  // back. begin_writing() does so with all that are lost.
  ParityPlace parity_place();
  enum class Healed { no, in_memory, on_disk };  // in memory: it cannot be written, but is read from there
  // And what else is damaged of the packs that have parity together; unless it cannot be put back, when only
  // so much is kept as memory allows.
  Healed heal(const ObjectId& pack, const std::stop_token& stop = {});
  // Is it whole now where it belongs? An error if it could be healed, but not be put there: then nobody
  // should give it up.
  Result<bool> heal_on_disk(const ObjectId& pack, const std::stop_token& stop = {});
  std::set<ObjectId> healed_packs();  // since this was opened, and on disk
  // Of what is written from now on. Who has the repository open does not see it.
  Result<void> set_parity_percent(unsigned percent);

  // Snapshots. A damaged one is an error that names it. busy if a prune has removed, or removes, some of what
  // the new one needs, since this was opened: then it is not there, and what made it must be done again.
  Result<std::vector<SnapshotId>> list_snapshots();
  Result<Snapshot> load_snapshot(const SnapshotId& id);
  Result<SnapshotId> save_snapshot(const Snapshot& snapshot);
  Result<void> remove_snapshot(const SnapshotId& id);
  // The new one is durable before the old one goes.
  Result<SnapshotId> replace_snapshot(const SnapshotId& id, const Snapshot& snapshot);
  // Forgotten ones are no snapshots, but can be again while what they name is there.
  Result<void> forget_snapshot(const SnapshotId& id);
  // Of one that cannot be read, what there is becomes a forgotten one, unless that is there and whole.
  Result<void> set_aside_snapshot(const SnapshotId& id);
  Result<void> recall_snapshot(const SnapshotId& id);
  Result<std::vector<SnapshotId>> list_forgotten();
  Result<Snapshot> load_forgotten(const SnapshotId& id);

  Result<IndexSegment> load_index_segment(const std::string& name);
  // A new index from the packs alone; the old segments are removed after the new ones are durable.
  // Packs that parity can heal are healed first; if they cannot be put back, that is an error, and the old
  // index stays. `on_damage` is told of packs that cannot be read to their end; what precedes the damage is
  // indexed.
  struct RebuildStats {
    std::uint64_t packs = 0, blocks = 0, objects = 0, damaged_packs = 0;
  };
  Result<RebuildStats> rebuild_index(const std::function<void(const Error&)>& on_damage,
                                     const std::function<void(std::size_t, std::size_t)>& on_progress);

  // Replaces the segments that list these packs by such as do not.
  Result<void> drop_from_index(const std::set<ObjectId>& packs, const std::stop_token& stop);

  // A block straight from its bytes, for check: header, payload and every object's id are verified.
  Result<BlockContent> decode_record(const Salt& salt, std::uint64_t offset, ByteView record);
  Result<BlockContent> decode(const OpenedBlock& block);
  const Sealer& sealer() const { return sealer_; }

 private:
  Repository(std::unique_ptr<Backend> backend, Config config, const Key& master_key, std::string key_name,
             const OpenOptions& options);

  // A pack under construction. Its blocks' positions go to the index once it has its name; until then, a
  // random one stands for that.
  struct OpenPack {
    ObjectId id;
    std::unique_ptr<PackBuilder> builder;
    IndexSegment contents;  // with one pack, unnamed
  };

  struct PendingObject {
    BlockRef block;
    std::optional<ObjectId> base;
  };

  Result<void> open_index();
  void tell_cache_lost(const Error& why);  // once, whichever part of it
  Result<void> require_known_features() const;
  Result<void> replace_config(const Config& config);
  Result<std::vector<SnapshotId>> list_by_id(FileKind kind);
  Result<Snapshot> load_snapshot_file(const FileName& name);
  Result<void> move_snapshot(const SnapshotId& id, FileKind from, FileKind to,
                             const std::function<Result<void>()>& check);
  // Fills the index from the segments; the caller has recovery_mutex_ alone. Each time that one was replaced
  // while they were read, it looks again.
  static constexpr int kMostListings = 100;
  Result<void> fill_index(const std::function<void(const Error&)>& on_damage, int tries = kMostListings);
  Result<void> recover_index(const Error& why);                      // likewise
  Result<void> retreat(const Error& why);                            // likewise; leaves the index empty
  Result<std::optional<Location>> find_indexed(const ObjectId& id);  // by the index as it is
  Result<void> add_to_index(const std::string& segment_name, const IndexSegment& segment);
  Result<void> mark_unclean() KIN_REQUIRES(mutex_);
  Result<void> finish_pack(OpenPack& pack) KIN_REQUIRES(mutex_);
  void abandon(OpenPack& pack) KIN_REQUIRES(mutex_);
  Result<void> require_all_fitted();
  Result<void> checkpoint() KIN_REQUIRES(mutex_);
  Result<std::string> put_index_segment(IndexSegment& segment);
  Result<void> write_unindexed() KIN_REQUIRES(mutex_);
  Result<std::size_t> adopt_packs(const std::stop_token& stop);
  Result<void> put_index_segments(IndexSegment& segment);  // which is empty then
  Result<void> heal_for_index(const std::vector<FileInfo>& segments);
  Result<void> drop_removed_packs(const std::vector<FileInfo>& packs);
  Result<void> read_marks_at_open();
  // Of a snapshot that is there: a prune that has not seen it, later than this sweep, may have removed some
  // of what it needs.
  Result<void> require_unswept(const Snapshot& snapshot, std::uint64_t last_sweep);
  bool is_known_lost(const ObjectId& pack) const;
  bool is_lost(const ObjectId& pack) const;   // or about to be removed
  bool is_whole(const ObjectId& pack) const;  // by its name; reads all of it
  void lose(const ObjectId& pack);
  void heal_lost_packs(const std::stop_token& stop);
  std::shared_ptr<const Bytes> healed_pack(const ObjectId& pack) const;  // null if it is not in memory
  Result<void> put_back(const ObjectId& pack, ByteView bytes);
  Healed keep_healed(const ObjectId& pack, Bytes bytes, const ObjectId& asked_for) KIN_REQUIRES(heal_mutex_);
  void keep_in_memory(const ObjectId& pack, Bytes bytes, const ObjectId& asked_for) KIN_REQUIRES(mutex_);
  std::size_t healed_bytes() const KIN_REQUIRES(mutex_);
  // Its chain is there to the end, and no pack of it is lost; at this place, or at another that the object
  // has.
  Result<bool> is_sound_at(const Location& location);
  Result<bool> is_sound(const ObjectId& id, const Location& location);
  // A part of a pack, which may still be open.
  Result<Bytes> read_pack(const ObjectId& pack, std::uint64_t offset, std::size_t size, Salt& salt);
  // A chain on the way down: whose base comes twice is in a loop. Forged segments could name any number of
  // other places at every step, so that the tries are counted.
  struct Path {
    std::vector<ObjectId> ids;
    unsigned deltas = 0;
    unsigned deltas_below = 0;  // of the block that was read last
    unsigned tries_left = 64;
    bool names_base = false;  // the error on its way up says which base cannot be read, and need not say more
  };
  Result<std::shared_ptr<const Bytes>> load_base(const BlockHeader& header, Path& path);
  // Its objects are not yet compared with their ids.
  Result<BlockContent> decode_block(const OpenedBlock& block, const Bytes* base, unsigned deltas);
  Result<void> verify(const BlockContent& content) const;
  Result<std::shared_ptr<const BlockContent>> load_block_at(const BlockRef& block, Path& path);
  Result<std::shared_ptr<const Bytes>> load_from(const BlockRef& block, const ObjectId& id, Path& path);
  Result<std::shared_ptr<const Bytes>> load_at(const ObjectId& id, Path& path);
  Result<std::shared_ptr<const Bytes>> load_other(const ObjectId& id, const BlockRef& block, Path& path);
  // Where else an object is than the index says. Read from all segments when first asked for: only damage
  // asks.
  Result<std::vector<Location>> other_places(const ObjectId& id);
  Result<bool> forget_old_places();  // if there are other segments by now; says whether

  const std::unique_ptr<Backend> backend_;
  const Config config_;
  const Key master_key_;
  const std::string key_name_;
  const Sealer sealer_;
  const Key id_key_;
  const Key parity_key_;
  const Scanner scanner_;
  std::unique_ptr<ObjectIndex> index_;
  const std::string cache_directory_;  // of this repository; empty: none
  const std::function<void(const Error&)> on_cache_lost_;
  const std::function<void(const ObjectId&, const Result<void>&)> on_healed_;
  const bool heals_, may_put_back_;
  const std::size_t most_healed_bytes_;
  std::atomic<bool> cache_lost_ = false;          // and told
  std::unique_ptr<RepositoryFeatures> features_;  // made when first asked for
  bool came_second_ = false;                      // another process has the feature store
  BlockCache cache_;
  std::set<std::string> mark_names_;  // when this was opened
  Marks marks_;                       // likewise

  // How often the snapshots were listed, and how often that was when the index was last filled: with equal
  // numbers, what is not in the index is missing.
  std::atomic<std::uint64_t> snapshot_listings_ = 0, indexed_listings_ = 0;
  // Held by all who look up or add objects, and alone by who fills the index again. After mutex_, where both
  // are.
  std::shared_mutex recovery_mutex_;
  Mutex heal_mutex_;  // before mutex_, where both are
  std::set<ObjectId> healed_on_disk_ KIN_GUARDED_BY(heal_mutex_);
  bool puts_back_ KIN_GUARDED_BY(heal_mutex_) = true;  // as far as is known
  // By the parity file: what was damaged, and is not healed by it.
  std::map<std::string, std::set<ObjectId>> tried_in_vain_ KIN_GUARDED_BY(heal_mutex_);
  mutable Mutex mutex_;
  struct HealedPack {
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t number = 0;  // as they came
  };
  std::map<ObjectId, HealedPack> healed_ KIN_GUARDED_BY(mutex_);  // and not put back
  std::uint64_t next_healed_ KIN_GUARDED_BY(mutex_) = 0;
  std::set<ObjectId> beyond_healing_ KIN_GUARDED_BY(mutex_);
  bool began_writing_ KIN_GUARDED_BY(mutex_) = false;
  bool marked_unclean_ KIN_GUARDED_BY(mutex_) = false;
  bool new_names_ KIN_GUARDED_BY(mutex_) = false;
  std::array<OpenPack, 2> open_packs_ KIN_GUARDED_BY(mutex_);  // content, metadata
  IndexSegment unindexed_ KIN_GUARDED_BY(mutex_);              // finished packs that no segment lists yet
  std::unordered_map<ObjectId, PendingObject, ObjectIdHash> pending_
      KIN_GUARDED_BY(mutex_);  // objects of open packs and of unindexed_
  std::unordered_set<ObjectId, ObjectIdHash> claimed_ KIN_GUARDED_BY(mutex_);       // and not yet appended
  std::unordered_set<ObjectId, ObjectIdHash> stored_again_ KIN_GUARDED_BY(mutex_);  // likewise
  std::unordered_set<ObjectId, ObjectIdHash> abandoned_ KIN_GUARDED_BY(mutex_);     // and not appended since
  std::uint64_t times_stored_again_ KIN_GUARDED_BY(mutex_) = 0;
  std::unordered_map<ObjectId, ObjectId, ObjectIdHash> final_names_
      KIN_GUARDED_BY(mutex_);  // of packs that were open
  std::size_t unsynced_packs_ KIN_GUARDED_BY(mutex_) = 0;
  std::int64_t last_sync_seconds_ KIN_GUARDED_BY(mutex_) = 0;
  mutable Mutex lost_mutex_;  // after all others
  std::atomic<bool> knows_lost_packs_ =
      false;  // it has looked for them, so that it does with each new segment
  std::set<ObjectId> lost_packs_ KIN_GUARDED_BY(lost_mutex_);
  // Whose chains were followed to the end while no pack was lost.
  std::unordered_set<ObjectId, ObjectIdHash> sound_bases_ KIN_GUARDED_BY(lost_mutex_);
  Mutex other_places_mutex_;
  std::optional<std::unordered_multimap<ObjectId, Location, ObjectIdHash>> other_places_
      KIN_GUARDED_BY(other_places_mutex_);
  std::vector<FileInfo> other_places_files_
      KIN_GUARDED_BY(other_places_mutex_);  // listed when these were read
  std::unordered_map<ObjectId, Salt, ObjectIdHash> salts_ KIN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<BlockDecoder>> idle_decoders_ KIN_GUARDED_BY(mutex_);
};

}  // namespace kin::store

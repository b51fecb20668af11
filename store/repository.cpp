#include "store/repository.h"

#include "store/block_use.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace kin::store {
namespace {

constexpr std::string_view kSnapshotMagic = "KINSNAP1";

// How much of a killed backup may have to be read again: packs not yet synced.
constexpr std::size_t kPacksPerSync = 4;
constexpr std::int64_t kSecondsPerSync = 10;

std::size_t slot_for(const EncodedBlock& block) {
  return is_metadata(block.header.objects.front().kind) ? 1 : 0;
}

// By a clock that nobody sets.
std::int64_t seconds_passed() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Empty if there is none.
std::string temporary_directory() {
  std::error_code ignored;
  return std::filesystem::temp_directory_path(ignored).string();
}

}  // namespace

Result<void> Repository::create(Backend& backend, const std::optional<std::string>& password,
                                const PasswordCost& cost, unsigned features, unsigned parity_percent,
                                Access access) {
  const auto config_there = backend.get(config_name());
  if (config_there)
    return Error(ErrorCode::invalid_argument, printable(backend.location()) + " is a repository already");
  // A config that cannot be read just now is not one that is not there.
  if (config_there.error().code() != ErrorCode::not_found) return config_there.error();
  // Keys alone are left by a kin init that was killed; they open nothing.
  for (const FileKind kind : {FileKind::pack, FileKind::index, FileKind::snapshot}) {
    KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(kind));
    if (!files.empty())
      return Error(ErrorCode::invalid_argument,
                   fmt::format("{} holds a damaged repository: there are {}s but no config",
                               backend.location(), name_of(kind)));
  }
  KIN_TRY_ASSIGN(const std::vector<FileInfo> old_keys, backend.list(FileKind::key));
  for (const FileInfo& key : old_keys) KIN_TRY(backend.remove({FileKind::key, key.name}));
  const Key master_key = random_key();
  Config config;
  config.repository_id = random_key();
  config.created = now();
  config.features = features;
  config.parity_percent = parity_percent;
  config.access = access;
  if (password) {
    config.encryption = Encryption::xchacha20_poly1305;
    KIN_TRY(store::add_key(backend, master_key, *password, cost));
  } else {
    config.plain_master_key = master_key;
  }
  KIN_TRY(backend.put(config_name(), encode_config(config, master_key)));
  return backend.sync();
}

Result<std::unique_ptr<Repository>> Repository::open(std::unique_ptr<Backend> backend,
                                                     const OpenOptions& options) {
  auto file = backend->get(config_name());
  if (!file) {
    // A config that cannot be read just now is not one that is not there.
    if (file.error().code() != ErrorCode::not_found) return std::move(file).error();
    std::error_code ignored;
    const bool exists = std::filesystem::exists(backend->location(), ignored);
    const std::string place = printable(backend->location());
    return Error(ErrorCode::no_repository,
                 exists ? place + " is not a kin repository: it has no config"
                        : "there is no repository at " + place + " (kin init makes one)");
  }
  KIN_TRY_ASSIGN(Config config, decode_config(*file));
  Key master_key;
  std::string key_name;
  if (config.encryption == Encryption::none) {
    master_key = *config.plain_master_key;
  } else {
    if (!options.password)
      return Error(ErrorCode::wrong_password, "the repository is encrypted, and there is no password");
    KIN_TRY_ASSIGN(const std::string password, options.password());
    KIN_TRY_ASSIGN(OpenedKey opened, open_any_key(*backend, password, [&](const Key& key) {
                     return verify_config(*file, key, config);
                   }));
    master_key = opened.master_key;
    key_name = std::move(opened.name);
    for (const std::string& name : opened.foreign)
      if (options.on_warning)
        options.on_warning(
            Error(ErrorCode::corrupt,
                  fmt::format("key {} is of another repository, and opens nothing here", name.substr(0, 8))));
  }
  KIN_TRY(verify_config(*file, master_key, config));
  std::unique_ptr<Repository> repository(
      new Repository(std::move(backend), std::move(config), master_key, std::move(key_name), options));
  KIN_TRY(repository->read_marks_at_open());
  KIN_TRY(repository->open_index());
  return repository;
}

Repository::Repository(std::unique_ptr<Backend> backend, Config config, const Key& master_key,
                       std::string key_name, const OpenOptions& options)
    : backend_(std::move(backend)),
      config_(std::move(config)),
      master_key_(master_key),
      key_name_(std::move(key_name)),
      sealer_(config_.encryption, sealing_key(master_key)),
      id_key_(object_id_key(master_key)),
      parity_key_(store::parity_key(master_key)),
      scanner_(segment_key(master_key), config_.features, options.window_bytes),
      cache_directory_(options.use_cache && !options.cache_directory.empty()
                           ? fmt::format("{}/{}", options.cache_directory, id())
                           : ""),
      on_cache_lost_(options.on_cache_lost),
      on_healed_(options.on_healed),
      heals_(options.heal),
      may_put_back_(options.put_back),
      most_healed_bytes_(options.healed_bytes),
      cache_(options.block_cache_bytes) {}

Repository::~Repository() = default;

std::string Repository::id() const { return hex(config_.repository_id); }

Result<void> Repository::open_index() {
  if (!cache_directory_.empty()) {
    auto index = ObjectIndex::open(cache_directory_);
    if (index) {
      index_ = *std::move(index);
      return {};
    }
    // Busy, or no room or right to have a cache there: a temporary one serves.
    if (index.error().code() != ErrorCode::busy) tell_cache_lost(index.error());
  }
  KIN_TRY_ASSIGN(index_, ObjectIndex::open_temporary(temporary_directory()));
  return {};
}

Result<void> Repository::retreat(const Error& why) {
  KIN_TRY(index_->retreat(temporary_directory(), why));
  tell_cache_lost(why);
  return {};
}

void Repository::tell_cache_lost(const Error& why) {
  if (!cache_lost_.exchange(true) && on_cache_lost_) on_cache_lost_(why);
}

// A process that comes second, while another has the cache, looks for kin among what it stores itself.
RepositoryFeatures& Repository::features() {
  if (features_) return *features_;
  const auto on_lost = [this](const Error& why) { tell_cache_lost(why); };
  std::unique_ptr<FeatureIndex> index;
  if (!cache_directory_.empty()) {
    auto opened = FeatureIndex::open(cache_directory_, {}, on_lost);
    came_second_ = !opened && opened.error().code() == ErrorCode::busy;
    if (!opened && !came_second_) on_lost(opened.error());
    if (opened) index = *std::move(opened);
  }
  if (!index) index = FeatureIndex::open_temporary(temporary_directory(), {}, on_lost);
  features_ = std::make_unique<RepositoryFeatures>(std::move(index));
  return *features_;
}

std::vector<std::string> Repository::local_directories() const {
  std::vector<std::string> out{index_->directory()};
  if (features_) out.push_back(features_->directory());
  return out;
}

ObjectId Repository::id_of(ByteView object) const { return {keyed_hash(id_key_, object)}; }

Result<BlockRef> Repository::locate(const ObjectId& id) {
  {
    MutexLock lock(mutex_);
    if (const auto at = pending_.find(id); at != pending_.end()) return at->second.block;
  }
  KIN_TRY_ASSIGN(const std::optional<Location> location, find_location(id));
  if (!location)
    return Error(ErrorCode::corrupt, fmt::format("object {} is missing from the repository", id.short_hex()));
  return BlockRef{location->pack, location->range.offset, location->range.size, location->content_size};
}

Result<bool> Repository::contains(const ObjectId& id) {
  {
    MutexLock lock(mutex_);
    if (pending_.contains(id)) return true;
  }
  KIN_TRY_ASSIGN(const std::optional<Location> location, find_location(id));
  if (!location) return false;
  return is_sound(id, *location);
}

bool Repository::is_known_lost(const ObjectId& pack) const {
  MutexLock lock(lost_mutex_);
  return lost_packs_.contains(pack);
}

bool Repository::is_lost(const ObjectId& pack) const {
  if (is_known_lost(pack)) return true;
  MutexLock lock(mutex_);
  return began_writing_ && marks_.condemns(pack);
}

std::vector<ObjectId> Repository::lost_packs() const {
  MutexLock lock(lost_mutex_);
  return {lost_packs_.begin(), lost_packs_.end()};
}

std::set<ObjectId> Repository::written_packs() const {
  MutexLock lock(mutex_);
  std::set<ObjectId> out;
  for (const auto& [draft, name] : final_names_) out.insert(name);
  return out;
}

Result<bool> Repository::claim(const ObjectId& id) {
  {
    MutexLock lock(mutex_);
    if (claimed_.contains(id) || pending_.contains(id)) return false;
  }
  // A miss is the usual answer here, and no reason to list the segments; at worst an object is stored twice.
  KIN_TRY_ASSIGN(const std::optional<Location> location, find_indexed(id));
  if (location) {
    KIN_TRY_ASSIGN(const bool sound, is_sound(id, *location));
    if (sound) return false;
  }
  MutexLock lock(mutex_);
  if (location && stored_again_.insert(id).second) ++times_stored_again_;
  return claimed_.insert(id).second;
}

std::uint64_t Repository::times_stored_again() const {
  MutexLock lock(mutex_);
  return times_stored_again_;
}

bool Repository::is_stored_again(const ObjectId& id) const {
  MutexLock lock(mutex_);
  return stored_again_.contains(id);
}

Result<std::uint64_t> Repository::append(const EncodedBlock& block) {
  MutexLock lock(mutex_);
  // Stored from here on; or, if it fails, no longer anybody's to store.
  for (const BlockObject& object : block.header.objects) {
    claimed_.erase(object.id);
    stored_again_.erase(object.id);
  }
  OpenPack& pack = open_packs_[slot_for(block)];
  if (!pack.builder) {
    KIN_TRY_ASSIGN(std::unique_ptr<Draft> draft, backend_->begin());
    pack.builder = std::make_unique<PackBuilder>(sealer_, std::move(draft), new_names_);
    pack.id = {random_key()};
  }
  KIN_TRY_ASSIGN(const BlockRange range, pack.builder->add(block));
  pack.contents.add_block(0, block.header, range);
  for (const BlockObject& object : block.header.objects) {
    pending_[object.id] = {{pack.id, range.offset, range.size, block.header.content_size}, block.header.base};
    abandoned_.erase(object.id);
  }
  if (pack.builder->size() >= kPackTargetBytes) {
    KIN_TRY(finish_pack(pack));
    KIN_TRY(checkpoint());
  }
  return range.size;
}

Result<void> Repository::finish_pack(OpenPack& pack) {
  if (!pack.builder || pack.builder->empty()) return {};
  KIN_TRY(mark_unclean());
  KIN_TRY_ASSIGN(const ObjectId id, pack.builder->put());
  ++unsynced_packs_;

  const auto number = static_cast<std::uint32_t>(unindexed_.packs.size());
  const auto first_block = static_cast<std::uint32_t>(unindexed_.blocks.size());
  unindexed_.packs.push_back({id, pack.builder->size()});
  for (IndexBlock block : pack.contents.blocks) {
    block.pack = number;
    unindexed_.blocks.push_back(block);
  }
  for (IndexObject object : pack.contents.objects) {
    object.block += first_block;
    unindexed_.objects.push_back(object);
    // The same object may be in the other open pack as well, and be known from there.
    if (const auto at = pending_.find(object.id); at != pending_.end() && at->second.block.pack == pack.id)
      at->second.block.pack = id;
  }
  final_names_[pack.id] = id;
  pack = OpenPack{};
  return {};
}

// Its room is what the index of the others needs now.
void Repository::abandon(OpenPack& pack) {
  for (const IndexObject& object : pack.contents.objects) {
    const auto at = pending_.find(object.id);
    if (at == pending_.end() || at->second.block.pack != pack.id) continue;
    pending_.erase(at);
    abandoned_.insert(object.id);
  }
  pack = OpenPack{};
}

Result<void> Repository::checkpoint() {
  const std::int64_t seconds = seconds_passed();
  if (unsynced_packs_ < kPacksPerSync && seconds - last_sync_seconds_ < kSecondsPerSync) return {};
  KIN_TRY(backend_->sync());
  unsynced_packs_ = 0;
  last_sync_seconds_ = seconds;
  if (!unindexed_.fills_a_segment()) return {};
  return write_unindexed();
}

Result<void> Repository::write_unindexed() {
  if (unindexed_.packs.empty()) return {};
  KIN_TRY_ASSIGN(const std::string name, put_index_segment(unindexed_));
  KIN_TRY(add_to_index(name, unindexed_));
  if (features_) features_->commit(name);
  for (const IndexObject& object : unindexed_.objects) pending_.erase(object.id);
  unindexed_ = IndexSegment{};
  return {};
}

Result<void> Repository::flush() {
  MutexLock lock(mutex_);
  // When the disk is full, the packs that fitted are indexed all the same, so that their content need not be
  // stored again.
  std::optional<Error> failed;
  for (OpenPack& pack : open_packs_) {
    auto finished = finish_pack(pack);
    if (finished) continue;
    if (finished.error().code() == ErrorCode::no_space) abandon(pack);
    if (!failed) failed = std::move(finished).error();
  }
  KIN_TRY(backend_->sync());
  unsynced_packs_ = 0;
  KIN_TRY(write_unindexed());
  if (failed) return *std::move(failed);
  return {};
}

// What did not fit may be named by the next snapshot, for all we know; so it must have been stored since, by
// us or by another.
Result<void> Repository::require_all_fitted() {
  std::unordered_set<ObjectId, ObjectIdHash> abandoned;
  {
    MutexLock lock(mutex_);
    abandoned = abandoned_;
  }
  for (const ObjectId& id : abandoned) {
    KIN_TRY_ASSIGN(const bool stored, contains(id));
    if (!stored) return Error(ErrorCode::no_space, "some of what was to be stored did not fit on the disk");
  }
  return {};
}

Result<SnapshotId> Repository::commit(const Snapshot& snapshot) {
  KIN_TRY(flush());
  KIN_TRY(require_all_fitted());
  KIN_TRY_ASSIGN(const SnapshotId id, save_snapshot(snapshot));
  MutexLock lock(mutex_);
  // Only who looked for packs that others left can say that there are none. A mark that cannot be set costs
  // the next run a look.
  if (began_writing_ && index_->set_clean(true)) marked_unclean_ = false;
  return id;
}

Result<void> Repository::mark_unclean() {
  if (marked_unclean_) return {};
  if (auto marked = index_->set_clean(false); !marked) {
    const std::unique_lock alone(recovery_mutex_);
    // Another thread may have mended it meanwhile. An index that was filled again is not clean.
    marked = index_->set_clean(false);
    if (!marked) KIN_TRY(recover_index(marked.error()));
  }
  marked_unclean_ = true;
  return {};
}

Result<std::size_t> Repository::begin_writing(const std::stop_token& stop) {
  KIN_TRY(require_writable());
  std::size_t adopted = 0;
  if (!index_->is_clean()) {
    KIN_TRY_ASSIGN(adopted, adopt_packs(stop));
  }
  KIN_TRY(find_lost_packs());
  heal_lost_packs(stop);
  KIN_TRY(fill_features(stop));
  bool has_marks = !marks_.packs.empty() || !marks_.sweeping.empty();
  if (!has_marks && !lost_packs().empty()) {
    KIN_TRY_ASSIGN(const std::set<std::string> names, list_marks(*backend_));
    has_marks = names != mark_names_;
  }
  if (has_marks) name_packs_anew();
  MutexLock lock(mutex_);
  KIN_TRY(mark_unclean());
  began_writing_ = true;
  last_sync_seconds_ = seconds_passed();
  return adopted;
}

void Repository::name_packs_anew() {
  MutexLock lock(mutex_);
  new_names_ = true;
}

Result<std::vector<SnapshotId>> Repository::list_by_id(FileKind kind) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(kind));
  std::vector<SnapshotId> out;
  for (const FileInfo& file : files) out.push_back(*SnapshotId::from_hex(file.name));
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<SnapshotId>> Repository::list_snapshots() {
  auto ids = list_by_id(FileKind::snapshot);
  if (ids) ++snapshot_listings_;
  return ids;
}

Result<std::vector<SnapshotId>> Repository::list_forgotten() { return list_by_id(FileKind::forgotten); }

Result<Snapshot> Repository::load_snapshot_file(const FileName& name) {
  KIN_TRY_ASSIGN(const Bytes file, get_named(*backend_, name));
  auto plain = sealer_.open_file(kSnapshotMagic, file);
  if (!plain) return std::move(plain).error().context(name.text());
  auto snapshot = decode_snapshot(*plain);
  if (!snapshot) return std::move(snapshot).error().context(name.text());
  return snapshot;
}

Result<Snapshot> Repository::load_snapshot(const SnapshotId& id) {
  return load_snapshot_file({FileKind::snapshot, id.hex()});
}

Result<Snapshot> Repository::load_forgotten(const SnapshotId& id) {
  return load_snapshot_file({FileKind::forgotten, id.hex()});
}

Result<SnapshotId> Repository::save_snapshot(const Snapshot& snapshot) {
  KIN_TRY(require_writable());
  const Bytes file = sealer_.seal_file(kSnapshotMagic, encode_snapshot(snapshot));
  const SnapshotId id{hash(file)};
  // What is known to be gone by now need not be put, for others to stumble over until it is taken back.
  KIN_TRY(require_unswept(snapshot, marks_.last_sweep));
  KIN_TRY(backend_->put({FileKind::snapshot, id.hex()}, file));
  KIN_TRY(backend_->sync());
  if (auto unswept = require_unswept(snapshot, marks_.last_sweep); !unswept) {
    KIN_TRY(backend_->remove({FileKind::snapshot, id.hex()}));  // our own, which nobody has relied on
    return std::move(unswept).error();
  }
  return id;
}

Result<void> Repository::read_marks_at_open() {
  // One that cannot be read permits nothing, and check tells of it.
  KIN_TRY_ASSIGN(StoredMarks stored, read_marks(*backend_, sealer_, [](const Error&) {}));
  mark_names_ = std::move(stored.names);
  marks_ = std::move(stored.marks);
  return {};
}

// A prune says what it will remove, and only then looks for snapshots that need it; we put ours, and only
// then look for what prunes have said. So one of the two sees the other.
Result<void> Repository::require_unswept(const Snapshot& snapshot, std::uint64_t last_sweep) {
  KIN_TRY_ASSIGN(const std::set<std::string> names, list_marks(*backend_));
  // Numbers tell nothing where the marks are others: a prune that found none, or none that it could read,
  // began to count again; and of one that gave up, another may have the number since.
  // A backup took for missing what it knew to be going. Who only names what is stored, as a new tag does, did
  // not.
  const bool has_looked = marks_.sweeping.empty() || [this] {
    MutexLock lock(mutex_);
    return began_writing_;
  }();
  if (names == mark_names_ && last_sweep == marks_.last_sweep && has_looked) return {};
  std::optional<Error> unreadable;
  KIN_TRY_ASSIGN(const StoredMarks now,
                 read_marks(*backend_, sealer_, [&](const Error& error) { unreadable = error; }));
  const auto swept = [](const std::string& why) {
    return Error(ErrorCode::busy,
                 "a prune removed some of what the snapshot needs while it was made; run it again" + why);
  };
  if (unreadable) return swept(" (" + unreadable->message() + ")");
  KIN_TRY_ASSIGN(BlockUse use, BlockUse::read(*this, {}));
  if (auto added = use.add(snapshot, {}); !added)
    return is_damage(added.error()) ? swept("") : std::move(added).error();
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::pack));
  std::set<ObjectId> there;
  for (const FileInfo& file : files) there.insert(*ObjectId::from_hex(file.name));
  for (const BlockUse::Pack& pack : use.packs())
    if (pack.is_needed && (!there.contains(pack.id) || now.marks.sweeping.contains(pack.id)))
      return swept("");
  return {};
}

Result<void> Repository::remove_snapshot(const SnapshotId& id) {
  KIN_TRY(require_removable());
  return backend_->remove({FileKind::snapshot, id.hex()});
}

Result<SnapshotId> Repository::replace_snapshot(const SnapshotId& id, const Snapshot& snapshot) {
  KIN_TRY(require_removable());
  KIN_TRY_ASSIGN(const SnapshotId replacement, save_snapshot(snapshot));
  KIN_TRY(remove_snapshot(id));
  return replacement;
}

// It is durable in its new place before it goes from the old one; a crash leaves it in both, which is no
// harm.
Result<void> Repository::move_snapshot(const SnapshotId& id, FileKind from, FileKind to,
                                       const std::function<Result<void>()>& check) {
  KIN_TRY(require_writable());
  KIN_TRY_ASSIGN(const Bytes file, get_named(*backend_, {from, id.hex()}));
  KIN_TRY(backend_->put({to, id.hex()}, file));
  KIN_TRY(backend_->sync());
  if (auto checked = check(); !checked) {
    KIN_TRY(backend_->remove({to, id.hex()}));
    return checked;
  }
  return backend_->remove({from, id.hex()});
}

Result<void> Repository::forget_snapshot(const SnapshotId& id) {
  KIN_TRY(require_removable());
  return move_snapshot(id, FileKind::snapshot, FileKind::forgotten, []() -> Result<void> { return {}; });
}

Result<void> Repository::set_aside_snapshot(const SnapshotId& id) {
  KIN_TRY(require_removable());
  if (load_snapshot(id)) return {};  // the disk had a bad moment
  const FileName from{FileKind::snapshot, id.hex()}, to{FileKind::forgotten, id.hex()};
  const auto file = backend_->get(from);
  if (!file && !is_damage(file.error())) return file.error();
  if (file && !get_named(*backend_, to)) KIN_TRY(backend_->put(to, *file));
  KIN_TRY(backend_->sync());
  return backend_->remove(from);
}

Result<void> Repository::recall_snapshot(const SnapshotId& id) {
  // Whatever was swept, and whenever: it was forgotten at the time.
  KIN_TRY_ASSIGN(const Snapshot snapshot, load_forgotten(id));
  return move_snapshot(id, FileKind::forgotten, FileKind::snapshot,
                       [&] { return require_unswept(snapshot, 0); });
}

}  // namespace kin::store

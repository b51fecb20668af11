#include "store/object_index.h"

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "store/cache_directory.h"
#include "store/reading_env.h"
#include "store/unsynced_env.h"

#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

namespace kin::store {
namespace {

// Part of the cache's path: a kin that lays it out otherwise counts up, and never meets an older cache.
constexpr std::string_view kIndexLayout = "index-3";

// Column families.
enum Family : std::size_t { objects = 0, meta = 1, records = 2 };
// The first is RocksDB's kDefaultColumnFamilyName, which may come to life later than this.
const std::string kFamilyNames[] = {"default", "meta", "records"};

// Keys of the meta family.
constexpr std::string_view kSegmentPrefix = "segment/";
constexpr std::string_view kPackPrefix = "pack/";
constexpr std::string_view kDamagedPrefix = "damaged/";
constexpr std::string_view kSoundPrefix = "sound/";
constexpr std::string_view kCleanKey = "clean";

// A database of which something is missing, or that is not ours, is of as little use as a damaged one.
bool is_useless(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsPathNotFound() || status.IsInvalidArgument() ||
         status.IsNotSupported();
}

Error cache_error(const rocksdb::Status& status) {
  return Error(status.IsCorruption() ? ErrorCode::corrupt : ErrorCode::io,
               "local cache: " + status.ToString());
}

Error closed() { return Error(ErrorCode::io, "local cache: it could not be made anew"); }

enum class OpenFor { reading, writing };

rocksdb::Options options(rocksdb::Env* env, OpenFor what = OpenFor::writing) {
  rocksdb::Options out;
  out.env = env;
  out.create_if_missing = what == OpenFor::writing;
  out.create_missing_column_families = what == OpenFor::writing;
  out.info_log_level = rocksdb::FATAL_LEVEL;
  out.keep_log_file_num = 1;
  out.max_background_jobs = 2;
  out.max_open_files = 256;
  // The default starts 15 threads at each opening, and where that many cannot be had, RocksDB aborts.
  out.max_file_opening_threads = 1;
  out.write_buffer_size = 4 << 20;
  out.compression = rocksdb::kNoCompression;  // ids do not compress
  // The default takes damage in the log for its end, and silently drops what follows, flushed or not.
  out.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(16 << 20);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

Bytes encode_location(std::uint32_t pack, const IndexBlock& block, const IndexObject& object) {
  WireWriter out;
  out.varint(pack);
  out.varint(block.range.offset);
  out.varint(block.range.size);
  out.varint(block.content_size);
  out.u8(static_cast<std::uint8_t>(object.kind));
  out.varint(object.size);
  if (block.base) out.raw(block.base->bytes);
  return out.take();
}

}  // namespace

// Where an index is: the directory, who may have it, the database.
struct ObjectIndex::State {
  enum class Place { cache, temporary, memory };

  Place place = Place::cache;
  std::string directory;
  Fd lock;
  std::unique_ptr<rocksdb::Env> own_env;  // unless place is cache; outlives the database
  std::unique_ptr<rocksdb::DB> db;        // null after a failure that only retreat() or clear() mends
  bool read_only = false;                 // `db`, until someone writes
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  Mutex adding;  // held while a segment is added; before `mutex`
  std::uint64_t next_file KIN_GUARDED_BY(adding) = 0;

  // Locations name packs by number, 1 or 2 bytes instead of 32. A number is never given twice.
  mutable Mutex mutex;
  std::unordered_map<std::uint32_t, IndexPack> packs KIN_GUARDED_BY(mutex);
  std::unordered_map<ObjectId, std::uint32_t, ObjectIdHash> pack_numbers KIN_GUARDED_BY(mutex);
  std::uint32_t next_pack KIN_GUARDED_BY(mutex) = 0;
  std::set<std::string> segments KIN_GUARDED_BY(mutex);

  std::string database() const { return directory + "/db"; }
  rocksdb::Env* env() const { return own_env ? own_env.get() : rocksdb::Env::Default(); }
  // A temporary index need not survive anything.
  rocksdb::WriteOptions durably() const {
    rocksdb::WriteOptions out;
    out.sync = place == Place::cache;
    return out;
  }

  Result<void> open_database() { return open_with(env(), OpenFor::writing); }

  // False if it has to be opened for writing, for whatever reason: that tells more.
  bool open_read_only() { return is_quickly_read(database()) && open_with(reading_env(), OpenFor::reading); }

  Result<void> open_with(rocksdb::Env* on, OpenFor what) {
    const rocksdb::Options how = options(on, what);
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : kFamilyNames) descriptors.emplace_back(name, how);
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status =
        what == OpenFor::reading
            ? rocksdb::DB::OpenForReadOnly(how, database(), descriptors, &families, &opened)
            : rocksdb::DB::Open(how, database(), descriptors, &families, &opened);
    if (is_useless(status)) return Error(ErrorCode::corrupt, cache_error(status).message());
    if (!status.ok()) return cache_error(status);
    db.reset(opened);
    read_only = what == OpenFor::reading;
    auto loaded = load_meta();
    if (!loaded) close_database();
    return loaded;
  }

  void close_database() {
    read_only = false;
    if (!db) return;
    forget_meta();
    for (rocksdb::ColumnFamilyHandle* family : families) db->DestroyColumnFamilyHandle(family);
    families.clear();
    db.reset();
  }

  void forget_meta() {
    MutexLock guard(mutex);
    packs.clear();
    pack_numbers.clear();
    next_pack = 0;
    segments.clear();
  }

  Result<void> load_meta() {
    MutexLock guard(mutex);
    const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(rocksdb::ReadOptions(), families[meta]));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const std::string_view key(at->key().data(), at->key().size());
      if (key.starts_with(kSegmentPrefix)) segments.emplace(key.substr(kSegmentPrefix.size()));
      if (!key.starts_with(kPackPrefix)) continue;
      std::uint32_t number = 0;
      const auto parsed = std::from_chars(key.data() + kPackPrefix.size(), key.data() + key.size(), number);
      WireReader in(as_bytes(at->value().ToStringView()));
      const ObjectId id{in.array<sizeof(Digest)>()};
      const IndexPack pack{id, in.varint()};
      if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || !in.finish("pack"))
        return Error(ErrorCode::corrupt, "local cache is damaged");
      know_pack(number, pack);
    }
    if (!at->status().ok()) return cache_error(at->status());
    return {};
  }

  void know_pack(std::uint32_t number, const IndexPack& pack) KIN_REQUIRES(mutex) {
    packs[number] = pack;
    pack_numbers[pack.id] = number;
    next_pack = std::max(next_pack, number + 1);
  }

  Result<void> remove_database() const {
    std::error_code error;
    std::filesystem::remove_all(database(), error);
    if (!error) return {};
    return Error(ErrorCode::io,
                 fmt::format("local cache: cannot remove {}: {}", printable(database()), error.message()));
  }

  // Empties the cache, whatever is wrong with it.
  Result<void> start_over() {
    const Notes damaged = noted(kDamagedPrefix), sound = noted(kSoundPrefix);
    close_database();
    if (place == Place::memory)
      own_env.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    else
      KIN_TRY(remove_database());
    KIN_TRY(open_database());
    keep_notes(kDamagedPrefix, damaged);
    keep_notes(kSoundPrefix, sound);
    return {};
  }

  // What was seen of packs, and cannot be read again from the segments.
  using Notes = std::map<ObjectId, std::string>;

  void note(std::string_view prefix, const ObjectId& pack, const std::optional<std::string>& value) {
    if (!db) return;
    const std::string key = fmt::format("{}{}", prefix, pack.hex());
    const auto ignored = value ? db->Put(rocksdb::WriteOptions(), families[meta], key, *value)
                               : db->Delete(rocksdb::WriteOptions(), families[meta], key);
    ignored.PermitUncheckedError();
  }

  void keep_notes(std::string_view prefix, const Notes& notes) {
    for (const auto& [pack, value] : notes) note(prefix, pack, value);
  }

  Notes noted(std::string_view prefix) const {
    Notes out;
    if (!db) return out;
    const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(rocksdb::ReadOptions(), families[meta]));
    for (at->Seek(prefix); at->Valid() && at->key().starts_with(prefix); at->Next())
      if (const auto id = ObjectId::from_hex(at->key().ToStringView().substr(prefix.size())))
        out.emplace(*id, at->value().ToString());
    return out;
  }

  ~State() {
    close_database();
    if (place == Place::temporary) remove_temporary_cache(directory);
  }
};

ObjectIndex::ObjectIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObjectIndex::~ObjectIndex() = default;

Result<std::unique_ptr<ObjectIndex>> ObjectIndex::open(const std::string& directory) {
  auto state = std::make_unique<State>();
  state->directory = fmt::format("{}/{}", directory, kIndexLayout);
  KIN_TRY_ASSIGN(state->lock, lock_cache(state->directory));
  std::unique_ptr<ObjectIndex> out(new ObjectIndex(std::move(state)));
  State& made = *out->state_;
  if (made.open_read_only()) return out;
  if (auto opened = made.open_database(); !opened) {
    // Any other failure may pass; and with the cache, what is known of damage would go.
    if (opened.error().code() != ErrorCode::corrupt) return std::move(opened).error();
    KIN_TRY(made.start_over());
  }
  return out;
}

Result<void> ObjectIndex::begin_writing() {
  {
    const std::shared_lock in_use(in_use_);
    if (!state_->read_only) return {};
  }
  const std::unique_lock alone(in_use_);
  if (!state_->read_only) return {};
  // We hold the lock since before it was read, so that it is what it was.
  state_->close_database();
  auto opened = state_->open_database();
  if (!opened) state_->open_read_only();  // for want of room, say: what is known is still known
  return opened;
}

Result<std::unique_ptr<ObjectIndex::State>> ObjectIndex::temporary_state(const std::string& parent) {
  sweep_temporary_caches(parent);
  auto state = std::make_unique<State>();
  KIN_TRY_ASSIGN(TemporaryCache made, make_temporary_cache(parent));
  state->directory = std::move(made.directory);
  state->lock = std::move(made.lock);
  state->place = State::Place::temporary;
  state->own_env = make_unsynced_env();
  KIN_TRY(state->open_database());
  return state;
}

Result<std::unique_ptr<ObjectIndex::State>> ObjectIndex::memory_state() {
  auto state = std::make_unique<State>();
  state->directory = "/kin";
  state->place = State::Place::memory;
  state->own_env.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  KIN_TRY(state->open_database());
  return state;
}

Result<std::unique_ptr<ObjectIndex>> ObjectIndex::open_temporary(const std::string& parent) {
  auto state = parent.empty() ? memory_state() : temporary_state(parent);
  if (!state) state = memory_state();
  if (!state) return std::move(state).error();
  return std::unique_ptr<ObjectIndex>(new ObjectIndex(*std::move(state)));
}

Result<void> ObjectIndex::retreat(const std::string& parent, const Error& why) {
  const std::unique_lock alone(in_use_);
  if (state_->place == State::Place::memory) return why;
  const bool try_directory = state_->place == State::Place::cache && !parent.empty();
  auto next = try_directory ? temporary_state(parent) : memory_state();
  if (!next && try_directory) next = memory_state();
  if (!next) return why;
  for (const std::string_view prefix : {kDamagedPrefix, kSoundPrefix})
    (*next)->keep_notes(prefix, state_->noted(prefix));
  // What is left would be taken for true by the next who comes: above all the mark that it is clean, which
  // perhaps could not be taken away. Unless it is no longer ours.
  state_->close_database();
  if (state_->place == State::Place::cache &&
      is_there(state_->lock, fmt::format("{}{}", state_->directory, kCacheLockName)))
    static_cast<void>(state_->remove_database());
  state_ = *std::move(next);
  return {};
}

Result<std::optional<Location>> ObjectIndex::locate(const ObjectId& id) {
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return closed();
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      state_->db->Get(rocksdb::ReadOptions(), state_->families[objects], as_text(id.bytes), &value);
  if (status.IsNotFound()) return std::optional<Location>();
  if (!status.ok()) return cache_error(status);
  WireReader in(as_bytes(value.ToStringView()));
  Location out;
  const std::uint64_t pack = in.varint();
  out.range.offset = in.varint();
  out.range.size = static_cast<std::uint32_t>(in.varint());
  out.content_size = in.varint();
  out.kind = static_cast<ObjectKind>(in.u8());
  out.size = in.varint();
  if (in.position() < value.size()) out.base = ObjectId{in.array<32>()};
  MutexLock lock(state_->mutex);
  const auto known = state_->packs.find(static_cast<std::uint32_t>(pack));
  if (pack != static_cast<std::uint32_t>(pack) || known == state_->packs.end()) in.fail();
  KIN_TRY(in.finish("local cache entry"));
  out.pack = known->second.id;
  return std::optional<Location>(out);
}

std::string ObjectIndex::directory() const {
  const std::shared_lock in_use(in_use_);
  return state_->place == State::Place::memory ? "" : state_->directory;
}

Result<void> ObjectIndex::add(const std::string& segment_name, const IndexSegment& segment) {
  KIN_TRY(begin_writing());
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return closed();
  MutexLock adding(state_->adding);
  // Pack numbers first, and for good: a number without objects is harmless. But objects are on disk as soon
  // as they are added, and if their number were lost, another pack would get it.
  std::vector<std::uint32_t> numbers;
  std::vector<std::pair<std::uint32_t, IndexPack>> added;
  rocksdb::WriteBatch batch;
  {
    MutexLock lock(state_->mutex);
    std::uint32_t next = state_->next_pack;
    for (const IndexPack& pack : segment.packs) {
      const auto known = state_->pack_numbers.find(pack.id);
      numbers.push_back(known == state_->pack_numbers.end() ? next++ : known->second);
      if (known != state_->pack_numbers.end()) continue;
      WireWriter value;
      value.raw(pack.id.bytes);
      value.varint(pack.size);
      batch.Put(state_->families[meta], fmt::format("{}{:010}", kPackPrefix, numbers.back()),
                as_text(value.bytes()));
      added.emplace_back(numbers.back(), pack);
    }
  }
  if (!added.empty()) {
    if (const auto status = state_->db->Write(state_->durably(), &batch); !status.ok())
      return cache_error(status);
    MutexLock lock(state_->mutex);
    for (const auto& [number, pack] : added) state_->know_pack(number, pack);
  }

  if (!segment.objects.empty()) {
    // A sorted file handed over whole costs a tenth of as many single writes.
    const std::string path = fmt::format("{}/ingest-{}.sst", state_->directory, state_->next_file++);
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options(state_->env()));
    rocksdb::Status status = writer.Open(path);
    for (const IndexObject& object : segment.objects) {
      if (!status.ok()) break;
      const IndexBlock& block = segment.blocks[object.block];
      const Bytes value = encode_location(numbers[block.pack], block, object);
      status = writer.Put(as_text(object.id.bytes), as_text(value));
    }
    if (status.ok()) status = writer.Finish();
    rocksdb::IngestExternalFileOptions ingestion;
    ingestion.move_files = true;
    ingestion.write_global_seqno = false;
    if (status.ok()) status = state_->db->IngestExternalFile(state_->families[objects], {path}, ingestion);
    state_->env()->DeleteFile(path).PermitUncheckedError();
    if (!status.ok()) return cache_error(status);
  }

  const auto status = state_->db->Put(rocksdb::WriteOptions(), state_->families[meta],
                                      fmt::format("{}{}", kSegmentPrefix, segment_name), "");
  if (!status.ok()) return cache_error(status);
  MutexLock lock(state_->mutex);
  state_->segments.insert(segment_name);
  return {};
}

std::set<std::string> ObjectIndex::segments() const {
  const std::shared_lock in_use(in_use_);
  MutexLock lock(state_->mutex);
  return state_->segments;
}

bool ObjectIndex::has_pack(const ObjectId& id) const {
  const std::shared_lock in_use(in_use_);
  MutexLock lock(state_->mutex);
  return state_->pack_numbers.contains(id);
}

std::vector<IndexPack> ObjectIndex::packs() const {
  const std::shared_lock in_use(in_use_);
  MutexLock lock(state_->mutex);
  std::vector<IndexPack> out;
  for (const auto& [number, pack] : state_->packs) out.push_back(pack);
  return out;
}

Result<void> ObjectIndex::clear() {
  const std::unique_lock alone(in_use_);
  return state_->start_over();
}

Result<void> ObjectIndex::set_clean(bool clean) {
  KIN_TRY(begin_writing());
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return closed();
  const rocksdb::WriteOptions options = state_->durably();
  const auto status = clean ? state_->db->Put(options, state_->families[meta], std::string(kCleanKey), "")
                            : state_->db->Delete(options, state_->families[meta], std::string(kCleanKey));
  return status.ok() ? Result<void>() : cache_error(status);
}

void ObjectIndex::note_damaged(const ObjectId& pack, bool damaged) {
  if (!begin_writing()) return;
  const std::shared_lock in_use(in_use_);
  state_->note(kDamagedPrefix, pack, damaged ? std::optional<std::string>("") : std::nullopt);
}

std::vector<ObjectId> ObjectIndex::damaged_packs() const {
  const std::shared_lock in_use(in_use_);
  std::vector<ObjectId> out;
  for (const auto& [pack, nothing] : state_->noted(kDamagedPrefix)) out.push_back(pack);
  return out;
}

void ObjectIndex::note_sound(const ObjectId& pack, std::optional<std::int64_t> seconds) {
  if (!begin_writing()) return;
  const std::shared_lock in_use(in_use_);
  state_->note(kSoundPrefix, pack, seconds ? std::optional(std::to_string(*seconds)) : std::nullopt);
}

std::map<ObjectId, std::int64_t> ObjectIndex::sound_packs() const {
  const std::shared_lock in_use(in_use_);
  std::map<ObjectId, std::int64_t> out;
  for (const auto& [pack, text] : state_->noted(kSoundPrefix)) {
    std::int64_t seconds = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, seconds);
    if (parsed.ec == std::errc() && parsed.ptr == end) out.emplace(pack, seconds);
  }
  return out;
}

bool ObjectIndex::is_clean() const {
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return false;
  std::string value;
  return state_->db->Get(rocksdb::ReadOptions(), state_->families[meta], std::string(kCleanKey), &value).ok();
}

Result<void> ObjectIndex::record(const std::vector<std::pair<std::string, Bytes>>& entries) {
  if (!begin_writing()) return {};
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return {};
  rocksdb::WriteBatch batch;
  for (const auto& [path, value] : entries) batch.Put(state_->families[records], path, as_text(value));
  state_->db->Write(rocksdb::WriteOptions(), &batch).PermitUncheckedError();
  return {};
}

Result<std::optional<Bytes>> ObjectIndex::recorded(const std::string& path) {
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return closed();
  std::string value;
  const auto status = state_->db->Get(rocksdb::ReadOptions(), state_->families[records], path, &value);
  if (status.IsNotFound()) return std::optional<Bytes>();
  if (!status.ok()) return cache_error(status);
  return std::optional<Bytes>(Bytes(value.begin(), value.end()));
}

Result<void> ObjectIndex::clear_records(const std::string& prefix) {
  if (!begin_writing()) return {};
  const std::shared_lock in_use(in_use_);
  if (!state_->db) return {};
  rocksdb::ColumnFamilyHandle* const family = state_->families[records];
  state_->db->DeleteRange(rocksdb::WriteOptions(), family, prefix, prefix + std::string(16, '\xff'))
      .PermitUncheckedError();
  return {};
}

}  // namespace kin::store

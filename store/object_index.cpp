#include "store/object_index.h"

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/wire.h"

#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <shared_mutex>
#include <sys/file.h>
#include <unistd.h>
#include <unordered_map>

namespace kin::store {
namespace {

// Part of the cache's path: a kin that lays it out otherwise counts up, and never meets an older cache.
constexpr std::string_view kLayout = "index-1";

// Column families.
enum Family : std::size_t { objects = 0, meta = 1, records = 2 };
const std::string kFamilyNames[] = {rocksdb::kDefaultColumnFamilyName, "meta", "records"};

// Keys of the meta family.
constexpr std::string_view kSegmentPrefix = "segment/";
constexpr std::string_view kPackPrefix = "pack/";
constexpr std::string_view kCleanKey = "clean";

rocksdb::Slice slice(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
ByteView view(const rocksdb::Slice& bytes) { return as_bytes({bytes.data(), bytes.size()}); }

Error cache_error(const rocksdb::Status& status) {
  return Error(status.IsCorruption() ? ErrorCode::corrupt : ErrorCode::io,
               "local cache: " + status.ToString());
}

rocksdb::Options options() {
  rocksdb::Options out;
  out.create_if_missing = true;
  out.create_missing_column_families = true;
  out.info_log_level = rocksdb::FATAL_LEVEL;
  out.keep_log_file_num = 1;
  out.max_background_jobs = 2;
  out.max_open_files = 256;
  out.write_buffer_size = 4 << 20;
  out.compression = rocksdb::kNoCompression;  // ids do not compress
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
  return out.take();
}

}  // namespace

struct ObjectIndex::State {
  std::string directory;
  bool temporary = false;
  Fd lock;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::atomic<std::uint64_t> next_file{0};
  // Held by all who use the database, and alone by who replaces it.
  mutable std::shared_mutex in_use;

  // Locations name packs by number, 1 or 2 bytes instead of 32.
  mutable Mutex mutex;
  std::vector<ObjectId> packs KIN_GUARDED_BY(mutex);
  std::unordered_map<ObjectId, std::uint32_t, ObjectIdHash> pack_numbers KIN_GUARDED_BY(mutex);
  std::set<std::string> segments KIN_GUARDED_BY(mutex);

  std::string database() const { return directory + "/db"; }

  Result<void> open_database() {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : kFamilyNames) descriptors.emplace_back(name, options());
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options(), database(), descriptors, &families, &opened);
    if (!status.ok()) return cache_error(status);
    db.reset(opened);
    return load_meta();
  }

  void close_database() {
    if (!db) return;
    for (rocksdb::ColumnFamilyHandle* family : families) db->DestroyColumnFamilyHandle(family);
    families.clear();
    db.reset();
  }

  Result<void> load_meta() {
    MutexLock guard(mutex);
    packs.clear();
    pack_numbers.clear();
    segments.clear();
    const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(rocksdb::ReadOptions(), families[meta]));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const std::string_view key(at->key().data(), at->key().size());
      if (key.starts_with(kSegmentPrefix)) segments.emplace(key.substr(kSegmentPrefix.size()));
      if (key.starts_with(kPackPrefix)) {
        // Keys are in numeric order, so position is number.
        if (at->value().size() != sizeof(Digest)) return Error(ErrorCode::corrupt, "local cache is damaged");
        pack_numbers.emplace(ObjectId::from_bytes(view(at->value())), packs.size());
        packs.push_back(ObjectId::from_bytes(view(at->value())));
      }
    }
    if (!at->status().ok()) return cache_error(at->status());
    return {};
  }

  // Empties the cache, whatever is wrong with it.
  Result<void> start_over() {
    close_database();
    std::error_code ignored;
    std::filesystem::remove_all(database(), ignored);
    return open_database();
  }

  ~State() {
    close_database();
    std::error_code ignored;
    if (temporary) std::filesystem::remove_all(directory, ignored);
  }
};

ObjectIndex::ObjectIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObjectIndex::~ObjectIndex() = default;

Result<std::unique_ptr<ObjectIndex>> ObjectIndex::open(const std::string& directory) {
  auto state = std::make_unique<State>();
  state->directory = fmt::format("{}/{}", directory, kLayout);
  KIN_TRY(make_directories(state->directory, 0700));
  // Our own lock, taken before RocksDB's, tells "in use" from "damaged".
  const std::string lock_path = state->directory + "/lock";
  state->lock = Fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!state->lock) return errno_error("cannot open", lock_path);
  if (::flock(state->lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(ErrorCode::busy, "another kin uses the local cache");
  if (!state->open_database()) KIN_TRY(state->start_over());
  return std::unique_ptr<ObjectIndex>(new ObjectIndex(std::move(state)));
}

Result<std::unique_ptr<ObjectIndex>> ObjectIndex::open_temporary(const std::string& parent) {
  auto state = std::make_unique<State>();
  std::string path = parent + "/kin-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return errno_error("cannot make a directory in", parent);
  state->directory = path;
  state->temporary = true;
  KIN_TRY(state->open_database());
  return std::unique_ptr<ObjectIndex>(new ObjectIndex(std::move(state)));
}

Result<std::optional<Location>> ObjectIndex::locate(const ObjectId& id) {
  const std::shared_lock in_use(state_->in_use);
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      state_->db->Get(rocksdb::ReadOptions(), state_->families[objects], slice(id.bytes), &value);
  if (status.IsNotFound()) return std::optional<Location>();
  if (!status.ok()) return cache_error(status);
  WireReader in(view(value));
  Location out;
  const std::uint64_t pack = in.varint();
  out.range.offset = in.varint();
  out.range.size = static_cast<std::uint32_t>(in.varint());
  out.content_size = in.varint();
  out.kind = static_cast<ObjectKind>(in.u8());
  out.size = in.varint();
  MutexLock lock(state_->mutex);
  if (pack >= state_->packs.size()) in.fail();
  KIN_TRY(in.finish("local cache entry"));
  out.pack = state_->packs[pack];
  return std::optional<Location>(out);
}

Result<void> ObjectIndex::add(const std::string& segment_name, const IndexSegment& segment) {
  const std::shared_lock in_use(state_->in_use);
  // Pack numbers first: a number without objects is harmless, the reverse is not.
  std::vector<std::uint32_t> numbers;
  rocksdb::WriteBatch batch;
  {
    MutexLock lock(state_->mutex);
    for (const IndexPack& pack : segment.packs) {
      const auto [entry, added] = state_->pack_numbers.emplace(pack.id, state_->packs.size());
      if (added) {
        batch.Put(state_->families[meta], fmt::format("{}{:010}", kPackPrefix, state_->packs.size()),
                  slice(pack.id.bytes));
        state_->packs.push_back(pack.id);
      }
      numbers.push_back(entry->second);
    }
  }
  if (const auto status = state_->db->Write(rocksdb::WriteOptions(), &batch); !status.ok())
    return cache_error(status);

  if (!segment.objects.empty()) {
    // A sorted file handed over whole costs a tenth of as many single writes.
    const std::string path = fmt::format("{}/ingest-{}.sst", state_->directory, state_->next_file++);
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options());
    rocksdb::Status status = writer.Open(path);
    for (const IndexObject& object : segment.objects) {
      if (!status.ok()) break;
      const IndexBlock& block = segment.blocks[object.block];
      const Bytes value = encode_location(numbers[block.pack], block, object);
      status = writer.Put(slice(object.id.bytes), slice(value));
    }
    if (status.ok()) status = writer.Finish();
    rocksdb::IngestExternalFileOptions ingestion;
    ingestion.move_files = true;
    ingestion.write_global_seqno = false;
    if (status.ok()) status = state_->db->IngestExternalFile(state_->families[objects], {path}, ingestion);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
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
  MutexLock lock(state_->mutex);
  return state_->segments;
}

bool ObjectIndex::has_pack(const ObjectId& id) const {
  MutexLock lock(state_->mutex);
  return state_->pack_numbers.contains(id);
}

std::uint64_t ObjectIndex::approximate_objects() const {
  const std::shared_lock in_use(state_->in_use);
  std::uint64_t keys = 0;
  state_->db->GetIntProperty(state_->families[objects], rocksdb::DB::Properties::kEstimateNumKeys, &keys);
  return keys;
}

Result<void> ObjectIndex::clear() {
  const std::unique_lock alone(state_->in_use);
  return state_->start_over();
}

Result<void> ObjectIndex::set_clean(bool clean) {
  const std::shared_lock in_use(state_->in_use);
  const rocksdb::WriteOptions options;
  const auto status = clean ? state_->db->Put(options, state_->families[meta], std::string(kCleanKey), "")
                            : state_->db->Delete(options, state_->families[meta], std::string(kCleanKey));
  return status.ok() ? Result<void>() : cache_error(status);
}

bool ObjectIndex::is_clean() const {
  const std::shared_lock in_use(state_->in_use);
  std::string value;
  return state_->db->Get(rocksdb::ReadOptions(), state_->families[meta], std::string(kCleanKey), &value).ok();
}

Result<void> ObjectIndex::record(const std::vector<std::pair<std::string, Bytes>>& entries) {
  const std::shared_lock in_use(state_->in_use);
  rocksdb::WriteBatch batch;
  for (const auto& [path, value] : entries) batch.Put(state_->families[records], path, slice(value));
  const auto status = state_->db->Write(rocksdb::WriteOptions(), &batch);
  return status.ok() ? Result<void>() : cache_error(status);
}

Result<std::optional<Bytes>> ObjectIndex::recorded(const std::string& path) {
  const std::shared_lock in_use(state_->in_use);
  std::string value;
  const auto status = state_->db->Get(rocksdb::ReadOptions(), state_->families[records], path, &value);
  if (status.IsNotFound()) return std::optional<Bytes>();
  if (!status.ok()) return cache_error(status);
  return std::optional<Bytes>(Bytes(value.begin(), value.end()));
}

Result<void> ObjectIndex::clear_records(const std::string& prefix) {
  const std::shared_lock in_use(state_->in_use);
  rocksdb::ColumnFamilyHandle* const family = state_->families[records];
  const auto status =
      state_->db->DeleteRange(rocksdb::WriteOptions(), family, prefix, prefix + std::string(16, '\xff'));
  return status.ok() ? Result<void>() : cache_error(status);
}

}  // namespace kin::store

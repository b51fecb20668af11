// A row per key and file, both big-endian in the row's key, so that RocksDB's order is that of numbers; its
// value is empty. A question is two iterators, one down and one up from the key, of which the nearer one
// moves on: so a bound keeps the nearest, and not those that come first in the range.
//
// Nothing is logged and nothing synced: it lives as long as the command that asks.
#include "store/rocks_key_store.h"

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "store/cache_directory.h"
#include "store/unsynced_env.h"

#include <rocksdb/db.h>

#include <array>
#include <optional>

namespace kin::store {
namespace {

using KeyRow = std::array<char, 12>;

KeyRow key_row(std::uint64_t key, std::uint32_t file) {
  KeyRow out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(key >> (56 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) out[8 + i] = static_cast<char>(file >> (24 - 8 * i));
  return out;
}

rocksdb::Slice slice_of(const KeyRow& row) { return {row.data(), row.size()}; }

class RocksKeyStore : public KeyStore {
 public:
  explicit RocksKeyStore(TemporaryCache place) : place_(std::move(place)), env_(make_unsynced_env()) {}
  ~RocksKeyStore() override {
    database_.reset();
    remove_temporary_cache(place_.directory);
  }

  Result<void> open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.info_log_level = rocksdb::FATAL_LEVEL;
    options.keep_log_file_num = 1;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = 16 << 20;
    options.max_open_files = 64;
    options.max_file_opening_threads = 1;  // the default starts 15 threads
    rocksdb::DB* opened = nullptr;
    KIN_TRY(checked(rocksdb::DB::Open(options, place_.directory + "/keys", &opened)));
    database_.reset(opened);
    return {};
  }

  Result<void> add(std::uint64_t key, std::uint32_t file) override {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return checked(database_->Put(options, slice_of(key_row(key, file)), ""));
  }

  Result<std::vector<std::uint32_t>> find_nearest(std::uint64_t key, std::uint64_t distance,
                                                  std::size_t most) const override {
    std::vector<std::uint32_t> out;
    const KeyRow last_of_key = key_row(key, UINT32_MAX);
    const std::unique_ptr<rocksdb::Iterator> down(database_->NewIterator({}));
    const std::unique_ptr<rocksdb::Iterator> up(database_->NewIterator({}));
    down->SeekForPrev(slice_of(last_of_key));
    up->Seek(slice_of(last_of_key));
    if (up->Valid() && up->key() == slice_of(last_of_key)) up->Next();  // it is the other one's
    while (out.size() < most) {
      KIN_TRY_ASSIGN(const auto below, row_at(*down));
      KIN_TRY_ASSIGN(const auto above, row_at(*up));
      const bool has_below = below && key - below->key <= distance;
      const bool has_above = above && above->key - key <= distance;
      if (!has_below && !has_above) break;
      if (has_below && (!has_above || key - below->key <= above->key - key)) {
        out.push_back(below->file);
        down->Prev();
      } else {
        out.push_back(above->file);
        up->Next();
      }
    }
    return out;
  }

  std::uint64_t bytes() const override {
    std::uint64_t out = 0;
    database_->GetIntProperty("rocksdb.cur-size-all-mem-tables", &out);
    return out;
  }

 private:
  struct Row {
    std::uint64_t key = 0;
    std::uint32_t file = 0;
  };

  // None: there are no more.
  Result<std::optional<Row>> row_at(const rocksdb::Iterator& at) const {
    if (!at.Valid()) {
      KIN_TRY(checked(at.status()));
      return std::optional<Row>();
    }
    const rocksdb::Slice bytes = at.key();
    if (bytes.size() != sizeof(KeyRow)) return Error(ErrorCode::corrupt, "the key store is damaged");
    Row out;
    for (std::size_t i = 0; i < 8; ++i) out.key = out.key << 8 | static_cast<std::uint8_t>(bytes[i]);
    for (std::size_t i = 8; i < 12; ++i) out.file = out.file << 8 | static_cast<std::uint8_t>(bytes[i]);
    return std::optional<Row>(out);
  }

  Result<void> checked(const rocksdb::Status& status) const {
    if (status.ok()) return {};
    return Error(status.IsNoSpace() ? ErrorCode::no_space : ErrorCode::io,
                 "the key store in " + printable(place_.directory) + ": " + status.ToString());
  }

  const TemporaryCache place_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> database_;
};

}  // namespace

Result<std::unique_ptr<KeyStore>> make_rocks_key_store(const std::string& parent) {
  KIN_TRY(make_directories(parent, 0700));
  sweep_temporary_caches(parent);
  KIN_TRY_ASSIGN(TemporaryCache place, make_temporary_cache(parent));
  auto out = std::make_unique<RocksKeyStore>(std::move(place));
  KIN_TRY(out->open());
  return std::unique_ptr<KeyStore>(std::move(out));
}

}  // namespace kin::store

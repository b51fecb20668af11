#include "store/rocks_table.h"

#include "lib/base/file.h"
#include "lib/base/text.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace kin::store {
namespace {

rocksdb::Slice slice_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
ByteView view_of(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::uint8_t*>(slice.data()), slice.size()};
}

Result<void> checked(const rocksdb::Status& status, const std::string& directory) {
  if (status.ok()) return {};
  ErrorCode code = ErrorCode::io;
  if (status.IsNoSpace()) code = ErrorCode::no_space;
  if (status.IsCorruption()) code = ErrorCode::corrupt;
  return Error(code, "the state in " + printable(directory) + ": " + status.ToString());
}

class Cursor : public sync::TableCursor {
 public:
  Cursor(std::unique_ptr<rocksdb::Iterator> iterator, const std::string& directory)
      : iterator_(std::move(iterator)), directory_(directory) {}

  bool valid() const override { return iterator_->Valid(); }
  ByteView key() const override { return view_of(iterator_->key()); }
  ByteView value() const override { return view_of(iterator_->value()); }
  void next() override { iterator_->Next(); }
  Result<void> result() const override { return checked(iterator_->status(), directory_); }

 private:
  std::unique_ptr<rocksdb::Iterator> iterator_;
  const std::string& directory_;
};

class RocksTable : public sync::Table {
 public:
  explicit RocksTable(std::string directory) : directory_(std::move(directory)) {}

  Result<void> open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.info_log_level = rocksdb::FATAL_LEVEL;
    options.keep_log_file_num = 1;
    options.write_buffer_size = 16 << 20;
    options.max_open_files = 128;
    options.max_file_opening_threads = 1;
    options.compression = rocksdb::kZSTD;
    options.compression_opts.level = 1;
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.block_cache = rocksdb::NewLRUCache(16 << 20);
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, directory_, &opened);
    if (status.IsIOError() && status.ToString().find("lock") != std::string::npos)
      return Error(ErrorCode::busy,
                   "another exchange of this store is under way, or both ends are this store");
    KIN_TRY(checked(status, directory_));
    database_.reset(opened);
    return {};
  }

  Result<std::optional<Bytes>> get(ByteView key) override {
    rocksdb::PinnableSlice value;
    const rocksdb::Status status =
        database_->Get({}, database_->DefaultColumnFamily(), slice_of(key), &value);
    if (status.IsNotFound()) return std::optional<Bytes>();
    KIN_TRY(checked(status, directory_));
    const ByteView bytes = view_of(value);
    return std::optional<Bytes>(Bytes(bytes.begin(), bytes.end()));
  }

  std::unique_ptr<sync::TableCursor> seek(ByteView key) override {
    rocksdb::ReadOptions options;
    options.readahead_size = 1 << 20;
    options.total_order_seek = true;
    std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(options));
    iterator->Seek(slice_of(key));
    return std::make_unique<Cursor>(std::move(iterator), directory_);
  }

  Result<void> commit(const sync::TableBatch& batch, bool durable) override {
    rocksdb::WriteBatch writes;
    for (const sync::TableBatch::Change& change : batch.changes()) {
      if (change.value)
        writes.Put(slice_of(change.key), slice_of(*change.value));
      else
        writes.Delete(slice_of(change.key));
    }
    rocksdb::WriteOptions options;
    options.sync = durable;
    return checked(database_->Write(options, &writes), directory_);
  }

 private:
  const std::string directory_;
  std::unique_ptr<rocksdb::DB> database_;
};

}  // namespace

Result<std::unique_ptr<sync::Table>> open_rocks_table(const std::string& directory) {
  KIN_TRY(make_directories(directory, 0700));
  auto out = std::make_unique<RocksTable>(directory);
  KIN_TRY(out->open());
  return std::unique_ptr<sync::Table>(std::move(out));
}

}  // namespace kin::store

// For a database that need not survive anything: files as any others, but nobody waits until they are on the
// disk. RocksDB does so thirty times to make an empty database.
#pragma once

#include <memory>

namespace rocksdb {
class Env;
}

namespace kin::store {

// Must outlive the database. Thread-safe.
std::unique_ptr<rocksdb::Env> make_unsynced_env();

}  // namespace kin::store

// For a RocksDB that is only read: Env::Default(), but no thread is started before there is something to do
// in it, which there never is.
#pragma once

namespace rocksdb {
class Env;
}

namespace kin::store {

rocksdb::Env* reading_env();  // lives as long as the process

}  // namespace kin::store

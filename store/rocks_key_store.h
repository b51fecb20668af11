// RocksKeyStore: a KeyStore in RocksDB, in a directory that disappears with it. One thread at a time.
#pragma once

#include "lib/similarity/key_store.h"

#include <string>

namespace kin::store {

// In a new directory under `parent`, which is made if need be. If the process is killed, the next temporary
// cache there sweeps it.
Result<std::unique_ptr<KeyStore>> make_rocks_key_store(const std::string& parent);

}  // namespace kin::store

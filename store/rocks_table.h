// RocksTable: a sync::Table in RocksDB, in a directory of its own. One process at a time has it.
#pragma once

#include "lib/sync/table.h"

#include <memory>
#include <string>

namespace kin::store {

// Made if need be. busy if another process has it; corrupt if it is damaged.
Result<std::unique_ptr<sync::Table>> open_rocks_table(const std::string& directory);

}  // namespace kin::store

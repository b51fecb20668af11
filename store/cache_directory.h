// Directories of the local cache: who holds the lock on the file in one has it. Anyone may remove one that
// nobody has.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"

#include <string>
#include <string_view>

namespace kin::store {

inline constexpr std::string_view kCacheLockName = "/lock";
inline constexpr std::string_view kTemporaryCachePrefix = "kin-index-";

// The open file still has this name.
bool is_there(const Fd& file, const std::string& path);

// Made if need be. busy if another process has it. The lock's time tells when the cache was last used.
Result<Fd> lock_cache(const std::string& directory);

struct TemporaryCache {
  std::string directory;
  Fd lock;
};

// A new one; who made it removes it.
Result<TemporaryCache> make_temporary_cache(const std::string& parent);
// The lock last: what is left if this is interrupted, the sweep below still knows.
void remove_temporary_cache(const std::string& directory);
// Removes those of processes that were killed. They are known by their names and by the lock in them, which a
// living process holds; nothing else in `parent` is touched.
void sweep_temporary_caches(const std::string& parent);

// A RocksDB of which all is in its tables: nothing is left in a log, which each who only reads would have to
// go through anew, while who opens it for writing puts that into a table.
bool is_quickly_read(const std::string& database);

// Removes what is kept for a repository here, by this kin and others; false if some process has it.
Result<bool> remove_cache(const std::string& directory);

}  // namespace kin::store

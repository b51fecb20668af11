// Restore: a tree back to disk.
//
// The tree is walked in order; files are collected into a window, and the blocks that hold their objects are
// read forwards, each decoded once and written to all files that need it, by several threads. Then metadata
// is set, links are made and the next window begins. Memory is bounded by the window, whatever the tree's
// size.
//
// Everything is reached by directory descriptor and a single safe name, never through a link: whatever a tree
// says, nothing outside the target is touched. A file that is there already is replaced only once its
// successor is complete.
#pragma once

#include "lib/container/container_format.h"
#include "lib/engine/block_store.h"
#include "lib/engine/directory_ids.h"
#include "lib/engine/path_filter.h"
#include "lib/object/node.h"

#include <optional>
#include <stop_token>
#include <string>

namespace kin {

enum class Overwrite { always, if_changed, if_newer, never };

struct RestoreRequest {
  ObjectId tree;
  Formats formats;                       // by whose codings containers go together again
  std::optional<std::string> only_name;  // restore this entry of the tree alone
  std::string target;                    // made if it is not there
  PathFilter includes, excludes;         // of paths in the tree, "/" + components
  std::string tree_path;                 // where `tree` lies in the snapshot, for the filters
  Overwrite overwrite = Overwrite::always;
  DirectoryIds never_touch;  // the repository itself, the cache: no target, and left as they are below one
  bool delete_extra = false;
  bool sparse = false;
  bool verify = false;
  bool dry_run = false;
  unsigned jobs = 2;
};

// Told of what happens, from several threads at once. Paths are below the target.
class RestoreObserver {
 public:
  enum class Action { restored, unchanged, deleted };

  virtual ~RestoreObserver() = default;
  virtual void on_entry(const std::string& /*path*/, const Node&, Action) {}
  virtual void on_bytes(std::uint64_t /*bytes*/) {}
  virtual void on_failed(const std::string& /*path*/, const Error&) {}
  virtual void on_not_deleted(const std::string& /*path*/, const Error&) {}
  // One of those never to be touched, which the snapshot does not have.
  virtual void on_left_alone(const std::string& /*path*/) {}
};

struct RestoreStats {
  std::uint64_t files = 0, directories = 0, others = 0;  // restored
  std::uint64_t unchanged = 0, deleted = 0, verified = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0, not_deleted = 0;
  bool corrupt = false;  // one of the failures was damage in the repository
};

// An error only if nothing can go on: an unusable target, a stop. What fails for one path is told to the
// observer and counted.
Result<RestoreStats> restore(BlockStore& store, const RestoreRequest& request, RestoreObserver& observer,
                             std::stop_token stop);

}  // namespace kin

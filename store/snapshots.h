// Which snapshot a person means.
#pragma once

#include "store/repository.h"

#include <string>
#include <vector>

namespace kin::store {

struct SnapshotFilter {
  std::vector<std::string> hosts;  // one of them; empty: any
  std::vector<std::string>
      tags;  // one of the entries, each a comma-separated list of which all must be there; empty: any
  std::vector<std::string> paths;  // all of them; empty: any

  bool admits(const Snapshot& snapshot) const;
};

// In the order of their times. A damaged snapshot is told to `on_damage` and left out; without one it is an
// error.
Result<std::vector<StoredSnapshot>> load_snapshots(Repository& repository, const SnapshotFilter& filter,
                                                   const std::function<void(const Error&)>& on_damage = {});

// `text` is "latest" (of those that the filter admits) or the start of an id. not_found if there is none,
// invalid_argument if there are several.
// Any that is damaged is an error for "latest": it may be the newest.
Result<StoredSnapshot> find_snapshot(Repository& repository, const std::string& text,
                                     const SnapshotFilter& filter);

// "3f9a:some/path" or "latest" in two: the snapshot's part, and the path's (empty if there is none).
std::pair<std::string, std::string> split_snapshot_path(const std::string& text);

// Tags that the user wrote as "a,b" and in several options, sorted, each once.
std::vector<std::string> split_tags(const std::vector<std::string>& entries);

}  // namespace kin::store

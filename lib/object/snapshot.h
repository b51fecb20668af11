// Snapshot: a root tree at a moment, with who made it, where and from what. Immutable; its id is the name it
// is stored under.
#pragma once

#include "lib/base/text.h"
#include "lib/object/object_id.h"

#include <optional>
#include <string>
#include <vector>

namespace kin {

using SnapshotId = ObjectId;

struct SnapshotSummary {
  std::uint64_t files_new = 0, files_changed = 0, files_unmodified = 0;
  std::uint64_t directories = 0, others = 0;
  std::uint64_t files = 0, bytes = 0;  // all files of the snapshot
  std::uint64_t bytes_read = 0;        // of what was not unmodified
  std::uint64_t objects_added = 0;     // not stored before
  std::uint64_t bytes_added = 0;       // their size
  std::uint64_t bytes_stored = 0;      // what they take in the repository
  std::uint64_t skipped = 0;           // files that could not be read whole
};

struct Snapshot {
  Timestamp time;
  std::string host, user;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::string> paths;  // as the user means them: absolute, or given by --as-path
  std::vector<std::string> tags;   // sorted, each once
  std::optional<SnapshotId> parent;
  std::optional<SnapshotId> original;  // of which this is a changed copy (tags)
  std::string program_version;
  ObjectId tree;
  SnapshotSummary summary;
  double seconds = 0;  // that the backup took
};

Bytes encode_snapshot(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(ByteView bytes);

}  // namespace kin

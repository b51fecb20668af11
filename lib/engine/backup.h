// Backup: walk ─► read, segment, sketch ×N ─► look for kin ×1 ─► try deltas ×N ─► decide ×1 ─► encode and
// verify ×N ─► append ×1.
//
// The stages with N threads keep the order of their input (OrderedStage), and whatever decides where an
// object goes runs in one thread: so -j1 and -j8 write the same packs. Memory is bounded by the stages'
// limits, whatever the size of files and directories.
#pragma once

#include "lib/container/container_format.h"
#include "lib/engine/block_store.h"
#include "lib/engine/container_counts.h"
#include "lib/engine/entry_source.h"
#include "lib/engine/file_sample.h"
#include "lib/engine/object_meter.h"
#include "lib/engine/resume_log.h"
#include "lib/engine/walker.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace kin {

// Told of what happens, from several threads at once.
class BackupObserver {
 public:
  enum class Change { added, changed, unmodified };

  virtual ~BackupObserver() = default;
  virtual void on_entry(const WalkEntry&, Change) {}  // a file, link or device is done
  virtual void on_read(const std::string& /*path*/, std::uint64_t /*bytes*/) {}  // while a file is read
  virtual void on_skipped(const std::string& /*path*/, const Error&) {}
  virtual void on_warning(const std::string& /*message*/) {}
};

struct BackupStream {
  int fd = -1;
  std::string name;  // the file's, in the snapshot
  // Asked after the end of the stream; an error means that nothing is to be kept.
  std::function<Result<void>()> finish;
};

// Entries in any order instead of a walk. They are all new: there is nothing to compare their state with.
struct BackupEntries {
  EntrySource* source;  // must outlive the backup. Its first error ends that, without a snapshot
  std::string below;    // where they go: safe names with '/' between them; empty: the root
};

struct BackupRequest {
  WalkOptions walk;
  Formats formats;                       // containers that are opened; none unless told
  std::optional<BackupStream> stream;    // instead of files
  std::optional<BackupEntries> entries;  // the same
  std::optional<SnapshotId> parent;
  std::optional<ObjectId> parent_tree;
  bool read_all = false;  // --force
  unsigned jobs = 2;
  Effort effort;
  ObjectMeter* meter = nullptr;  // must outlive the backup. Measuring takes time of its own
  const FileSample* sample =
      nullptr;  // only the files, and parts of files, that are in it; must outlive the backup
  bool skip_if_unchanged = false;
  Snapshot snapshot;  // host, user, paths, tags, time, version: what the caller knows
};

struct BackupResult {
  std::optional<SnapshotId> snapshot;  // none if skipped as unchanged
  SnapshotSummary summary;
  ContainerCounts containers;  // of files that were read
  ObjectId tree;
};

// cancelled if asked to stop: what was stored so far is kept, and found again by the next backup.
Result<BackupResult> backup(BlockStore& store, ResumeLog& log, const BackupRequest& request,
                            BackupObserver& observer, std::stop_token stop);

// What distinguishes the resume log's entries of this backup from those of others, of other paths.
std::string resume_prefix(const Snapshot& snapshot);

}  // namespace kin

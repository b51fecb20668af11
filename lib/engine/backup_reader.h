// BackupReader: the entries of a backup, and what files have in them as objects, on the way to who stores
// them. One instance per thread.
#pragma once

#include "lib/base/ordered_stage.h"
#include "lib/engine/backup.h"
#include "lib/engine/file_reader.h"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace kin {

// What readers hand on: an entry, complete, or a part of a file that is not yet.
struct ReadItem {
  enum class Outcome { part, done, failed };
  Outcome outcome = Outcome::done;
  WalkEntry entry;  // not with parts
  FilePart part;
  std::optional<std::string> link_to;  // of entries that do not come from disk
  ContainerCounts containers;
  bool reused = false;   // content known from the parent or the resume log
  bool skipped = false;  // the observer was told
  std::optional<Error> fatal;
};

using WalkBatch = std::vector<WalkEntry>;
using Reading = OrderedStage<WalkBatch, std::vector<ReadItem>>;

class BackupReader {
 public:
  // All of them must outlive it.
  BackupReader(BlockStore& store, ResumeLog& log, const BackupRequest& request, BackupObserver& observer,
               const std::stop_token& stop);

  // The batch's entries; those of the request instead, if it has any.
  void read(WalkBatch batch, const Reading::Emit& emit);

 private:
  class Items;

  ReadItem read_entry(WalkEntry entry, Items& items);
  void read_source(Items& items);
  void read_batch(WalkBatch batch, Items& items);
  bool reuse_content(WalkEntry& entry);
  std::span<const FileSample::Drawn> drawn_of(const WalkEntry& entry) const;
  bool all_stored(const std::vector<Extent>& extents);

  BlockStore& store_;
  ResumeLog& log_;
  const BackupRequest& request_;
  BackupObserver& observer_;
  const std::stop_token stop_;
  const std::string record_prefix_;
  FileReader files_;
};

}  // namespace kin

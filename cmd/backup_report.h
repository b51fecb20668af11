// What backup, import and estimate have in common: how a snapshot is described, and what is told while and
// after it is made.
#pragma once

#include "cmd/progress.h"
#include "lib/base/worker_pool.h"
#include "lib/engine/backup.h"
#include "lib/engine/backup_totals.h"

#include <atomic>
#include <string>
#include <vector>

namespace kin::cmd {

class BackupLines : public BackupObserver {
 public:
  explicit BackupLines(Context& context) : context_(context), progress_(context) {}

  void on_entry(const WalkEntry& entry, Change change) override {
    if (entry.kind == WalkEntry::Kind::file) progress_.add_files(1);
    if (change == Change::unmodified) progress_.add_bytes(entry.node.size);
    const char* const word = change == Change::added     ? "new"
                             : change == Change::changed ? "changed"
                                                         : "unmodified";
    if (context_.options.verbose > (change == Change::unmodified ? 1 : 0)) {
      context_.print(fmt::format("{:<10} {}", word, printable(entry.path)));
      Json fields{{"action", word}, {"size", entry.node.size}};
      set_path(fields, "item", entry.path);
      context_.json("verbose_status", fields);
    }
    progress_.tick(entry.path);
  }
  void on_read(const std::string& path, std::uint64_t bytes) override {
    progress_.add_bytes(bytes);
    progress_.tick(path);
  }
  void on_skipped(const std::string&, const Error& error) override { context_.warn(error.message()); }
  void on_warning(const std::string& message) override { context_.warn(message); }

  Progress& progress() { return progress_; }

 private:
  Context& context_;
  Progress progress_;
};

// Counts what will be read while it is read, for a progress bar.
class CountAhead {
 public:
  // `passes`: how often it will be. The progress must outlive this.
  CountAhead(Context& context, const WalkOptions& walk, Progress& progress, unsigned passes = 1);
  ~CountAhead();

  // One of them will not be made after all.
  void drop_pass();

 private:
  void tell();

  Progress& progress_;
  std::atomic<unsigned> passes_;
  const WalkOptions walk_;
  BackupTotals totals_;
  std::stop_source stop_;
  WorkerPool counter_;
};

// Time ("" is now), host ("" is this machine), tags, and who runs this program; without paths.
Result<Snapshot> new_snapshot(const std::string& time, const std::string& host,
                              const std::vector<std::string>& tags);

// Sets the parent, the newest snapshot of the same paths on the same host, if there is one.
Result<void> compare_with_parent(Context& context, store::Repository& repository, BackupRequest& request);

// What a backup would do. Nothing is written.
Result<BackupResult> dry_run(store::Repository& repository, const BackupRequest& request,
                             BackupObserver& observer, const std::stop_token& stop);

// As --effort has them: fast, normal, max.
Effort effort_named(const std::string& name);

// "opened 5 containers (3 gzip, 2 zip); 1 stayed closed (gzip, the deflate stream cannot be opened: 1)"
std::string containers_text(const ContainerCounts& containers);
Json containers_json(const ContainerCounts& containers);

// "3 files or directories could not be read, or not whole"
std::string skipped_text(std::uint64_t skipped);

void print_backup(Context& context, const BackupResult& result, bool dry_run, double seconds);

// True if this backup met damage. What earlier ones met and stored again is worth a line, but no alarm every
// night.
bool tell_of_damage(Context& context, const store::Repository& repository, std::size_t lost_before,
                    bool is_dry_run);

}  // namespace kin::cmd

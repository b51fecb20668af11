// What backup and import have in common: how a snapshot is described, and what is told while and after it is
// made.
#pragma once

#include "cmd/progress.h"
#include "lib/engine/backup.h"

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

// Time ("" is now), host ("" is this machine), tags, and who runs this program; without paths.
Result<Snapshot> new_snapshot(const std::string& time, const std::string& host,
                              const std::vector<std::string>& tags);

// As --effort has them: fast, normal, max.
Effort effort_named(const std::string& name);

void print_backup(Context& context, const BackupResult& result, bool dry_run, double seconds);

// True if this backup met damage. What earlier ones met and stored again is worth a line, but no alarm every
// night.
bool tell_of_damage(Context& context, const store::Repository& repository, std::size_t lost_before,
                    bool is_dry_run);

}  // namespace kin::cmd

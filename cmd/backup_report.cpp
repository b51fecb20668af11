#include "cmd/backup_report.h"

#include "cmd/lost_packs.h"
#include "cmd/version.h"
#include "lib/base/text.h"
#include "lib/engine/dry_run_store.h"
#include "store/snapshots.h"

#include <array>
#include <pwd.h>
#include <unistd.h>

namespace kin::cmd {

Result<Snapshot> new_snapshot(const std::string& time, const std::string& host,
                              const std::vector<std::string>& tags) {
  Snapshot snapshot;
  snapshot.time = now();
  if (!time.empty()) {
    KIN_TRY_ASSIGN(snapshot.time, parse_time(time));
  }
  std::array<char, 256> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  snapshot.host = host.empty() ? machine.data() : host;
  snapshot.uid = ::geteuid();
  snapshot.gid = ::getegid();
  if (const passwd* user = ::getpwuid(snapshot.uid)) snapshot.user = user->pw_name;
  snapshot.tags = store::split_tags(tags);
  snapshot.program_version = std::string("kin ") + kVersion;
  return snapshot;
}

CountAhead::CountAhead(Context& context, const WalkOptions& walk, Progress& progress, unsigned passes)
    : progress_(progress), passes_(passes), walk_(walk), counter_(1, 1) {
  if (!context.shows_progress() && !context.options.json) return;
  counter_.submit(
      [this]() -> Result<void> {
        count_totals(walk_, totals_, stop_.get_token());
        tell();
        return {};
      },
      1);
}

void CountAhead::tell() {
  if (totals_.complete) progress_.set_total(passes_ * totals_.files, passes_ * totals_.bytes);
}

void CountAhead::drop_pass() {
  --passes_;
  tell();
}

CountAhead::~CountAhead() {
  stop_.request_stop();
  const auto counted = counter_.wait();  // which cannot fail
}

Result<void> compare_with_parent(Context& context, store::Repository& repository, BackupRequest& request) {
  KIN_TRY_ASSIGN(const std::vector<store::StoredSnapshot> all,
                 store::load_snapshots(repository, {}, [](const Error&) {}));
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    if (at->snapshot.host != request.snapshot.host || at->snapshot.paths != request.snapshot.paths) continue;
    request.parent = at->id;
    request.parent_tree = at->snapshot.tree;
    context.print(
        fmt::format("comparing with snapshot {} of {}", at->id.short_hex(), local_time(at->snapshot.time)));
    break;
  }
  return {};
}

Result<BackupResult> dry_run(store::Repository& repository, const BackupRequest& request,
                             BackupObserver& observer, const std::stop_token& stop) {
  const auto seen = store::FeatureIndex::open_temporary("");  // in memory: a dry run writes nothing
  DryRunStore store(repository, *seen);
  DryRunLog log(repository.index());
  auto result = backup(store, log, request, observer, stop);
  // A backup says that it keeps what it has stored.
  if (!result && result.error().code() == ErrorCode::cancelled)
    return Error(ErrorCode::cancelled, "interrupted; nothing was written");
  return result;
}

Effort effort_named(const std::string& name) {
  return name == "fast" ? Effort::fast() : name == "max" ? Effort::max() : Effort::normal();
}

std::string containers_text(const ContainerCounts& containers) {
  std::uint64_t opened = 0, closed = 0;
  std::string types, reasons;
  for (const auto& [type, count] : containers.opened) {
    opened += count;
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", grouped(count), type);
  }
  for (const auto& [key, count] : containers.closed) {
    closed += count;
    reasons += fmt::format("{}{}, {}: {}", reasons.empty() ? "" : "; ", key.first, printable(key.second),
                           grouped(count));
  }
  std::string out = fmt::format("opened {} container{}", grouped(opened), opened == 1 ? "" : "s");
  if (opened > 0) out += " (" + types + ")";
  if (closed > 0) out += fmt::format("; {} stayed closed ({})", grouped(closed), reasons);
  return out;
}

Json containers_json(const ContainerCounts& containers) {
  Json closed = Json::array();
  for (const auto& [key, count] : containers.closed)
    closed.push_back({{"type", key.first}, {"reason", key.second}, {"count", count}});
  return {{"opened", containers.opened}, {"closed", std::move(closed)}};
}

std::string skipped_text(std::uint64_t skipped) {
  return fmt::format("{} {} could not be read, or not whole", grouped(skipped),
                     skipped == 1 ? "file or directory" : "files or directories");
}

void print_backup(Context& context, const BackupResult& result, bool dry_run, double seconds) {
  const SnapshotSummary& s = result.summary;
  const double ratio =
      s.bytes_stored > 0 ? static_cast<double>(s.bytes_added) / static_cast<double>(s.bytes_stored) : 1;
  context.print(fmt::format("files: {} new, {} changed, {} unmodified; {} directories", grouped(s.files_new),
                            grouped(s.files_changed), grouped(s.files_unmodified), grouped(s.directories)));
  context.print(fmt::format("read {} of {}; {} {} as {} ({:.2f}:1)", human_bytes(s.bytes_read),
                            human_bytes(s.bytes), dry_run ? "would store" : "stored",
                            human_bytes(s.bytes_added), human_bytes(s.bytes_stored), ratio));
  if (!result.containers.empty()) context.print(containers_text(result.containers));
  const std::string time =
      fmt::format("{}, {} in {}", counted(s.files, "file"), human_bytes(s.bytes), human_duration(seconds));
  if (dry_run) {
    context.print(time + "; dry run: nothing was written");
  } else if (result.snapshot) {
    context.print(fmt::format("{}; snapshot {} saved", time, result.snapshot->short_hex()));
  } else {
    context.print(time + "; nothing has changed, no snapshot saved");
  }
  if (s.skipped > 0) context.warn(skipped_text(s.skipped));
  Json fields{{"files_new", s.files_new},
              {"files_changed", s.files_changed},
              {"files_unmodified", s.files_unmodified},
              {"dirs", s.directories},
              {"data_objects", s.objects_added},
              {"data_added", s.bytes_added},
              {"data_added_packed", s.bytes_stored},
              {"bytes_read", s.bytes_read},
              {"total_files_processed", s.files},
              {"total_bytes_processed", s.bytes},
              {"total_duration", seconds},
              {"skipped", s.skipped},
              {"containers", containers_json(result.containers)},
              {"dry_run", dry_run}};
  if (result.snapshot && !dry_run) fields["snapshot_id"] = result.snapshot->hex();
  context.json("summary", fields);
}

bool tell_of_damage(Context& context, const store::Repository& repository, std::size_t lost_before,
                    bool is_dry_run) {
  const std::size_t lost = repository.lost_packs().size();
  if (lost == 0) return false;
  const bool one = lost == 1;
  const bool met = repository.times_stored_again() > 0 || lost != lost_before;
  const std::string what = lost_packs_text(repository);
  if (!met) {
    context.warn(
        fmt::format("{}; no file of this backup needs {} (kin check --read-data names those of older "
                    "snapshots that do)",
                    what, one ? "it" : "them"));
    return false;
  }
  context.warn(fmt::format(
      "{}: older snapshots may have lost files (kin check --read-data names them). What this backup met of "
      "{} "
      "{} stored again{}",
      what, one ? "it" : "them", is_dry_run ? "would be" : "was",
      lost == lost_before || is_dry_run ? "" : "; back up once more for what it had passed before"));
  return true;
}

}  // namespace kin::cmd

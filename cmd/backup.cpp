#include "lib/engine/backup.h"

#include "cmd/backup_sources.h"
#include "cmd/child_process.h"
#include "cmd/progress.h"
#include "cmd/snapshot_options.h"
#include "cmd/version.h"
#include "formats/formats.h"
#include "lib/base/worker_pool.h"
#include "lib/engine/backup_totals.h"
#include "lib/engine/dry_run_store.h"

#include <array>
#include <pwd.h>
#include <set>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct BackupOptions {
  std::vector<std::string> paths, files_from, tags;
  std::vector<std::string> exclude, iexclude, exclude_file, iexclude_file, exclude_if_present;
  std::string exclude_larger_than, as_path, host, time, stdin_name = "stdin", effort = "normal";
  bool exclude_caches = false, one_file_system = false, dry_run = false, from_stdin = false,
       from_command = false;
  bool skip_if_unchanged = false, force = false, no_unpack = false;
  std::vector<std::string> unpack_only;
};

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

Result<WalkOptions> walk_options(const BackupOptions& options, Context& context) {
  WalkOptions walk;
  std::vector<std::string> paths = options.paths;
  for (const std::string& file : options.files_from) {
    KIN_TRY_ASSIGN(const std::vector<std::string> more, read_paths(file, context.stop()));
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) return Error(ErrorCode::invalid_argument, "nothing to back up: give a path, or --stdin");
  KIN_TRY_ASSIGN(walk.sources, backup_sources(paths, options.as_path));
  KIN_TRY(leave_out_own(walk.sources, context));
  for (const std::string& pattern : options.exclude) walk.excludes.add(pattern);
  for (const std::string& pattern : options.iexclude) walk.excludes.add(pattern, true);
  for (const std::string& file : options.exclude_file) KIN_TRY(walk.excludes.add_file(file));
  for (const std::string& file : options.iexclude_file) KIN_TRY(walk.excludes.add_file(file, true));
  walk.exclude_caches = options.exclude_caches;
  walk.exclude_if_present = options.exclude_if_present;
  if (!options.exclude_larger_than.empty()) {
    KIN_TRY_ASSIGN(walk.exclude_larger_than, parse_size(options.exclude_larger_than));
  }
  walk.one_file_system = options.one_file_system;
  return walk;
}

Result<Snapshot> describe(const BackupOptions& options, const WalkOptions& walk) {
  Snapshot snapshot;
  snapshot.time = now();
  if (!options.time.empty()) {
    KIN_TRY_ASSIGN(snapshot.time, parse_time(options.time));
  }
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  snapshot.host = options.host.empty() ? host.data() : options.host;
  snapshot.uid = ::geteuid();
  snapshot.gid = ::getegid();
  if (const passwd* user = ::getpwuid(snapshot.uid)) snapshot.user = user->pw_name;
  // Also those that are not there today: with other paths it would not be found as the parent tomorrow.
  for (const BackupSource& source : walk.sources)
    snapshot.paths.push_back(absolute_path(options.as_path.empty() ? source.path : "/" + options.as_path));
  if (walk.sources.empty()) snapshot.paths.push_back("/" + options.stdin_name);
  std::sort(snapshot.paths.begin(), snapshot.paths.end());
  snapshot.tags = store::split_tags(options.tags);
  snapshot.program_version = std::string("kin ") + kVersion;
  return snapshot;
}

// The newest snapshot of the same paths on the same host.
Result<std::optional<store::StoredSnapshot>> find_parent(store::Repository& repository,
                                                         const Snapshot& snapshot) {
  KIN_TRY_ASSIGN(std::vector<store::StoredSnapshot> all,
                 store::load_snapshots(repository, {}, [](const Error&) {}));
  for (auto at = all.rbegin(); at != all.rend(); ++at)
    if (at->snapshot.host == snapshot.host && at->snapshot.paths == snapshot.paths)
      return std::optional(std::move(*at));
  return std::optional<store::StoredSnapshot>();
}

void print_summary(Context& context, const BackupResult& result, const BackupOptions& options,
                   double seconds) {
  const SnapshotSummary& s = result.summary;
  const double ratio =
      s.bytes_stored > 0 ? static_cast<double>(s.bytes_added) / static_cast<double>(s.bytes_stored) : 1;
  context.print(fmt::format("files: {} new, {} changed, {} unmodified; {} directories", grouped(s.files_new),
                            grouped(s.files_changed), grouped(s.files_unmodified), grouped(s.directories)));
  context.print(fmt::format("read {} of {}; {} {} as {} ({:.2f}:1)", human_bytes(s.bytes_read),
                            human_bytes(s.bytes), options.dry_run ? "would store" : "stored",
                            human_bytes(s.bytes_added), human_bytes(s.bytes_stored), ratio));
  const std::string time =
      fmt::format("{} files, {} in {}", grouped(s.files), human_bytes(s.bytes), human_duration(seconds));
  if (options.dry_run) {
    context.print(time + "; dry run: nothing was written");
  } else if (result.snapshot) {
    context.print(fmt::format("{}; snapshot {} saved", time, result.snapshot->short_hex()));
  } else {
    context.print(time + "; nothing has changed, no snapshot saved");
  }
  if (s.skipped > 0)
    context.warn(
        fmt::format("{} file{} could not be read whole", grouped(s.skipped), s.skipped == 1 ? "" : "s"));
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
              {"dry_run", options.dry_run}};
  if (result.snapshot && !options.dry_run) fields["snapshot_id"] = result.snapshot->hex();
  context.json("summary", fields);
}

// The formats of containers that are to be opened.
Result<std::vector<ContainerFormat>> chosen_formats(const BackupOptions& options) {
  const auto all = formats::all().containers;
  if (options.no_unpack) return std::vector<ContainerFormat>();
  if (options.unpack_only.empty()) return std::vector<ContainerFormat>(all.begin(), all.end());
  std::vector<ContainerFormat> chosen;
  std::set<std::string> wanted(options.unpack_only.begin(), options.unpack_only.end());
  for (const ContainerFormat& format : all)
    if (wanted.erase(format.name) > 0) chosen.push_back(format);
  if (wanted.empty()) return chosen;
  std::string known;
  for (const ContainerFormat& format : all)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  return Error(ErrorCode::invalid_argument, fmt::format("--unpack-only: kin does not know '{}'; it knows {}",
                                                        printable(*wanted.begin()), known));
}

// kin backup as the first command ever typed: it makes the default repository. True if it did.
Result<bool> make_default_repository(Context& context) {
  if (!context.options.repository.empty()) return false;
  const std::string location = default_repository();
  if (::access((location + "/config").c_str(), F_OK) == 0) return false;
  std::optional<std::string> password;
  if (has_password(context)) {
    KIN_TRY_ASSIGN(password, read_password(context, "", false));
  }
  KIN_TRY(create_repository(location, password));
  context.print(fmt::format(
      "made a repository at {}, {}", printable(location),
      password ? "encrypted with your password" : "not encrypted (kin init makes encrypted ones)"));
  return true;
}

Result<BackupResult> dry_run(store::Repository& repository, const BackupRequest& request,
                             BackupObserver& report, const std::stop_token& stop) {
  const auto seen = store::FeatureIndex::open_temporary("");  // in memory: a dry run writes nothing
  DryRunStore store(repository, *seen);
  DryRunLog log(repository.index());
  return backup(store, log, request, report, stop);
}

// True if this backup met damage. What earlier ones met and stored again is worth a line, but no alarm every
// night.
bool tell_of_damage(Context& context, const store::Repository& repository, std::size_t lost_before,
                    bool is_dry_run) {
  const std::size_t lost = repository.lost_packs().size();
  if (lost == 0) return false;
  const bool one = lost == 1;
  const bool met = repository.times_stored_again() > 0 || lost != lost_before;
  const std::string what = fmt::format("{} pack{} of the repository {} missing or damaged", lost,
                                       one ? "" : "s", one ? "is" : "are");
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

Result<ExitCode> run_backup(Context& context, const BackupOptions& options) {
  if (options.from_command && options.paths.empty())
    return Error(ErrorCode::invalid_argument, "--stdin-from-command needs a command: -- CMD ARG...");
  if (options.from_stdin && !options.paths.empty())
    return Error(ErrorCode::invalid_argument, "--stdin takes no paths");
  const bool streamed = options.from_stdin || options.from_command;
  if (streamed && (!options.files_from.empty() || !options.as_path.empty()))
    return Error(ErrorCode::invalid_argument,
                 "--files-from and --as-path go with paths, not with --stdin or --stdin-from-command");
  if (!is_safe_name(options.stdin_name))
    return Error(ErrorCode::invalid_argument, "--stdin-filename must be a plain file name");
  BackupRequest request;
  KIN_TRY_ASSIGN(const std::vector<ContainerFormat> unpacked, chosen_formats(options));
  request.formats = {unpacked, formats::all().codings};
  if (!streamed) {
    KIN_TRY_ASSIGN(request.walk, walk_options(options, context));
  }
  KIN_TRY_ASSIGN(request.snapshot, describe(options, request.walk));
  bool first = false;
  if (!options.dry_run) {
    KIN_TRY_ASSIGN(first, make_default_repository(context));
  }
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  repository->features();                                            // makes its directory
  request.walk.never_enter = own_directories(context, *repository);  // now that they are there

  std::optional<ChildProcess> child;
  if (options.from_command) {
    KIN_TRY_ASSIGN(ChildProcess started, ChildProcess::start(options.paths));
    child.emplace(std::move(started));
    request.stream =
        BackupStream{child->fd(), options.stdin_name, [&] { return child->wait(context.stop()); }};
  } else if (options.from_stdin) {
    request.stream = BackupStream{STDIN_FILENO, options.stdin_name, nullptr};
  }
  KIN_TRY_ASSIGN(const std::optional<store::StoredSnapshot> parent,
                 find_parent(*repository, request.snapshot));
  if (parent) {
    request.parent = parent->id;
    request.parent_tree = parent->snapshot.tree;
    context.print(fmt::format("comparing with snapshot {} of {}", parent->id.short_hex(),
                              local_time(parent->snapshot.time)));
  }
  request.read_all = options.force;
  request.skip_if_unchanged = options.skip_if_unchanged;
  request.jobs = context.jobs();
  request.effort = options.effort == "fast"  ? Effort::fast()
                   : options.effort == "max" ? Effort::max()
                                             : Effort::normal();
  if (!options.dry_run) {
    KIN_TRY_ASSIGN(const std::size_t adopted, repository->begin_writing(context.stop()));
    if (adopted > 0)
      context.print(fmt::format("found {} pack{} of a backup that did not finish; going on from there",
                                adopted, adopted == 1 ? "" : "s"));
  } else {
    KIN_TRY(repository->find_lost_packs());
  }

  const std::size_t lost_before = repository->lost_packs().size();
  BackupLines report(context);
  BackupTotals totals;
  std::stop_source counting;
  WorkerPool counter(1, 1);
  if ((context.shows_progress() || context.options.json) && !streamed) {
    counter.submit(
        [&]() -> Result<void> {
          count_totals(request.walk, totals, counting.get_token());
          if (totals.complete) report.progress().set_total(totals.files, totals.bytes);
          return {};
        },
        1);
  }
  auto result = options.dry_run ? dry_run(*repository, request, report, context.stop())
                                : backup(*repository, repository->index(), request, report, context.stop());
  counting.request_stop();
  KIN_TRY(counter.wait());
  if (!result) return std::move(result).error();
  print_summary(context, *result, options, report.progress().seconds());
  if (first) context.print("kin restore latest --target DIR brings it back");
  const bool damaged = tell_of_damage(context, *repository, lost_before, options.dry_run);
  return result->summary.skipped > 0 || damaged ? ExitCode::incomplete : ExitCode::ok;
}

Action define_backup(CLI::App& app) {
  auto options = std::make_shared<BackupOptions>();
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help)->allow_extra_args(false);
  };
  app.add_option("PATH", options->paths, "files and directories to back up");
  list("--files-from", options->files_from, "a file with a path per line ('-': stdin)");
  list("-e,--exclude", options->exclude, "leave out what matches this pattern");
  list("--iexclude", options->iexclude, "the same, whatever the case of letters");
  list("--exclude-file", options->exclude_file, "a file with a pattern per line");
  list("--iexclude-file", options->iexclude_file, "the same, whatever the case of letters");
  app.add_flag("--exclude-caches", options->exclude_caches, "leave out directories with a CACHEDIR.TAG");
  list("--exclude-if-present", options->exclude_if_present,
       "leave out the contents of directories that hold FILE[:HEADER]");
  app.add_option("--exclude-larger-than", options->exclude_larger_than, "leave out larger files (500k, 2G)");
  app.add_flag("-x,--one-file-system", options->one_file_system, "do not cross into other file systems");
  list("--tag", options->tags, "mark the snapshot (a,b: two tags)");
  app.add_option("-H,--host", options->host, "the host name to note");
  app.add_option("--time", options->time, "the time to note (2026-11-16 08:30:00)");
  app.add_option("--as-path", options->as_path, "where the path goes in the snapshot");
  app.add_flag("-n,--dry-run", options->dry_run, "only say what would be done");
  app.add_flag("--stdin", options->from_stdin, "back up standard input as one file");
  app.add_option("--stdin-filename", options->stdin_name, "the name of that file")->capture_default_str();
  app.add_flag("--stdin-from-command", options->from_command,
               "back up the output of a command: -- CMD ARG...");
  app.add_option("--effort", options->effort,
                 "fast, normal or max: time spent on finding and encoding differences")
      ->check(CLI::IsMember({"fast", "normal", "max"}))
      ->capture_default_str();
  app.add_flag("--skip-if-unchanged", options->skip_if_unchanged, "make no snapshot if nothing has changed");
  app.add_flag("-f,--force", options->force, "read every file again, changed or not");
  CLI::Option* const no_unpack =
      app.add_flag("--no-unpack", options->no_unpack, "store archives and other containers as they are");
  app.add_option("--unpack-only", options->unpack_only, "open only containers of these types (gzip,zip,tar)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(no_unpack);
  return [options](Context& context) { return run_backup(context, *options); };
}

}  // namespace

extern const Command kBackup{"backup", "save files and directories as a new snapshot", define_backup};

}  // namespace kin::cmd

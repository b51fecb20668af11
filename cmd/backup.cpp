#include "lib/engine/backup.h"

#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/child_process.h"
#include "cmd/snapshot_options.h"
#include "formats/formats.h"
#include "lib/base/worker_pool.h"
#include "lib/engine/backup_totals.h"
#include "lib/engine/dry_run_store.h"

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
  KIN_TRY_ASSIGN(Snapshot snapshot, new_snapshot(options.time, options.host, options.tags));
  // Also those that are not there today: with other paths it would not be found as the parent tomorrow.
  for (const BackupSource& source : walk.sources)
    snapshot.paths.push_back(absolute_path(options.as_path.empty() ? source.path : "/" + options.as_path));
  if (walk.sources.empty()) snapshot.paths.push_back("/" + options.stdin_name);
  std::sort(snapshot.paths.begin(), snapshot.paths.end());
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
  request.effort = effort_named(options.effort);
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
  print_backup(context, *result, options.dry_run, report.progress().seconds());
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
  app.add_option("--unpack-only", options->unpack_only,
                 "open only containers of these types (gzip,zip,tar ...)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(no_unpack);
  return [options](Context& context) { return run_backup(context, *options); };
}

}  // namespace

extern const Command kBackup{"backup", "save files and directories as a new snapshot", define_backup};

}  // namespace kin::cmd

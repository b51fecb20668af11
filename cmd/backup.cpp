#include "lib/engine/backup.h"

#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/child_process.h"
#include "cmd/parity_report.h"
#include "cmd/snapshot_options.h"
#include "cmd/source_options.h"
#include "formats/formats.h"

#include <unistd.h>

namespace kin::cmd {
namespace {

struct BackupOptions {
  SourceOptions sources;
  std::vector<std::string> tags;
  std::string as_path, host, time, stdin_name = "stdin";
  bool dry_run = false, from_stdin = false, from_command = false, skip_if_unchanged = false, force = false;
};

Result<Snapshot> describe(const BackupOptions& options, const WalkOptions& walk) {
  KIN_TRY_ASSIGN(Snapshot snapshot, new_snapshot(options.time, options.host, options.tags));
  snapshot.paths = snapshot_paths(walk.sources, options.as_path);
  if (walk.sources.empty()) snapshot.paths.push_back("/" + options.stdin_name);
  return snapshot;
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

Result<ExitCode> run_backup(Context& context, const BackupOptions& options) {
  if (options.from_command && options.sources.paths.empty())
    return Error(ErrorCode::invalid_argument, "--stdin-from-command needs a command: -- CMD ARG...");
  if (options.from_stdin && !options.sources.paths.empty())
    return Error(ErrorCode::invalid_argument, "--stdin takes no paths");
  const bool streamed = options.from_stdin || options.from_command;
  if (streamed && (!options.sources.files_from.empty() || !options.as_path.empty()))
    return Error(ErrorCode::invalid_argument,
                 "--files-from and --as-path go with paths, not with --stdin or --stdin-from-command");
  if (!is_safe_name(options.stdin_name))
    return Error(ErrorCode::invalid_argument, "--stdin-filename must be a plain file name");
  BackupRequest request;
  KIN_TRY_ASSIGN(const std::vector<ContainerFormat> unpacked, chosen_formats(options.sources));
  request.formats = {unpacked, formats::all().codings};
  if (!streamed) {
    if (options.sources.paths.empty() && options.sources.files_from.empty())
      return Error(ErrorCode::invalid_argument, "nothing to back up: give a path, or --stdin");
    KIN_TRY_ASSIGN(request.walk, walk_options(options.sources, options.as_path, context));
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
    KIN_TRY_ASSIGN(ChildProcess started, ChildProcess::start(options.sources.paths));
    child.emplace(std::move(started));
    request.stream =
        BackupStream{child->fd(), options.stdin_name, [&] { return child->wait(context.stop()); }};
  } else if (options.from_stdin) {
    request.stream = BackupStream{STDIN_FILENO, options.stdin_name, nullptr};
  }
  KIN_TRY(compare_with_parent(context, *repository, request));
  request.read_all = options.force;
  request.skip_if_unchanged = options.skip_if_unchanged;
  request.jobs = context.jobs();
  request.effort = effort_named(options.sources.effort);
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
  std::optional<CountAhead> ahead;
  if (!streamed) ahead.emplace(context, request.walk, report.progress());
  auto result = options.dry_run ? dry_run(*repository, request, report, context.stop())
                                : backup(*repository, repository->index(), request, report, context.stop());
  ahead.reset();
  if (!result) return std::move(result).error();
  print_backup(context, *result, options.dry_run, report.progress().seconds());
  if (first) context.print("kin restore latest --target DIR brings it back");
  const bool damaged = tell_of_damage(context, *repository, lost_before, options.dry_run);
  const bool protected_now = options.dry_run || make_parity_for_new_packs(context, *repository);
  return result->summary.skipped > 0 || damaged || !protected_now ? ExitCode::incomplete : ExitCode::ok;
}

Action define_backup(CLI::App& app) {
  auto options = std::make_shared<BackupOptions>();
  add_source_options(app, options->sources, "files and directories to back up");
  app.add_option("--tag", options->tags, "mark the snapshot (a,b: two tags)")->allow_extra_args(false);
  app.add_option("-H,--host", options->host, "the host name to note");
  app.add_option("--time", options->time, "the time to note (2026-11-16 08:30:00)");
  app.add_option("--as-path", options->as_path, "where the path goes in the snapshot");
  app.add_flag("-n,--dry-run", options->dry_run, "only say what would be done");
  app.add_flag("--stdin", options->from_stdin, "back up standard input as one file");
  app.add_option("--stdin-filename", options->stdin_name, "the name of that file")->capture_default_str();
  app.add_flag("--stdin-from-command", options->from_command,
               "back up the output of a command: -- CMD ARG...");
  app.add_flag("--skip-if-unchanged", options->skip_if_unchanged, "make no snapshot if nothing has changed");
  app.add_flag("-f,--force", options->force, "read every file again, changed or not");
  return [options](Context& context) { return run_backup(context, *options); };
}

}  // namespace

extern const Command kBackup{"backup", "save files and directories as a new snapshot", define_backup};

}  // namespace kin::cmd

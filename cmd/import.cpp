#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/parity_report.h"
#include "cmd/source_options.h"
#include "formats/archive_reader.h"
#include "formats/formats.h"
#include "lib/engine/path_filter.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::cmd {
namespace {

struct ImportOptions {
  std::string archive, time, host, below, effort = "normal";
  std::vector<std::string> tags;
};

// Safe names with '/' between them.
Result<std::string> place_of(const std::string& path) {
  std::string out;
  for (const std::string& name : path_components(path)) {
    if (!is_safe_name(name))
      return Error(ErrorCode::invalid_argument,
                   fmt::format("--path {}: {} is no name", printable(path), name));
    out += (out.empty() ? "" : "/") + name;
  }
  return out;
}

Result<Snapshot> describe_import(const ImportOptions& options, const std::string& below, int fd) {
  KIN_TRY_ASSIGN(Snapshot snapshot, new_snapshot(options.time, options.host, options.tags));
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_error("cannot read", options.archive);
  if (S_ISDIR(info.st_mode))
    return Error(ErrorCode::invalid_argument,
                 printable(options.archive) + " is a directory; kin backup saves those");
  // The tree is as old as the archive, and not a new state of today.
  if (options.time.empty() && S_ISREG(info.st_mode))
    snapshot.time = {info.st_mtim.tv_sec, static_cast<std::uint32_t>(info.st_mtim.tv_nsec)};
  snapshot.paths = {!below.empty()           ? "/" + below
                    : options.archive == "-" ? "/stdin"
                                             : absolute_path(options.archive)};
  return snapshot;
}

Result<ExitCode> run_import(Context& context, const ImportOptions& options) {
  const bool from_stdin = options.archive == "-";
  const Fd fd(from_stdin ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(options.archive.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("cannot open", options.archive);
  KIN_TRY_ASSIGN(const std::string below, place_of(options.below));
  BackupRequest request;
  KIN_TRY_ASSIGN(request.snapshot, describe_import(options, below, fd.get()));
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  std::uint64_t warnings = 0;
  formats::ArchiveReader archive(
      fd.get(), from_stdin ? "stdin" : options.archive,
      [&](const std::string& message) {
        ++warnings;
        context.warn(message);
      },
      context.stop());
  request.entries = BackupEntries{&archive, below};
  const std::vector<ContainerFormat> opened = formats_by_effort(options.effort);
  request.formats = {opened, formats::all().codings};
  request.jobs = context.jobs();
  request.effort = effort_named(options.effort);
  KIN_TRY_ASSIGN(const std::size_t adopted, repository->begin_writing(context.stop()));
  if (adopted > 0)
    context.print(
        fmt::format("found {} pack{} of a backup that did not finish", adopted, adopted == 1 ? "" : "s"));

  const std::size_t lost_before = repository->lost_packs().size();
  BackupLines report(context);
  auto result = backup(*repository, repository->index(), request, report, context.stop());
  if (!result) return std::move(result).error().context("cannot import " + printable(options.archive));
  context.print("read as " + printable(archive.format()));
  if (const std::uint64_t absolute = archive.absolute_names(); absolute > 0)
    context.print(fmt::format("{} name{} with '/'; it was left out", grouped(absolute),
                              absolute == 1 ? " begins" : "s begin"));
  print_backup(context, *result, false, report.progress().seconds());
  const bool damaged = tell_of_damage(context, *repository, lost_before, false);
  const bool protected_now = make_parity_for_new_packs(context, *repository);
  return result->summary.skipped > 0 || warnings > 0 || damaged || !protected_now ? ExitCode::incomplete
                                                                                  : ExitCode::ok;
}

Action define_import(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  app.add_option("ARCHIVE", options->archive, "tar, zip, cpio, 7z, ISO ... ('-': stdin)")->required();
  app.add_option("--tag", options->tags, "mark the snapshot (a,b: two tags)")->allow_extra_args(false);
  app.add_option("-H,--host", options->host, "the host name to note");
  app.add_option("--time", options->time, "the time to note (default: the archive's)");
  app.add_option("--path,--as-path", options->below,
                 "where the entries go in the snapshot (default: its root)");
  app.add_option("--effort", options->effort,
                 "fast, normal or max: time spent on finding and encoding differences")
      ->check(CLI::IsMember({"fast", "normal", "max"}))
      ->capture_default_str();
  return [options](Context& context) { return run_import(context, *options); };
}

}  // namespace

extern const Command kImport{"import", "save what is in an archive as a new snapshot", define_import};

}  // namespace kin::cmd

#include "lib/engine/restore.h"

#include "cmd/progress.h"
#include "cmd/snapshot_options.h"
#include "formats/formats.h"

namespace kin::cmd {
namespace {

struct RestoreOptions {
  std::string snapshot, target, overwrite = "always";
  std::vector<std::string> include, iinclude, exclude, iexclude;
  store::SnapshotFilter filter;
  bool delete_extra = false, sparse = false, verify = false, dry_run = false;
};

class RestoreLines : public RestoreObserver {
 public:
  RestoreLines(Context& context, bool dry_run) : context_(context), dry_run_(dry_run), progress_(context) {}

  void on_entry(const std::string& path, const Node& node, Action action) override {
    if (node.type == NodeType::file) progress_.add_files(1);
    const char* const word = action == Action::restored    ? "restored"
                             : action == Action::unchanged ? "unchanged"
                                                           : "deleted";
    const int from_level = action == Action::unchanged ? 2 : dry_run_ ? 0 : 1;
    if (context_.options.verbose >= from_level) {
      context_.print(fmt::format("{:<10} {}", word, printable(path)));
      Json fields{{"action", word}, {"size", node.size}};
      set_path(fields, "item", path);
      context_.json("verbose_status", fields);
    }
    progress_.tick(path);
  }
  void on_bytes(std::uint64_t bytes) override { progress_.add_bytes(bytes); }
  void on_failed(const std::string& path, const Error& error) override {
    context_.warn(fmt::format("cannot restore {}: {}", printable(path), error.message()));
  }
  void on_not_deleted(const std::string&, const Error& error) override { context_.warn(error.message()); }
  void on_left_alone(const std::string& path) override {
    context_.print(fmt::format("{} is left as it is: it is the repository or kin's cache", printable(path)));
  }

  Progress& progress() { return progress_; }

 private:
  Context& context_;
  const bool dry_run_;
  Progress progress_;
};

// An empty one, of a variable that is not set, would choose everything.
Result<void> add_patterns(const std::vector<std::string>& patterns, bool ignore_case, const char* option,
                          PathFilter& filter) {
  for (const std::string& pattern : patterns) {
    if (path_components(pattern.substr(pattern.starts_with('!') ? 1 : 0)).empty())
      return Error(ErrorCode::invalid_argument,
                   fmt::format("{} '{}' names nothing: a pattern needs a name in it", option, pattern));
    filter.add(pattern, ignore_case);
  }
  return {};
}

Result<RestoreRequest> make_request(const RestoreOptions& options, const TreePlace& place) {
  RestoreRequest request;
  request.formats = formats::all();
  request.target = options.target;
  request.tree_path = place.path;
  request.tree = place.node.subtree;
  KIN_TRY(add_patterns(options.include, false, "--include", request.includes));
  KIN_TRY(add_patterns(options.iinclude, true, "--iinclude", request.includes));
  KIN_TRY(add_patterns(options.exclude, false, "--exclude", request.excludes));
  KIN_TRY(add_patterns(options.iexclude, true, "--iexclude", request.excludes));
  if (!request.includes.empty() && !request.excludes.empty())
    return Error(ErrorCode::invalid_argument, "--include and --exclude do not go together");
  static const std::map<std::string, Overwrite> kModes = {{"always", Overwrite::always},
                                                          {"if-changed", Overwrite::if_changed},
                                                          {"if-newer", Overwrite::if_newer},
                                                          {"never", Overwrite::never}};
  request.overwrite = kModes.at(options.overwrite);
  request.delete_extra = options.delete_extra;
  request.sparse = options.sparse;
  request.verify = options.verify;
  request.dry_run = options.dry_run;
  return request;
}

Result<ExitCode> run_restore(Context& context, const RestoreOptions& options) {
  if (options.target.empty())
    return Error(ErrorCode::invalid_argument, "--target is empty; it has to name a directory");
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(TreePlace place, find_place(*repository, options.snapshot, options.filter));
  std::optional<std::string> only;
  if (place.node.type != NodeType::directory) {
    // A single file: its directory, and of that only this name.
    only = place.node.name;
    KIN_TRY_ASSIGN(
        place, find_place(*repository,
                          place.snapshot.id.hex() + ":" + place.path.substr(0, place.path.rfind('/')), {}));
  }
  KIN_TRY_ASSIGN(RestoreRequest request, make_request(options, place));
  request.only_name = only;
  request.jobs = context.jobs();
  request.never_touch = own_directories(context, *repository);
  RestoreLines report(context, options.dry_run);
  const SnapshotSummary& summary = place.snapshot.snapshot.summary;
  if (place.path.empty() && !only && request.includes.empty())
    report.progress().set_total(summary.files, summary.bytes);
  context.print(fmt::format("restoring snapshot {} of {} to {}", place.snapshot.id.short_hex(),
                            local_time(place.snapshot.snapshot.time), printable(options.target)));
  KIN_TRY_ASSIGN(const RestoreStats stats, restore(*repository, request, report, context.stop()));

  std::string line = fmt::format("{} {} files, {} directories, {} others: {} in {}",
                                 options.dry_run ? "would restore" : "restored", grouped(stats.files),
                                 grouped(stats.directories), grouped(stats.others), human_bytes(stats.bytes),
                                 human_duration(report.progress().seconds()));
  if (stats.unchanged > 0) line += fmt::format("; kept {} as they were", grouped(stats.unchanged));
  if (stats.deleted > 0)
    line += fmt::format("; {} {}", options.dry_run ? "would delete" : "deleted", grouped(stats.deleted));
  if (stats.verified > 0) line += fmt::format("; verified {} files", grouped(stats.verified));
  context.print(line);
  if (stats.failed > 0) context.warn(fmt::format("{} could not be restored", grouped(stats.failed)));
  if (stats.not_deleted > 0) context.warn(fmt::format("{} could not be deleted", grouped(stats.not_deleted)));
  context.json("summary", {{"files_restored", stats.files},
                           {"dirs_restored", stats.directories},
                           {"others_restored", stats.others},
                           {"bytes_restored", stats.bytes},
                           {"files_skipped", stats.unchanged},
                           {"files_deleted", stats.deleted},
                           {"files_verified", stats.verified},
                           {"failed", stats.failed},
                           {"not_deleted", stats.not_deleted},
                           {"seconds_elapsed", report.progress().seconds()}});
  if (stats.corrupt) return ExitCode::corrupt;
  return stats.failed + stats.not_deleted > 0 ? ExitCode::incomplete : ExitCode::ok;
}

Action define_restore(CLI::App& app) {
  auto options = std::make_shared<RestoreOptions>();
  app.add_option("SNAPSHOT", options->snapshot,
                 "an id, its first digits, or 'latest'; with :PATH only what is there")
      ->required();
  app.add_option("-t,--target", options->target, "the directory to restore into")->required();
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help)->allow_extra_args(false);
  };
  list("-i,--include", options->include, "only what matches this pattern");
  list("--iinclude", options->iinclude, "the same, whatever the case of letters");
  list("-e,--exclude", options->exclude, "leave out what matches this pattern");
  list("--iexclude", options->iexclude, "the same, whatever the case of letters");
  app.add_option("--overwrite", options->overwrite,
                 "when to replace what is there: always, if-changed, if-newer, never")
      ->check(CLI::IsMember({"always", "if-changed", "if-newer", "never"}))
      ->capture_default_str();
  app.add_flag("--delete", options->delete_extra,
               "delete what is in the target's directories but not in the snapshot");
  app.add_flag("--sparse", options->sparse, "make holes of all runs of zeros");
  app.add_flag("--verify", options->verify, "read every restored file again and compare");
  app.add_flag("-n,--dry-run", options->dry_run, "only say what would be done");
  add_filter_options(app, options->filter);
  return [options](Context& context) { return run_restore(context, *options); };
}

}  // namespace

extern const Command kRestore{"restore", "write a snapshot back to disk", define_restore};

}  // namespace kin::cmd

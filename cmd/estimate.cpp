// kin estimate: what kin would store of files, and what simpler ways would, without a repository.
#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/estimate_result.h"
#include "cmd/object_origins.h"
#include "cmd/output_file.h"
#include "cmd/scratch_repository.h"
#include "cmd/source_options.h"
#include "formats/formats.h"

#include <sys/stat.h>

namespace kin::cmd {
namespace {

constexpr std::size_t kMostParts = 60;

struct EstimateOptions {
  SourceOptions sources;
  std::string scratch, against, html;
  bool csv = false;
};

// What one backup, into a repository that is removed again, tells.
struct Pass {
  BackupResult result;
  Savings savings;
  std::uint64_t stored_bytes = 0;
  std::vector<EstimateResult::Pair> pairs;
  std::vector<ContentCosts::Named> parts;
};

// The second pass reads the same files: what is wrong with them was told by the first.
class EstimateLines : public BackupLines {
 public:
  using BackupLines::BackupLines;

  void on_entry(const WalkEntry& entry, Change change) override {
    if (meter != nullptr && entry.kind == WalkEntry::Kind::file)
      meter->on_file(entry.node.size, entry.node.content);
    BackupLines::on_entry(entry, change);
  }
  void on_skipped(const std::string& path, const Error& error) override {
    if (!is_again) BackupLines::on_skipped(path, error);
  }

  SavingsMeter* meter = nullptr;  // of the pass; none when nothing is measured
  bool is_again = false;
};

class Estimate {
 public:
  Estimate(Context& context, const EstimateOptions& options)
      : context_(context), options_(options), lines_(context) {}

  Result<ExitCode> run();

 private:
  Result<ExitCode> run_against(std::span<const ContainerFormat> formats);
  Result<EstimateResult> measure(std::span<const ContainerFormat> formats);
  Result<Pass> pass(std::span<const ContainerFormat> formats);
  Result<void> look_at(store::Repository& repository, Pass& pass);
  Result<void> tell(const EstimateResult& result, OutputFile* page);

  Context& context_;
  const EstimateOptions& options_;
  BackupRequest request_;
  EstimateLines lines_;
};

Result<Pass> Estimate::pass(std::span<const ContainerFormat> formats) {
  const std::string parent = options_.scratch.empty() ? cache_directory(context_) : options_.scratch;
  KIN_TRY_ASSIGN(const auto scratch, ScratchRepository::make(parent));
  store::Repository& repository = scratch->repository();
  KIN_TRY(repository.begin_writing(context_.stop()));
  request_.walk.never_enter = own_directories(context_, repository);
  struct stat info {};
  if (::stat(scratch->directory().c_str(), &info) == 0)
    request_.walk.never_enter.emplace(info.st_dev, info.st_ino);
  request_.formats = {formats, formats::all().codings};
  SavingsMeter meter;
  lines_.meter = &meter;
  request_.meter = &meter;
  auto result = backup(repository, repository.index(), request_, lines_, context_.stop());
  if (!result && result.error().code() == ErrorCode::no_space)
    return std::move(result).error().context(
        fmt::format("an estimate needs as much room as a backup would take, until it ends, in {} (--scratch "
                    "names another place)",
                    printable(parent)));
  if (!result && result.error().code() == ErrorCode::cancelled) return interrupted();
  if (!result) return std::move(result).error();
  Pass out;
  out.result = *std::move(result);
  out.savings = meter.result();
  KIN_TRY_ASSIGN(out.stored_bytes, scratch->stored_bytes());
  KIN_TRY(look_at(repository, out));
  return out;
}

// While it is there.
Result<void> Estimate::look_at(store::Repository& repository, Pass& pass) {
  KIN_TRY_ASSIGN(Snapshot snapshot, repository.load_snapshot(*pass.result.snapshot));
  ContentCosts costs(repository, 0);
  KIN_TRY(costs.add(snapshot, context_.stop()));
  pass.parts = costs.parts(kMostParts);
  std::unordered_set<ObjectId, ObjectIdHash> wanted;
  for (const Savings::Pair& pair : pass.savings.pairs) {
    wanted.insert(pair.object);
    wanted.insert(pair.base);
  }
  bool damaged = false;  // which it is not
  KIN_TRY_ASSIGN(const Origins origins,
                 find_origins(context_, repository, {*pass.result.snapshot, std::move(snapshot)},
                              std::move(wanted), damaged));
  for (const Savings::Pair& pair : pass.savings.pairs) {
    const auto object = origins.find(pair.object), base = origins.find(pair.base);
    if (object != origins.end() && base != origins.end())
      pass.pairs.push_back({pair, disk_path(request_.walk.sources, object->second.path),
                            disk_path(request_.walk.sources, base->second.path)});
  }
  return {};
}

// What a backup into a repository would add to it.
Result<ExitCode> Estimate::run_against(std::span<const ContainerFormat> formats) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context_));
  repository->features();  // makes its directory
  request_.walk.never_enter = own_directories(context_, *repository);
  request_.formats = {formats, formats::all().codings};
  KIN_TRY(compare_with_parent(context_, *repository, request_));
  KIN_TRY(repository->find_lost_packs());
  const std::size_t lost_before = repository->lost_packs().size();
  const CountAhead ahead(context_, request_.walk, lines_.progress());
  KIN_TRY_ASSIGN(const BackupResult result, dry_run(*repository, request_, lines_, context_.stop()));
  print_backup(context_, result, true, lines_.progress().seconds());
  const bool damaged = tell_of_damage(context_, *repository, lost_before, true);
  return result.summary.skipped > 0 || damaged ? ExitCode::incomplete : ExitCode::ok;
}

Result<EstimateResult> Estimate::measure(std::span<const ContainerFormat> formats) {
  const CountAhead ahead(context_, request_.walk, lines_.progress(), formats.empty() ? 1 : 2);
  std::optional<Pass> opened;
  Pass closed;
  if (!formats.empty()) {
    KIN_TRY_ASSIGN(opened, pass(formats));
    lines_.is_again = true;
    // Where nothing opens, the second pass would be the first once more.
    if (opened->result.containers.opened.empty()) closed = *std::exchange(opened, {});
  }
  if (formats.empty() || opened) {
    KIN_TRY_ASSIGN(closed, pass({}));
  }
  Pass& as_backup = opened ? *opened : closed;
  EstimateResult out;
  out.paths = request_.snapshot.paths;
  out.files = as_backup.result.summary.files;
  out.bytes = as_backup.result.summary.bytes;
  out.skipped = as_backup.result.summary.skipped;
  out.containers = as_backup.result.containers;
  out.parts = std::move(as_backup.parts);
  out.methods = {
      {"identical_files", "identical files once", closed.savings.distinct_file_bytes},
      {"compression", "each file compressed (zstd -3)", closed.savings.files_compressed},
      {"chunks", "chunks once, compressed: as restic does, computed", closed.savings.objects_compressed},
      {"deltas", "each file a delta or compressed", closed.savings.deltas},
  };
  if (opened) {
    out.methods.push_back({"deltas_opened", "the same, with containers opened", opened->savings.deltas});
    out.methods.push_back(
        {"kin_closed", "kin --no-unpack, all that a repository takes", closed.stored_bytes});
  }
  out.methods.push_back({"kin", "kin, all that a repository takes", as_backup.stored_bytes});
  out.savings = std::move(closed.savings);
  out.pairs = std::move(closed.pairs);
  return out;
}

Result<void> Estimate::tell(const EstimateResult& result, OutputFile* page) {
  if (page != nullptr) {
    KIN_TRY(page->finish(estimate_page(result)));
    if (page->is_stdout()) return {};
  }
  if (options_.csv) {
    print_estimate_csv(context_, result);
  } else {
    print_estimate(context_, result);
    context_.json("estimate", estimate_json(result));
  }
  return {};
}

Result<ExitCode> Estimate::run() {
  if (!options_.against.empty()) context_.options.repository = options_.against;
  KIN_TRY_ASSIGN(const std::vector<ContainerFormat> formats, chosen_formats(options_.sources));
  KIN_TRY_ASSIGN(request_.walk, walk_options(options_.sources, "", context_));
  KIN_TRY_ASSIGN(request_.snapshot, new_snapshot("", "", {}));
  request_.snapshot.paths = snapshot_paths(request_.walk.sources, "");
  request_.jobs = context_.jobs();
  request_.effort = effort_named(options_.sources.effort);
  if (!options_.against.empty()) return run_against(formats);

  std::unique_ptr<OutputFile> page;
  if (!options_.html.empty()) {  // now, and not when all the work is done
    KIN_TRY_ASSIGN(page, OutputFile::open(context_, options_.html, {}));
  }
  KIN_TRY_ASSIGN(const EstimateResult result, measure(formats));
  context_.progress("");
  KIN_TRY(tell(result, page.get()));
  if (result.skipped > 0)
    context_.warn(fmt::format("{} file{} could not be read whole", grouped(result.skipped),
                              result.skipped == 1 ? "" : "s"));
  return result.skipped > 0 ? ExitCode::incomplete : ExitCode::ok;
}

Action define_estimate(CLI::App& app) {
  auto options = std::make_shared<EstimateOptions>();
  add_source_options(app, options->sources, "files and directories to look at");
  CLI::Option* const csv =
      app.add_flag("--csv", options->csv, "a table for spreadsheets instead of one for people");
  CLI::Option* const html =
      app.add_option("--html", options->html, "also write a page with plots to this file");
  app.add_option("--scratch", options->scratch,
                 "where to keep what a backup would store, until it is counted (default: the local cache)");
  app.add_option("--against", options->against,
                 "tell what a backup into this repository would add to it, and nothing else")
      ->excludes(csv)
      ->excludes(html);
  return [options](Context& context) { return Estimate(context, *options).run(); };
}

}  // namespace

extern const Command kEstimate{"estimate", "tell what a backup would take, and what other ways would",
                               define_estimate};

}  // namespace kin::cmd

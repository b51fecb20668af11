// kin estimate: what kin would store of files, and what simpler ways would, without a repository.
#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/estimate_result.h"
#include "cmd/object_origins.h"
#include "cmd/output_file.h"
#include "cmd/scratch_repository.h"
#include "cmd/source_options.h"
#include "formats/formats.h"
#include "lib/base/mutex.h"

#include <algorithm>
#include <sys/stat.h>
#include <unordered_set>

namespace kin::cmd {
namespace {

// How many features a study tries besides those of every repository; and how many bases of equal rank.
constexpr unsigned kStudyFeatures[] = {4, 8, 32};
constexpr unsigned kStudyBases = 4;

struct EstimateOptions {
  SourceOptions sources;
  std::string scratch, against, html;
  bool csv = false, study = false;
};

// What one backup, into a repository that is removed again, tells.
struct Pass {
  BackupResult result;
  Savings savings;
  std::uint64_t stored_bytes = 0;
  std::vector<EstimateResult::Pair> pairs;
  std::vector<ContentCosts::Named> parts;
};

// Later passes read the same files: what is wrong with one is told once.
class EstimateLines : public BackupLines {
 public:
  using BackupLines::BackupLines;

  void on_entry(const WalkEntry& entry, Change change) override {
    if (meter != nullptr && entry.kind == WalkEntry::Kind::file)
      meter->on_file(entry.node.size, entry.node.content);
    BackupLines::on_entry(entry, change);
  }
  void on_skipped(const std::string& path, const Error& error) override {
    {
      MutexLock lock(mutex_);
      if (!told_.insert(path).second) return;
    }
    BackupLines::on_skipped(path, error);
  }
  std::uint64_t skipped() const {
    MutexLock lock(mutex_);
    return told_.size();
  }

  SavingsMeter* meter = nullptr;  // of the pass; none when nothing is measured

 private:
  mutable Mutex mutex_;
  std::unordered_set<std::string> told_ KIN_GUARDED_BY(mutex_);
};

class Estimate {
 public:
  Estimate(Context& context, const EstimateOptions& options)
      : context_(context), options_(options), lines_(context) {}

  Result<ExitCode> run();

 private:
  Result<ExitCode> run_against(std::span<const ContainerFormat> formats);
  Result<EstimateResult> measure(std::span<const ContainerFormat> formats);
  Result<Pass> pass(std::span<const ContainerFormat> formats, unsigned features = Scanner::kDefaultFeatures,
                    bool compares = false);
  Result<EstimateStudy> study(const Pass& closed);
  Result<void> look_at(store::Repository& repository, Pass& pass);
  Result<void> tell(const EstimateResult& result);

  Context& context_;
  const EstimateOptions& options_;
  BackupRequest request_;
  EstimateLines lines_;
};

Result<Pass> Estimate::pass(std::span<const ContainerFormat> formats, unsigned features, bool compares) {
  const std::string parent = options_.scratch.empty() ? cache_directory(context_) : options_.scratch;
  KIN_TRY_ASSIGN(const auto scratch, ScratchRepository::make(parent, features));
  store::Repository& repository = scratch->repository();
  KIN_TRY(repository.begin_writing(context_.stop()));
  request_.walk.never_enter = own_directories(context_, repository);
  struct stat info {};
  if (::stat(scratch->directory().c_str(), &info) == 0)
    request_.walk.never_enter.emplace(info.st_dev, info.st_ino);
  request_.formats = {formats, formats::all().codings};
  request_.effort = effort_named(options_.sources.effort);
  if (compares) request_.effort.candidates = kStudyBases;
  SavingsMeter meter(compares);
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
  pass.parts = costs.parts(ContentCosts::kShownParts);
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
  request_.effort = effort_named(options_.sources.effort);
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
  const unsigned study_passes = options_.study ? 1 + std::size(kStudyFeatures) : 0;
  const unsigned passes = (formats.empty() ? 1 : 2) + study_passes;
  if (options_.study)
    context_.print(fmt::format("a study: all files are read and stored up to {} times", passes));
  request_.walk.never_enter = own_directories(context_);
  CountAhead ahead(context_, request_.walk, lines_.progress(), passes);
  std::optional<Pass> opened;
  Pass closed;
  if (!formats.empty()) {
    KIN_TRY_ASSIGN(opened, pass(formats));
    // Where nothing opens, the second pass would be the first once more.
    if (opened->result.containers.opened.empty()) {
      closed = *std::exchange(opened, {});
      ahead.drop_pass();
    }
  }
  if (formats.empty() || opened) {
    KIN_TRY_ASSIGN(closed, pass({}));
  }
  Pass& as_backup = opened ? *opened : closed;
  EstimateResult out;
  if (options_.study) {
    KIN_TRY_ASSIGN(out.study, study(closed));
  }
  out.paths = request_.snapshot.paths;
  out.files = as_backup.result.summary.files;
  out.bytes = as_backup.result.summary.bytes;
  out.skipped = lines_.skipped();
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
    out.methods.push_back({"kin_closed", "kin --no-unpack, with trees, index and all", closed.stored_bytes});
  }
  out.methods.push_back({"kin", "kin, with trees, index and all", as_backup.stored_bytes});
  out.savings = std::move(closed.savings);
  out.pairs = std::move(closed.pairs);
  return out;
}

// What needs more passes: several bases and both programs for each object, and sketches of other sizes.
Result<EstimateStudy> Estimate::study(const Pass& closed) {
  EstimateStudy out;
  const auto add = [&](unsigned features, const Pass& pass) {
    out.features.push_back({features, pass.savings.deltas, pass.savings.delta_objects, pass.stored_bytes});
  };
  add(Scanner::kDefaultFeatures, closed);
  for (const unsigned features : kStudyFeatures) {
    KIN_TRY_ASSIGN(const Pass pass, this->pass({}, features));
    add(features, pass);
  }
  std::sort(out.features.begin(), out.features.end(),
            [](const auto& a, const auto& b) { return a.features < b.features; });
  KIN_TRY_ASSIGN(Pass compared, pass({}, Scanner::kDefaultFeatures, true));
  out.savings = std::move(compared.savings);
  return out;
}

Result<void> Estimate::tell(const EstimateResult& result) {
  if (!options_.html.empty()) {
    KIN_TRY_ASSIGN(const auto page, OutputFile::open(context_, options_.html, {}));
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
  KIN_TRY(choose_form(context_, options_.csv, options_.html));
  if (!options_.against.empty()) context_.options.repository = options_.against;
  KIN_TRY_ASSIGN(const std::vector<ContainerFormat> formats, chosen_formats(options_.sources));
  KIN_TRY_ASSIGN(request_.walk, walk_options(options_.sources, "", context_));
  KIN_TRY_ASSIGN(request_.snapshot, new_snapshot("", "", {}));
  request_.snapshot.paths = snapshot_paths(request_.walk.sources, "");
  request_.jobs = context_.jobs();
  if (!options_.against.empty()) return run_against(formats);

  if (!options_.html.empty()) {
    // To fail now, and not when all the work is done; but not to be found among the files.
    KIN_TRY_ASSIGN(const auto can_be_made, OutputFile::open(context_, options_.html, {}));
  }
  KIN_TRY_ASSIGN(const EstimateResult result, measure(formats));
  context_.progress("");
  KIN_TRY(tell(result));
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
  CLI::Option* const study = app.add_flag("--study", options->study,
                                          "also what deltas save by features, size, blocks, thresholds, "
                                          "bases and programs; takes several times as long");
  app.add_option("--scratch", options->scratch,
                 "where to keep what a backup would store, until it is counted (default: the local cache)");
  app.add_option("--against", options->against,
                 "tell what a backup into this repository would add to it, and nothing else")
      ->excludes(csv)
      ->excludes(html)
      ->excludes(study);
  return [options](Context& context) { return Estimate(context, *options).run(); };
}

}  // namespace

extern const Command kEstimate{"estimate", "tell what a backup would take, and what other ways would",
                               define_estimate};

}  // namespace kin::cmd

// kin estimate: what kin would store of files, and what simpler ways would, without a repository.
#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/estimate_methods.h"
#include "cmd/estimate_result.h"
#include "cmd/file_options.h"
#include "cmd/object_origins.h"
#include "cmd/output_file.h"
#include "cmd/sample_costs.h"
#include "cmd/scratch_repository.h"
#include "cmd/source_options.h"
#include "formats/formats.h"
#include "lib/base/mutex.h"
#include "lib/engine/sample_survey.h"

#include <algorithm>
#include <sys/stat.h>
#include <unordered_set>

namespace kin::cmd {
namespace {

using Sketches = ScratchRepository::Sketches;

// How many features a study tries, of windows of how many bytes, besides those of every repository; and how
// many bases of equal rank.
constexpr unsigned kStudyFeatures[] = {4, 8, 32};
constexpr std::size_t kStudyWindows[] = {8, 16, 64};
constexpr unsigned kStudyBases = 4;

// A sample is a tenth, unless told otherwise: below the first size a tenth says little, and beyond the second
// more says little more.
constexpr double kSamplePercent = 10;
constexpr double kLeastSampleBytes = 64 << 20;
constexpr double kMostSampleBytes = 4.0 * (1 << 30);
// A sample is stored once and a half: more than so much of all takes longer than all. So does a look at the
// front of every file, of files smaller than this on average.
constexpr double kMostSamplePart = 0.5;
constexpr double kLeastMeanBytes = 1 << 10;

struct EstimateOptions {
  SourceOptions sources;
  std::string scratch, against, html;
  bool csv = false, study = false, sample = false;
  std::optional<double> sample_percent;
  std::optional<std::uint64_t> sample_seed;

  bool takes_sample() const { return sample || sample_percent; }
};

// What one backup, into a repository that is removed again, tells.
struct Pass {
  BackupResult result;
  Savings savings;
  std::uint64_t stored_bytes = 0;
  std::vector<EstimateResult::Pair> pairs;
  std::vector<ContentCosts::Named> parts;
  SampleCosts sampled;  // if it is of a sample
};
// The files as they are and, where any container opens, with those opened.
struct Passes {
  Pass closed;
  std::optional<Pass> opened;

  Pass& as_backup() { return opened ? *opened : closed; }
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
  Result<bool> sample_pays() const;
  Result<EstimateResult> measure_sample(std::span<const ContainerFormat> formats);
  Result<Passes> passes(std::span<const ContainerFormat> formats, const std::function<void()>& drop_pass);
  EstimateResult result_of(Passes& passes) const;
  Result<Pass> pass(std::span<const ContainerFormat> formats, const Sketches& sketches = {},
                    bool compares = false);
  Result<EstimateStudy> study(const Pass& closed);
  Result<void> look_at(store::Repository& repository, Pass& pass, const SavingsMeter& meter);
  void compare(const SnapshotSummary& read);
  void tell(const EstimateResult& result);
  Result<std::unique_ptr<OutputFile>> open_page();

  Context& context_;
  const EstimateOptions& options_;
  BackupRequest request_;
  EstimateLines lines_;
  // What the first pass read; all others of the same sample, or of all files, are to read the same.
  struct First {
    const FileSample* sample;
    std::uint64_t files, bytes;
  };
  std::optional<First> first_;
  std::string changed_;  // a sentence, if they did not
};

Result<Pass> Estimate::pass(std::span<const ContainerFormat> formats, const Sketches& sketches,
                            bool compares) {
  const std::string parent = options_.scratch.empty() ? cache_directory(context_) : options_.scratch;
  auto made = ScratchRepository::make(parent, sketches);
  if (!made) {
    const char* const hint =
        options_.scratch.empty() ? " in the local cache (--scratch names another place)" : "";
    return std::move(made).error().context(fmt::format("no room for an estimate to work in{}", hint));
  }
  const std::unique_ptr<ScratchRepository> scratch = *std::move(made);
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
  compare(result->summary);
  Pass out;
  out.result = *std::move(result);
  out.savings = meter.result();
  KIN_TRY_ASSIGN(out.stored_bytes, scratch->stored_bytes());
  KIN_TRY(look_at(repository, out, meter));
  return out;
}

// With what the passes before it read, or with what was drawn.
void Estimate::compare(const SnapshotSummary& read) {
  const auto tell = [&](const std::string& first, const std::string& then) {
    if (changed_.empty())
      changed_ = fmt::format(
          "the data changed while it was read: first {}, then {}; the lines of the table are of different "
          "data",
          first, then);
  };
  if (!first_ || first_->sample != request_.sample) {
    first_ = {request_.sample, read.files, read.bytes};
    // Those that cannot be read whole are told of by name.
    if (request_.sample != nullptr && read.files + read.skipped < request_.sample->files())
      tell(counted(request_.sample->files(), "file") + " of the sample", counted(read.files, "file"));
  } else if (first_->files != read.files || first_->bytes != read.bytes) {
    const auto text = [](std::uint64_t files, std::uint64_t bytes) {
      return fmt::format("{} of {} bytes", counted(files, "file"), grouped(bytes));
    };
    tell(text(first_->files, first_->bytes), text(read.files, read.bytes));
  }
}

// While it is there.
Result<void> Estimate::look_at(store::Repository& repository, Pass& pass, const SavingsMeter& meter) {
  KIN_TRY_ASSIGN(Snapshot snapshot, repository.load_snapshot(*pass.result.snapshot));
  if (request_.sample != nullptr) {
    KIN_TRY_ASSIGN(pass.sampled, sample_costs(repository, snapshot, *request_.sample, meter,
                                              pass.stored_bytes, context_.stop()));
  }
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

Result<Passes> Estimate::passes(std::span<const ContainerFormat> formats,
                                const std::function<void()>& drop_pass) {
  Passes out;
  if (!formats.empty()) {
    KIN_TRY_ASSIGN(out.opened, pass(formats));
    // Where nothing opens, the second pass would be the first once more.
    if (out.opened->result.containers.opened.empty()) {
      out.closed = *std::exchange(out.opened, {});
      drop_pass();
      return out;
    }
  }
  KIN_TRY_ASSIGN(out.closed, pass({}));
  return out;
}

// But for what the methods take. The passes have been used up then.
EstimateResult Estimate::result_of(Passes& passes) const {
  Pass& as_backup = passes.as_backup();
  EstimateResult out;
  out.paths = request_.snapshot.paths;
  out.files = as_backup.result.summary.files;
  out.bytes = as_backup.result.summary.bytes;
  out.skipped = lines_.skipped();
  out.changed = changed_;
  out.containers = as_backup.result.containers;
  out.parts = std::move(as_backup.parts);
  out.savings = std::move(passes.closed.savings);
  out.pairs = std::move(passes.closed.pairs);
  return out;
}

Result<EstimateResult> Estimate::measure(std::span<const ContainerFormat> formats) {
  const unsigned study_passes = options_.study ? 1 + std::size(kStudyFeatures) + std::size(kStudyWindows) : 0;
  const unsigned count = (formats.empty() ? 1 : 2) + study_passes;
  if (options_.study)
    context_.print(fmt::format("a study: all files are read and stored up to {} times", count));
  request_.walk.never_enter = own_directories(context_);
  CountAhead ahead(context_, request_.walk, lines_.progress(), count);
  KIN_TRY_ASSIGN(Passes made, passes(formats, [&] { ahead.drop_pass(); }));
  std::optional<EstimateStudy> study;
  if (options_.study) {
    KIN_TRY_ASSIGN(study, this->study(made.closed));
  }
  const Savings& savings = made.closed.savings;
  std::vector<EstimateResult::Method> methods;
  const auto add = [&](const EstimatedMethod& method, std::uint64_t bytes) {
    methods.push_back({method.name, method.text, bytes, bytes, bytes});
  };
  add(kIdenticalFiles, savings.distinct_file_bytes);
  add(kCompression, savings.files_compressed);
  add(kChunks, savings.objects_compressed);
  add(kDeltas, savings.deltas);
  if (made.opened) {
    add(kDeltasOpened, made.opened->savings.deltas);
    add(kKinClosed, made.closed.stored_bytes);
  }
  add(kKin, made.as_backup().stored_bytes);
  EstimateResult out = result_of(made);
  out.methods = std::move(methods);
  out.study = std::move(study);
  return out;
}

Result<bool> Estimate::sample_pays() const {
  if (options_.sample_percent) return *options_.sample_percent <= 100 * kMostSamplePart;
  double files = 0, bytes = 0;
  const auto emit = [&](const WalkEntry& entry) {
    if (entry.kind == WalkEntry::Kind::file) {
      ++files;
      bytes += static_cast<double>(entry.node.size);
    }
    return !context_.stop().stop_requested();
  };
  // What cannot be walked is told of by who looks at it next.
  const auto skip = [](const std::string&, const Error&) {};
  (void)Walker(request_.walk, nullptr, std::nullopt, emit, skip).walk();
  if (context_.stop().stop_requested()) return interrupted();
  return kMostSamplePart * bytes > kLeastSampleBytes && bytes > kLeastMeanBytes * files;
}

// The same of a part of the files, and what it says of all.
Result<EstimateResult> Estimate::measure_sample(std::span<const ContainerFormat> formats) {
  request_.walk.never_enter = own_directories(context_);
  KIN_TRY_ASSIGN(const bool pays, sample_pays());
  if (!pays) {
    context_.print("a sample would take as long as all files: all of them are looked at");
    KIN_TRY_ASSIGN(EstimateResult all, measure(formats));
    all.sample = {all.files, all.bytes, all.savings.distinct_files, options_.sample_seed.value_or(0)};
    return all;
  }
  SurveyRequest survey_request;
  survey_request.walk = request_.walk;
  survey_request.formats = {formats, formats::all().codings};
  survey_request.seed = options_.sample_seed.value_or(0);
  survey_request.jobs = request_.jobs;
  survey_request.on_skipped = [&](const std::string& path, const Error& error) {
    lines_.on_skipped(path, error);
  };
  SampleSurvey survey;
  {
    Progress progress(context_, true);
    survey_request.on_file = [&](const std::string& path) {
      progress.add_files(1);
      progress.tick(path);
    };
    const CountAhead ahead(context_, request_.walk, progress);
    KIN_TRY_ASSIGN(survey, survey_files(survey_request, context_.stop()));
  }
  const auto bytes = static_cast<double>(std::max<std::uint64_t>(survey.bytes - survey.hole_bytes, 1));
  double part = options_.sample_percent.value_or(kSamplePercent) / 100;
  if (!options_.sample_percent)
    part = std::clamp(part, std::min(1.0, kLeastSampleBytes / bytes), kMostSampleBytes / bytes);
  const FileSample sample(std::exchange(survey.units, {}), part, std::exchange(survey.empty, {}));
  const FileSample half = sample.half();
  const bool is_all = sample.share() >= 1;  // which has lost no kin
  const auto set_total = [&](unsigned times) {
    lines_.progress().set_total(times * sample.files() + (is_all ? 0 : half.files()),
                                times * sample.bytes() + (is_all ? 0 : half.bytes()));
  };
  lines_.progress().restart();
  set_total(formats.empty() ? 1 : 2);
  request_.sample = &sample;
  KIN_TRY_ASSIGN(Passes made, passes(formats, [&] { set_total(1); }));
  SampleCosts of_half = made.closed.sampled;
  if (!is_all) {
    request_.sample = &half;
    KIN_TRY_ASSIGN(Pass halved, pass({}));
    of_half = std::move(halved.sampled);
  }
  request_.sample = nullptr;

  SampleMeasured measured{std::move(made.closed.sampled), {}, std::move(of_half)};
  if (made.opened) measured.opened = std::move(made.opened->sampled);
  std::vector<EstimateResult::Method> methods = sampled_methods(sample, survey, measured);
  EstimateResult out = result_of(made);
  out.methods = std::move(methods);
  out.sample = {sample.files(), sample.bytes(), sample.drawn_families(), survey_request.seed};
  out.files = survey.files;
  out.bytes = survey.bytes;
  out.parts.clear();  // what is not in the sample would be missing there
  return out;
}

// What needs more passes: several bases and both programs for each object, and other sketches.
Result<EstimateStudy> Estimate::study(const Pass& closed) {
  EstimateStudy out;
  const auto add = [&](std::vector<EstimateStudy::Sketches>& rows, std::size_t value, const Pass& pass) {
    rows.push_back({value, pass.savings.deltas, pass.savings.delta_objects, pass.stored_bytes});
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  };
  out.compressed = closed.savings.files_compressed;
  out.deltas = closed.savings.deltas;
  add(out.features, Scanner::kDefaultFeatures, closed);
  add(out.windows, Scanner::kWindowBytes, closed);
  for (const unsigned features : kStudyFeatures) {
    KIN_TRY_ASSIGN(const Pass pass, this->pass({}, {.features = features}));
    add(out.features, features, pass);
  }
  for (const std::size_t window : kStudyWindows) {
    KIN_TRY_ASSIGN(const Pass pass, this->pass({}, {.window_bytes = window}));
    add(out.windows, window, pass);
  }
  KIN_TRY_ASSIGN(Pass compared, pass({}, {}, true));
  out.savings = std::move(compared.savings);
  return out;
}

void Estimate::tell(const EstimateResult& result) {
  if (options_.html == "-") {
    // The page is all that is wanted there.
  } else if (options_.csv) {
    print_estimate_csv(context_, result);
  } else {
    print_estimate(context_, result);
    context_.json("estimate", estimate_json(result));
  }
  if (result.skipped > 0) context_.warn(skipped_text(result.skipped));
  if (!result.changed.empty()) context_.warn(result.changed);
}

Result<std::unique_ptr<OutputFile>> Estimate::open_page() {
  std::vector<std::string> inputs;
  for (const BackupSource& source : request_.walk.sources) inputs.push_back(source.path);
  const SourceOptions& sources = options_.sources;
  for (const auto* lists : {&sources.files_from, &sources.exclude_file, &sources.iexclude_file})
    inputs.insert(inputs.end(), lists->begin(), lists->end());
  return OutputFile::open_page(context_, options_.html, std::move(inputs));
}

Result<ExitCode> Estimate::run() {
  KIN_TRY(choose_form(context_, options_.csv, options_.html));
  if (options_.sample_seed && !options_.takes_sample())
    return Error(ErrorCode::invalid_argument, "--sample-seed goes with --sample or --sample-percent");
  if (!options_.against.empty()) context_.options.repository = options_.against;
  KIN_TRY_ASSIGN(const std::vector<ContainerFormat> formats, chosen_formats(options_.sources));
  KIN_TRY_ASSIGN(request_.walk, walk_options(options_.sources, "", context_));
  KIN_TRY_ASSIGN(request_.snapshot, new_snapshot("", "", {}));
  request_.snapshot.paths = snapshot_paths(request_.walk.sources, "");
  request_.jobs = context_.jobs();
  if (!options_.against.empty()) return run_against(formats);

  if (!options_.html.empty()) {
    // To fail now, and not when all the work is done; but not to be found among the files.
    KIN_TRY_ASSIGN(const auto can_be_made, open_page());
  }
  KIN_TRY_ASSIGN(const EstimateResult result,
                 options_.takes_sample() ? measure_sample(formats) : measure(formats));
  context_.progress("");
  tell(result);
  if (!options_.html.empty()) {
    KIN_TRY_ASSIGN(const auto page, open_page());
    KIN_TRY(page->finish(estimate_page(result)));
  }
  return result.skipped > 0 || !result.changed.empty() ? ExitCode::incomplete : ExitCode::ok;
}

Action define_estimate(CLI::App& app) {
  auto options = std::make_shared<EstimateOptions>();
  add_source_options(app, options->sources, "files and directories to look at");
  CLI::Option* const csv =
      app.add_flag("--csv", options->csv, "a table for spreadsheets instead of one for people");
  CLI::Option* const html =
      app.add_option("--html", options->html, "also write a page with plots to this file")
          ->check(is_not_empty);
  CLI::Option* const study = app.add_flag("--study", options->study,
                                          "also what deltas save by features, size, blocks, thresholds, "
                                          "bases and programs; takes several times as long");
  CLI::Option* const scratch =
      app.add_option(
             "--scratch", options->scratch,
             "where to keep what a backup would store, until it is counted (default: the local cache)")
          ->check(is_not_empty);
  csv->excludes(study);
  CLI::Option* const sample =
      app.add_flag("--sample", options->sample,
                   "look at a tenth of the data, at most 4 GiB, and tell between what bounds all would be")
          ->excludes(study);
  CLI::Option* const percent =
      app.add_option("--sample-percent", options->sample_percent, "the same for so much of them")
          ->check(CLI::Range(0.001, 100.0))
          ->check(is_a_number)
          ->excludes(study);
  CLI::Option* const seed =
      app.add_option("--sample-seed", options->sample_seed, "another number, another sample")
          ->check(is_a_whole_number);
  CLI::Option* const against =
      app.add_option("--against", options->against,
                     "tell what a backup into this repository would add to it, and nothing else")
          ->check(is_not_empty);
  for (CLI::Option* const other : {csv, html, study, scratch, sample, percent, seed})
    against->excludes(other);
  return [options](Context& context) { return Estimate(context, *options).run(); };
}

}  // namespace

extern const Command kEstimate{"estimate", "tell what a backup would take, and what other ways would",
                               define_estimate};

}  // namespace kin::cmd

// kin estimate: what kin would store of files, and what simpler ways would, without a repository.
#include "cmd/backup_report.h"
#include "cmd/backup_sources.h"
#include "cmd/scratch_repository.h"
#include "cmd/source_options.h"
#include "formats/formats.h"
#include "lib/engine/savings.h"

#include <sys/stat.h>

namespace kin::cmd {
namespace {

struct EstimateOptions {
  SourceOptions sources;
  std::string scratch, against;
  bool csv = false;
};

// A way to store the files, and what it takes.
struct Method {
  const char* name;  // for programs
  const char* text;  // for people
  std::uint64_t bytes;
};

// One backup into a repository that is removed again.
struct Pass {
  BackupResult result;
  Savings savings;
  std::uint64_t stored_bytes = 0;
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
  Result<void> measure(std::span<const ContainerFormat> formats);
  Result<Pass> pass(std::span<const ContainerFormat> formats);
  std::vector<Method> methods() const;
  void print() const;
  void print_csv() const;
  Json json() const;
  double percent(std::uint64_t bytes) const {
    return original() == 0 ? 0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(original());
  }
  std::uint64_t original() const { return closed_.result.summary.bytes; }
  // As a backup would: the first pass.
  const BackupResult& read() const { return (opened_ ? *opened_ : closed_).result; }

  Context& context_;
  const EstimateOptions& options_;
  BackupRequest request_;
  EstimateLines lines_;
  std::optional<Pass> opened_;  // none: nothing opens
  Pass closed_;
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
  Pass out{*std::move(result), meter.result(), 0};
  KIN_TRY_ASSIGN(out.stored_bytes, scratch->stored_bytes());
  return out;
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

Result<void> Estimate::measure(std::span<const ContainerFormat> formats) {
  const CountAhead ahead(context_, request_.walk, lines_.progress(), formats.empty() ? 1 : 2);
  if (!formats.empty()) {
    KIN_TRY_ASSIGN(opened_, pass(formats));
    lines_.is_again = true;
    // Where nothing opens, the second pass would be the first once more.
    if (opened_->result.containers.opened.empty()) {
      closed_ = *std::exchange(opened_, {});
      return {};
    }
  }
  KIN_TRY_ASSIGN(closed_, pass({}));
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

  KIN_TRY(measure(formats));
  context_.progress("");
  if (options_.csv) {
    print_csv();
  } else {
    print();
    context_.json("estimate", json());
  }
  const std::uint64_t skipped = read().summary.skipped;
  if (skipped > 0)
    context_.warn(
        fmt::format("{} file{} could not be read whole", grouped(skipped), skipped == 1 ? "" : "s"));
  return skipped > 0 ? ExitCode::incomplete : ExitCode::ok;
}

std::vector<Method> Estimate::methods() const {
  std::vector<Method> out{
      {"identical_files", "identical files once", closed_.savings.distinct_file_bytes},
      {"compression", "each file compressed (zstd -3)", closed_.savings.alone},
      {"chunks", "chunks once, compressed: as restic does, computed", closed_.savings.chunks},
      {"deltas", "each file a delta or compressed", closed_.savings.deltas},
  };
  if (opened_) out.push_back({"deltas_opened", "the same, with containers opened", opened_->savings.deltas});
  if (opened_)
    out.push_back({"kin_closed", "kin --no-unpack, all that a repository takes", closed_.stored_bytes});
  out.push_back({"kin", "kin, all that a repository takes", (opened_ ? *opened_ : closed_).stored_bytes});
  return out;
}

void Estimate::print() const {
  const SnapshotSummary& summary = closed_.result.summary;
  const Savings& savings = closed_.savings;
  context_.print(fmt::format("{} files, {}; {} of them different", grouped(summary.files),
                             human_bytes(original()), grouped(savings.distinct_files)));
  context_.print("");
  context_.print(fmt::format("{:<52}{:>14}{:>10}", "stored as", "bytes", "of all"));
  for (const Method& method : methods())
    context_.print(
        fmt::format("{:<52}{:>14}{:>8.1f} %", method.text, human_bytes(method.bytes), percent(method.bytes)));
  if (const ContainerCounts& containers = read().containers; !containers.empty()) {
    context_.print("");
    context_.print(containers_text(containers));
  }
}

void Estimate::print_csv() const {
  std::ostream& out = context_.raw_out();
  out << "method,bytes,percent\n" << fmt::format("original,{},100\n", original());
  for (const Method& method : methods())
    out << fmt::format("{},{},{:.3f}\n", method.name, method.bytes, percent(method.bytes));
}

Json Estimate::json() const {
  Json rows = Json::array();
  for (const Method& method : methods())
    rows.push_back({{"name", method.name}, {"bytes", method.bytes}, {"percent", percent(method.bytes)}});
  const SnapshotSummary& summary = closed_.result.summary;
  return {{"files", summary.files},
          {"distinct_files", closed_.savings.distinct_files},
          {"bytes", original()},
          {"delta_objects", closed_.savings.delta_objects},
          {"methods", std::move(rows)},
          {"containers", containers_json(read().containers)},
          {"skipped", read().summary.skipped}};
}

Action define_estimate(CLI::App& app) {
  auto options = std::make_shared<EstimateOptions>();
  add_source_options(app, options->sources, "files and directories to look at");
  CLI::Option* const csv =
      app.add_flag("--csv", options->csv, "a table for spreadsheets instead of one for people");
  app.add_option("--scratch", options->scratch,
                 "where to keep what a backup would store, until it is counted (default: the local cache)");
  app.add_option("--against", options->against,
                 "tell what a backup into this repository would add to it, and nothing else")
      ->excludes(csv);
  return [options](Context& context) { return Estimate(context, *options).run(); };
}

}  // namespace

extern const Command kEstimate{"estimate", "tell what a backup would take, and what other ways would",
                               define_estimate};

}  // namespace kin::cmd

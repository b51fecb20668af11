// kin study detectors: the detectors side by side, on the user's own files.
#include "cmd/file_options.h"
#include "cmd/html_page.h"
#include "cmd/output_file.h"
#include "cmd/svg_plots.h"
#include "cmd/version.h"
#include "lib/base/text.h"
#include "lib/engine/detector_study.h"

#include <algorithm>

namespace kin::cmd {
namespace {

struct StudyCommandOptions {
  FileOptions files;
  std::string what, html;
  std::vector<std::string> methods;
  std::size_t sample = 200;
  bool all = false;
};

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

double per_file(std::uint64_t number, const StudyResult& result) {
  return result.files == 0 ? 0 : static_cast<double>(number) / static_cast<double>(result.files);
}

void print_study(Context& context, const StudyResult& result) {
  context.print_always(fmt::format("{}, {}; each compressed alone: {} ({:.1f} %)",
                                   counted(result.files, "file"), human_bytes(result.bytes),
                                   human_bytes(result.alone_bytes),
                                   percent_of(result.alone_bytes, result.bytes)));
  if (result.left_out > 0)
    context.print_always(
        fmt::format("left out, as larger than 16 MiB: {}", counted(result.left_out, "file")));
  context.print_always(fmt::format("{} of {} sampled files have kin among the others\n",
                                   grouped(result.with_kin), grouped(result.sampled)));
  context.print_always(fmt::format("{:<24}{:>9}{:>9}{:>12}{:>11}{:>10}{:>9}{:>8}{:>13}{:>8}", "detector",
                                   "read s", "find s", "memory", "candidates", "with base", "useful",
                                   "recall", "stored", ""));
  for (const DetectorStudy& row : result.detectors)
    context.print_always(fmt::format(
        "{:<24}{:>9.2f}{:>9.2f}{:>12}{:>11.1f}{:>10}{:>9}{:>6.0f} %{:>13}{:>6.1f} %", row.detector->name,
        row.print_seconds, row.find_seconds, human_bytes(row.index_bytes), per_file(row.candidates, result),
        grouped(row.with_base), grouped(row.useful), percent_of(row.recalled, result.with_kin),
        human_bytes(row.bytes), percent_of(row.bytes, result.bytes)));
  context.print(
      "\nread, find: seconds of one core; candidates: files looked at, per file; useful: deltas below half "
      "of the "
      "file alone;\nrecall: of the sampled files with kin, those whose choice is about the best; stored: all "
      "files, "
      "each as a delta or alone");
}

Json study_json(const StudyResult& result) {
  Json rows = Json::array();
  for (const DetectorStudy& row : result.detectors)
    rows.push_back({{"detector", row.detector->name},
                    {"print_seconds", row.print_seconds},
                    {"find_seconds", row.find_seconds},
                    {"index_bytes", row.index_bytes},
                    {"candidates", row.candidates},
                    {"with_base", row.with_base},
                    {"useful", row.useful},
                    {"recalled", row.recalled},
                    {"stored_bytes", row.bytes}});
  return {{"files", result.files},       {"bytes", result.bytes},
          {"left_out", result.left_out}, {"alone_bytes", result.alone_bytes},
          {"sampled", result.sampled},   {"with_kin", result.with_kin},
          {"detectors", std::move(rows)}};
}

std::string study_page(const StudyResult& result) {
  HtmlPage page("Detectors side by side");
  page.paragraph(fmt::format("{}, {}. {} of {} sampled files have kin among the others.",
                             counted(result.files, "file"), human_bytes(result.bytes),
                             grouped(result.with_kin), grouped(result.sampled)));
  std::vector<Bar> bars;
  const auto bar = [&](const std::string& name, std::uint64_t bytes) {
    bars.push_back({name, human_bytes(bytes), percent_of(bytes, result.alone_bytes) / 100});
  };
  bar("each compressed alone", result.alone_bytes);
  std::vector<std::vector<HtmlPage::Cell>> rows;
  const auto seconds = [](double value) {
    return HtmlPage::Cell{fmt::format("{:.2f}", value), fmt::format("{:.6f}", value), ""};
  };
  for (const DetectorStudy& row : result.detectors) {
    bar(row.detector->name, row.bytes);
    rows.push_back(
        {HtmlPage::text(row.detector->name),
         seconds(row.print_seconds),
         seconds(row.find_seconds),
         HtmlPage::bytes(row.index_bytes),
         {fmt::format("{:.1f}", per_file(row.candidates, result)), std::to_string(row.candidates), ""},
         HtmlPage::number(row.with_base),
         HtmlPage::number(row.useful),
         HtmlPage::percent(static_cast<double>(row.recalled), static_cast<double>(result.with_kin)),
         HtmlPage::bytes(row.bytes)});
  }
  page.plot(bars_plot({"stored-plot", "What all files take when the detector chooses the bases"}, bars));
  page.table(
      "detectors", "Detectors",
      {"detector", "read s", "find s", "memory", "candidates", "with base", "useful", "recall", "stored"},
      rows);
  return page.finish(fmt::format("kin {} study", kVersion));
}

Result<ExitCode> run_study(Context& context, const StudyCommandOptions& options) {
  KIN_TRY(choose_form(context, false, options.html));
  if (!options.html.empty()) {
    KIN_TRY_ASSIGN(const auto can_be_made, OutputFile::open_page(context, options.html, options.files.paths));
  }
  KIN_TRY_ASSIGN(const WalkOptions sources, file_sources(options.files.paths, options.files));
  KIN_TRY_ASSIGN(const FileRules rules, file_rules(options.files));
  SkippedFiles skipped(context);
  KIN_TRY_ASSIGN(const auto files, find_files(sources, rules, skipped.told(), context.stop()));
  StudyOptions study;
  study.sample = options.sample;
  study.jobs = context.jobs();
  for (const DetectorEntry& entry : all_detectors()) {
    const bool named =
        std::find(options.methods.begin(), options.methods.end(), entry.name) != options.methods.end();
    if (named || (options.methods.empty() && (options.all || !entry.variant)))
      study.detectors.push_back(&entry);
  }
  const auto progress = [&](const std::string& text) {
    if (context.shows_progress()) context.progress(text);
  };
  KIN_TRY_ASSIGN(const StudyResult result, study_detectors(files, study, key_stores(context), skipped.told(),
                                                           progress, context.stop()));
  context.progress("");
  if (options.html != "-") {
    print_study(context, result);
    context.json("study", study_json(result));
  }
  if (!options.html.empty()) {
    KIN_TRY_ASSIGN(const auto page, OutputFile::open_page(context, options.html, options.files.paths));
    KIN_TRY(page->finish(study_page(result)));
  }
  return skipped.exit_code();
}

Action define_study(CLI::App& app) {
  auto options = std::make_shared<StudyCommandOptions>();
  app.add_option("WHAT", options->what, "detectors")->required()->check(CLI::IsMember({"detectors"}));
  app.add_option("PATH", options->files.paths, "files and directories to try them on")->required();
  std::vector<std::string> names;
  for (const DetectorEntry& entry : all_detectors()) names.emplace_back(entry.name);
  app.add_option("--method", options->methods, "only these detectors (features,sif ...)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names));
  app.add_flag("--all", options->all, "also the variants of detectors");
  app.add_option("--sample", options->sample, "files of which every pair is tried (default 200)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--html", options->html, "also write a page with plots to this file")->check(is_not_empty);
  app.add_option("-e,--exclude", options->files.exclude, "leave out what matches this pattern")
      ->allow_extra_args(false);
  app.add_option("--max-size", options->files.max_size, "only files of at most this size (500k, 2G)");
  return [options](Context& context) { return run_study(context, *options); };
}

}  // namespace

extern const Command kStudy{"study", "measure how well detectors of similar files do on yours", define_study};

}  // namespace kin::cmd

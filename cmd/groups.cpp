// kin groups: all against all; which files are equal, and which are alike.
#include "cmd/file_options.h"
#include "cmd/groups_page.h"
#include "cmd/output_file.h"
#include "lib/engine/equal_files.h"

namespace kin::cmd {
namespace {

struct GroupsOptions {
  FileOptions files;
  PairRules pairs;
  std::string html;
  bool overlapping = false, interesting = false;
};

Result<GroupsResult> find_groups(Context& context, const GroupsOptions& options, SkippedFiles& skipped) {
  const auto detector = make_detector(options.files);
  KIN_TRY_ASSIGN(const WalkOptions sources, file_sources(options.files.paths, options.files));
  KIN_TRY_ASSIGN(const FileRules rules, file_rules(options.files));
  GroupsResult out;
  out.method = options.files.method;
  out.least_similarity = least_similarity(options.files, *detector);
  KIN_TRY_ASSIGN(std::vector<ComparedFile> found, find_files(sources, rules, skipped.told(), context.stop()));
  KIN_TRY_ASSIGN(out.files,
                 print_files(std::move(found), *detector, context.jobs(), skipped.told(), context.stop()));
  KIN_TRY_ASSIGN(out.equal, equal_files(out.files, skipped.told(), context.stop()));
  PairRules pairs = options.pairs;
  pairs.least_similarity = out.least_similarity;
  KIN_TRY_ASSIGN(const auto index, detector->make_index(key_stores(context)));
  KIN_TRY_ASSIGN(const auto found_pairs, similar_pairs(out.files, out.equal, pairs, *index, context.stop()));
  out.counts = index->counts();
  const std::size_t files = out.files.files.size();
  out.similar = options.overlapping ? sif_lists(found_pairs, files, out.least_similarity)
                                    : star_groups(found_pairs, files, out.least_similarity);
  if (!options.overlapping) {
    KIN_TRY_ASSIGN(const auto firsts, detector->make_index(key_stores(context)));
    KIN_TRY(merge_groups(out.similar, out.files, pairs, *firsts, context.stop()));
  }
  if (options.interesting) out.interesting = interesting_sets(out.files, out.equal, out.least_similarity);
  return out;
}

Result<void> check_interesting(const GroupsOptions& options) {
  if (!options.interesting) return {};
  if (!make_detector(options.files)->values_are_a_set())
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("--interesting needs values that files share, and {} counts: take another method",
                    options.files.method));
  if (options.pairs.same_suffix || options.pairs.most_size_ratio != 0)
    return Error(ErrorCode::invalid_argument,
                 "--interesting is about sets, and goes with neither --same-suffix nor --size-ratio");
  return {};
}

Result<ExitCode> run_groups(Context& context, const GroupsOptions& options) {
  KIN_TRY(check_interesting(options));
  KIN_TRY(choose_form(context, false, options.html));
  if (!options.html.empty()) {
    // To fail now, and not when all the work is done.
    KIN_TRY_ASSIGN(const auto can_be_made, OutputFile::open_page(context, options.html, options.files.paths));
  }
  SkippedFiles skipped(context);
  KIN_TRY_ASSIGN(const GroupsResult result, find_groups(context, options, skipped));
  if (options.html != "-") {
    print_groups(context, result);
    KIN_TRY(write_groups_json(context, result, skipped.count()));
  }
  if (!options.html.empty()) {
    KIN_TRY_ASSIGN(const auto page, OutputFile::open_page(context, options.html, options.files.paths));
    KIN_TRY(page->finish(groups_page(result)));
  }
  return skipped.exit_code();
}

Action define_groups(CLI::App& app) {
  auto options = std::make_shared<GroupsOptions>();
  app.add_option("PATH", options->files.paths, "files and directories to compare")->required();
  add_file_options(app, options->files);
  app.add_flag("--same-suffix", options->pairs.same_suffix, "only files with the same suffix are similar");
  app.add_option("--size-ratio", options->pairs.most_size_ratio,
                 "only files of which one is at most so many times the other")
      ->check(CLI::Range(1.0, 1e9))
      ->check(is_a_number);
  app.add_flag("--overlapping", options->overlapping,
               "a list for each file of all that are like it, as sif does");
  app.add_flag("--interesting", options->interesting, "also the largest sets whose files all share enough");
  app.add_option("--html", options->html, "also write a page with a graph to this file")->check(is_not_empty);
  return [options](Context& context) { return run_groups(context, *options); };
}

}  // namespace

extern const Command kGroups{"groups", "find groups of equal and of similar files", define_groups};

}  // namespace kin::cmd

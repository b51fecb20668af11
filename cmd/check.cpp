#include "store/check.h"

#include "cmd/context.h"
#include "formats/formats.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

struct CheckOptions {
  bool read_data = false, no_heal = false;
  std::string subset;
};

Result<ExitCode> run_check(Context& context, const CheckOptions& options) {
  store::ReadSubset subset;
  if (options.read_data && !options.subset.empty())
    return Error(ErrorCode::invalid_argument, "--read-data and --read-data-subset do not go together");
  if (options.read_data) subset.kind = store::ReadSubset::Kind::all;
  if (!options.subset.empty()) {
    KIN_TRY_ASSIGN(subset, store::parse_read_subset(options.subset));
  }
  KIN_TRY_ASSIGN(const auto repository, open_repository_without_index(context, !options.no_heal));
  store::CheckObserver observer;
  observer.on_problem = [&](const std::string& problem) { context.warn(problem); };
  observer.on_progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
    context.progress(fmt::format("checking {}: {} of {}", what, grouped(done), grouped(total)));
  };
  KIN_TRY_ASSIGN(const store::CheckStats stats,
                 store::check(*repository, formats::all(), subset, observer, context.stop()));
  context.progress("");
  context.print(fmt::format("{} snapshots, {} tree nodes, {} objects, {} packs", grouped(stats.snapshots),
                            grouped(stats.trees), grouped(stats.objects), grouped(stats.packs)));
  if (stats.packs_read > 0)
    context.print(fmt::format("read {} packs, {}", grouped(stats.packs_read), human_bytes(stats.bytes_read)));
  if (stats.containers > 0)
    context.print(fmt::format("put {} container{} together again", grouped(stats.containers),
                              stats.containers == 1 ? "" : "s"));
  if (stats.unindexed_packs > 0) {
    // Where something is missing, it may be in there: a pack that is back after the index was made without
    // it.
    const char* const meaning = stats.problems == 0
                                    ? "of no finished backup; that is no damage"
                                    : "that no index lists: kin repair index may find what is missing there";
    context.print(fmt::format("{} pack{} {}", grouped(stats.unindexed_packs),
                              stats.unindexed_packs == 1 ? "" : "s", meaning));
  }
  if (stats.given_up_packs > 0)
    context.print(counted(stats.given_up_packs, "pack") + " given up, for a prune to remove");
  if (stats.healed_packs > 0)
    context.print(counted(stats.healed_packs, "pack") + " healed from parity; is the disk still good?");
  if (stats.bare_packs > 0)
    context.print(counted(stats.bare_packs, "pack") + " without parity (kin parity add makes it)");
  context.json("summary", {{"num_errors", stats.problems},
                           {"healed_packs", stats.healed_packs},
                           {"bare_packs", stats.bare_packs},
                           {"snapshots", stats.snapshots},
                           {"trees", stats.trees},
                           {"objects", stats.objects},
                           {"packs", stats.packs},
                           {"packs_read", stats.packs_read},
                           {"bytes_read", stats.bytes_read},
                           {"containers", stats.containers},
                           {"unindexed_packs", stats.unindexed_packs},
                           {"given_up_packs", stats.given_up_packs}});
  if (stats.problems == 0) {
    context.print("no problems were found");
    return ExitCode::ok;
  }
  context.warn(fmt::format("{} problem{} found (kin repair saves what can be saved)", grouped(stats.problems),
                           stats.problems == 1 ? " was" : "s were"));
  return ExitCode::corrupt;
}

Action define_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  app.add_flag("--read-data", options->read_data,
               "read every pack, decode every block, put every container together again");
  app.add_option("--read-data-subset", options->subset, "read a part: n/t (the n-th of t), 5%, 2G");
  app.add_flag("--no-heal", options->no_heal, "change nothing, also where parity could heal damage");
  return [options](Context& context) { return run_check(context, *options); };
}

}  // namespace

extern const Command kCheck{"check", "look for damage in the repository", define_check};

}  // namespace kin::cmd

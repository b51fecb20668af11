#include "store/check.h"

#include "cmd/context.h"
#include "formats/formats.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

struct CheckOptions {
  bool read_data = false, no_heal = false;
  std::string subset, duration;
};

std::string ago(std::int64_t seconds) {
  const std::int64_t age = std::max<std::int64_t>(now().seconds - seconds, 0);
  if (age < 2 * 60) return "a moment ago";
  if (age < 2 * 3600) return fmt::format("{} minutes ago", age / 60);
  if (age < 2 * 86400) return fmt::format("{} hours ago", age / 3600);
  return fmt::format("{} days ago", age / 86400);
}

std::string read_text(const store::CheckStats& stats, bool for_a_time) {
  const std::string all =
      for_a_time ? fmt::format("{} of {}", grouped(stats.packs_read), counted(stats.packs_to_read, "pack"))
                 : counted(stats.packs_read, "pack");
  std::string out = fmt::format("read {}, {}", all, human_bytes(stats.bytes_read));
  if (!for_a_time) return out;
  if (stats.packs_never_read > 0)
    return out + fmt::format("; {} not yet read and found sound", grouped(stats.packs_never_read));
  return out + (stats.oldest_check ? "; the oldest check is now of " + ago(*stats.oldest_check) : "");
}

Result<ExitCode> run_check(Context& context, const CheckOptions& options) {
  store::ReadSubset subset;
  if (options.read_data && !options.subset.empty())
    return Error(ErrorCode::invalid_argument, "--read-data and --read-data-subset do not go together");
  if (options.read_data) subset.kind = store::ReadSubset::Kind::all;
  if (!options.subset.empty()) {
    KIN_TRY_ASSIGN(subset, store::parse_read_subset(options.subset));
  }
  if (!options.duration.empty()) {
    if (subset.kind != store::ReadSubset::Kind::none)
      return Error(ErrorCode::invalid_argument,
                   "--max-duration goes neither with --read-data nor with --read-data-subset");
    subset.kind = store::ReadSubset::Kind::oldest;
    KIN_TRY_ASSIGN(subset.seconds, store::parse_duration(options.duration));
  }
  KIN_TRY_ASSIGN(const auto repository,
                 open_repository_without_index(context, options.no_heal ? Healing::none : Healing::on_disk));
  store::CheckObserver observer;
  observer.on_problem = [&](const std::string& problem) { context.warn(problem); };
  observer.on_note = observer.on_problem;
  observer.on_progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
    context.progress(fmt::format("checking {}: {} of {}", what, grouped(done), grouped(total)));
  };
  KIN_TRY_ASSIGN(const store::CheckStats stats,
                 store::check(*repository, formats::all(), subset, observer, context.stop()));
  context.progress("");
  context.print(fmt::format("{} snapshots, {} tree nodes, {} objects, {} packs", grouped(stats.snapshots),
                            grouped(stats.trees), grouped(stats.objects), grouped(stats.packs)));
  if (stats.packs_read > 0) context.print(read_text(stats, subset.kind == store::ReadSubset::Kind::oldest));
  if (stats.chains.longest > 0)
    context.print(fmt::format("the longest chain has {}", counted(stats.chains.longest, "delta")));
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
  Json summary{{"num_errors", stats.problems},
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
               {"given_up_packs", stats.given_up_packs},
               {"lost_forgotten", stats.lost_forgotten},
               {"longest_chain", stats.chains.longest},
               {"chains_with_loops", stats.chains.loops},
               {"chains_too_long", stats.chains.too_long},
               {"missing_bases", stats.chains.missing_bases}};
  if (subset.kind == store::ReadSubset::Kind::oldest) {
    summary["packs_to_read"] = stats.packs_to_read;
    summary["packs_never_read"] = stats.packs_never_read;
    if (stats.oldest_check) summary["oldest_check"] = iso_time({*stats.oldest_check, 0});
  }
  context.json("summary", summary);
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
  app.add_option("--max-duration", options->duration,
                 "read as many packs as fit into this time (30m, 2h), those first that were longest not read")
      ->type_name("DURATION");
  app.add_flag("--no-heal", options->no_heal, "change nothing, also where parity could heal damage");
  return [options](Context& context) { return run_check(context, *options); };
}

}  // namespace

extern const Command kCheck{"check", "look for damage in the repository", define_check};

}  // namespace kin::cmd

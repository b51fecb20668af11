#include "store/repair.h"

#include "cmd/context.h"
#include "lib/base/text.h"

namespace kin::cmd {
namespace {

struct RepairOptions {
  bool dry_run = false;
};

Result<ExitCode> repair_index(Context& context, const RepairOptions&) {
  KIN_TRY_ASSIGN(const auto repository, open_repository_without_index(context));
  KIN_TRY_ASSIGN(const auto stats,
                 repository->rebuild_index([&](const Error& error) { context.warn(error.message()); },
                                           [&](std::size_t done, std::size_t all) {
                                             context.progress(fmt::format("{} of {} packs", done, all));
                                           }));
  context.print(fmt::format("indexed {} objects in {} blocks of {} packs", grouped(stats.objects),
                            grouped(stats.blocks), grouped(stats.packs)));
  context.json("summary", {{"packs", stats.packs},
                           {"blocks", stats.blocks},
                           {"objects", stats.objects},
                           {"damaged_packs", stats.damaged_packs}});
  if (stats.damaged_packs == 0) return ExitCode::ok;
  context.warn(
      fmt::format("{} {} damaged; what can be found in {} is indexed (kin repair packs goes on from here)",
                  counted(stats.damaged_packs, "pack"), stats.damaged_packs == 1 ? "is" : "are",
                  stats.damaged_packs == 1 ? "it" : "them"));
  return ExitCode::corrupt;
}

store::RepairObserver observer_for(Context& context) {
  return {[&](const std::string& text) { context.warn(text); },
          [&](std::string_view doing, std::uint64_t done, std::uint64_t all) {
            context.progress(fmt::format("{}: {} of {}", doing, grouped(done), grouped(all)));
          }};
}

// Two who mend the same would each do it.
template <typename Report>
Result<Report> mend(Context& context, const RepairOptions& options,
                    Result<Report> (*repair)(store::Repository&, bool, const store::RepairObserver&,
                                             const std::stop_token&)) {
  KIN_TRY_ASSIGN(const LockedRepository alone,
                 open_repository_alone(context, options.dry_run ? Healing::in_memory : Healing::on_disk));
  const auto& repository = alone.repository;
  if (!options.dry_run) KIN_TRY(repository->begin_writing(context.stop()));
  const store::RepairObserver observer = observer_for(context);
  KIN_TRY_ASSIGN(const Report report, repair(*repository, options.dry_run, observer, context.stop()));
  context.progress("");
  return report;
}

Result<ExitCode> repair_packs(Context& context, const RepairOptions& options) {
  KIN_TRY_ASSIGN(const store::PackRepair report, mend(context, options, store::repair_packs));
  context.print(fmt::format("read {}, {}: {} damaged, {} missing", counted(report.packs, "pack"),
                            human_bytes(report.bytes), grouped(report.damaged), grouped(report.missing)));
  if (report.healed > 0)
    context.print(fmt::format("{} {}healed from parity", counted(report.healed, "pack"),
                              options.dry_run ? "would be " : ""));
  if (report.saved_blocks + report.lost_blocks > 0)
    context.print(fmt::format("{} in damaged packs {} {}, {} lost", counted(report.saved_blocks, "block"),
                              report.saved_blocks == 1 ? "is sound and" : "are sound and",
                              options.dry_run ? "would be stored again" : "stored again",
                              report.lost_blocks == 0 ? "none" : grouped(report.lost_blocks)));
  if (report.doubled_blocks > 0)
    context.print(fmt::format("{} of damaged packs {} sound in other packs, too",
                              counted(report.doubled_blocks, "block"),
                              report.doubled_blocks == 1 ? "is" : "are"));
  if (report.lost_blocks > 0)
    context.print(
        "a backup of the same files may bring back what is lost; kin repair snapshots takes out what is not");
  context.json("summary", {{"dry_run", options.dry_run},
                           {"packs", report.packs},
                           {"bytes", report.bytes},
                           {"damaged", report.damaged},
                           {"missing", report.missing},
                           {"healed", report.healed},
                           {"saved_blocks", report.saved_blocks},
                           {"doubled_blocks", report.doubled_blocks},
                           {"lost_blocks", report.lost_blocks}});
  return report.lost_blocks > 0 ? ExitCode::incomplete : ExitCode::ok;
}

Result<ExitCode> repair_snapshots(Context& context, const RepairOptions& options) {
  KIN_TRY_ASSIGN(const store::SnapshotRepair report, mend(context, options, store::repair_snapshots));
  const bool dry = options.dry_run;
  const std::uint64_t whole = report.snapshots - report.repaired - report.unreadable;
  context.print(fmt::format("{} {} whole", counted(whole, "snapshot"), whole == 1 ? "is" : "are"));
  if (report.repaired > 0)
    context.print(fmt::format("{} {} replaced by {} without what is lost: {}",
                              counted(report.repaired, "snapshot"), dry ? "would be" : "now",
                              report.repaired == 1 ? "one" : "ones", grouped(report.lost)));
  if (report.unreadable > 0)
    context.print(fmt::format("{} that cannot be read {}", counted(report.unreadable, "snapshot"),
                              dry ? "would be set aside" : "set aside"));
  if (!dry && report.repaired + report.unreadable > 0)
    context.print("the old ones are forgotten; a prune will remove them");
  context.json("summary", {{"dry_run", dry},
                           {"snapshots", report.snapshots},
                           {"repaired", report.repaired},
                           {"unreadable", report.unreadable},
                           {"lost", report.lost}});
  return report.lost + report.unreadable > 0 ? ExitCode::incomplete : ExitCode::ok;
}

Action define_repair(CLI::App& app) {
  using Run = Result<ExitCode> (*)(Context&, const RepairOptions&);
  auto options = std::make_shared<RepairOptions>();
  auto chosen = std::make_shared<Run>(nullptr);
  app.require_subcommand(1);
  const auto sub = [&](const char* name, const char* help, Run run) {
    CLI::App* const command = app.add_subcommand(name, help)->fallthrough();
    command->callback([chosen, run] { *chosen = run; });
    return command;
  };
  sub("index", "make a new index from the packs", repair_index);
  for (CLI::App* const command :
       {sub("packs", "store again what is sound in damaged packs, and give them up", repair_packs),
        sub("snapshots", "replace snapshots of which something is lost by ones without it",
            repair_snapshots)})
    command->add_flag("-n,--dry-run", options->dry_run, "only tell what would be done");
  return [options, chosen](Context& context) { return (*chosen)(context, *options); };
}

}  // namespace

extern const Command kRepair{"repair", "save what can be saved of a damaged repository", define_repair};

}  // namespace kin::cmd

#include "cmd/prune_options.h"
#include "lib/base/text.h"

#include <fmt/core.h>

#include <charconv>

namespace kin::cmd {
namespace {

// "5%", "200M", "unlimited".
void set_most_unused(const std::string& text, store::PruneOptions& options) {
  const auto fail = [] {
    throw CLI::ValidationError("--max-unused", "takes a percentage (5%), a size (200M) or unlimited");
  };
  options.most_unused_share.reset();
  options.most_unused_bytes.reset();
  if (text == "unlimited") return;
  if (!text.ends_with('%')) {
    const auto size = parse_size(text);
    if (!size) fail();
    options.most_unused_bytes = *size;
    return;
  }
  double percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stopped, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stopped != end || !(percent >= 0 && percent < 100)) fail();
  // Of all that is left: what is needless of it, to what is needed.
  options.most_unused_share = percent / (100 - percent);
}

std::string packs_and_bytes(const store::PruneReport::Part& part) {
  return fmt::format("{} ({})", counted(part.packs, "pack"), human_bytes(part.bytes));
}

Json part_json(const store::PruneReport::Part& part) {
  return {{"packs", part.packs}, {"bytes", part.bytes}};
}

void tell_of_bases(Context& context, const store::RebaseReport& report, const store::PruneOptions& options) {
  if (report.kept == 0) return;
  const std::string kept = fmt::format("{} ({}) {} there only as {} of others", counted(report.kept, "block"),
                                       human_bytes(report.kept_bytes), report.kept == 1 ? "is" : "are",
                                       report.kept == 1 ? "the base" : "bases");
  if (!options.rebase) return context.print(kept + " (--rebase: where others do as well, they go)");
  if (report.freed == 0) return context.print(kept + ", and no other base would take less");
  context.print(fmt::format("{}; {} of them ({}) {} needless, as {} that took {} {} {} on other bases{}",
                            kept, grouped(report.freed), human_bytes(report.freed_bytes),
                            options.dry_run ? "would be" : (report.freed == 1 ? "is" : "are"),
                            counted(report.written, "delta"), human_bytes(report.old_bytes),
                            options.dry_run ? "would take" : "now take", human_bytes(report.written_bytes),
                            options.dry_run ? " (which is not counted below)" : ""));
}

void tell(Context& context, const store::PruneReport& report, const PruneChoice& choice) {
  const bool dry = choice.options.dry_run;
  if (report.rewritten.packs > 0)
    context.print(
        dry ? fmt::format("{} are needed in small part and would be written anew",
                          packs_and_bytes(report.rewritten))
            : fmt::format("{} were needed in small part; what is needed of them was written anew, {}",
                          packs_and_bytes(report.rewritten), human_bytes(report.moved_bytes)));
  tell_of_bases(context, report.rebase, choice.options);
  context.print(fmt::format("{} {}", packs_and_bytes(report.removed), dry ? "would be removed" : "removed"));
  if (report.marked.packs > 0)
    context.print(fmt::format("{} {} needless, for a later prune to remove (--now: at once)",
                              packs_and_bytes(report.marked), dry ? "would be marked as" : "marked as"));
  if (report.forgotten_removed > 0)
    context.print(fmt::format("{} {} no longer come back",
                              counted(report.forgotten_removed, "forgotten snapshot"),
                              dry ? "would" : "can"));
  if (report.parity.packs > 0)
    context.print(fmt::format("parity for {} was made anew: {}", counted(report.parity.packs, "pack"),
                              human_bytes(report.parity.file_bytes)));
  if (report.parity_failed) context.warn("parity could not be made anew: " + report.parity_failed->message());
  context.print(fmt::format("{}: {}, of which {} {} needless", dry ? "then left" : "left",
                            packs_and_bytes(report.after),
                            human_bytes(report.unused_bytes + report.marked.bytes), "are"));
  context.json("summary", {{"dry_run", dry},
                           {"generation", report.generation},
                           {"snapshots", report.snapshots},
                           {"before", part_json(report.before)},
                           {"after", part_json(report.after)},
                           {"removed", part_json(report.removed)},
                           {"marked", part_json(report.marked)},
                           {"rewritten", part_json(report.rewritten)},
                           {"moved_bytes", report.moved_bytes},
                           {"base_only_blocks", report.rebase.kept},
                           {"base_only_bytes", report.rebase.kept_bytes},
                           {"rebase_freed_blocks", report.rebase.freed},
                           {"rebase_freed_bytes", report.rebase.freed_bytes},
                           {"rebase_written_blocks", report.rebase.written},
                           {"rebase_old_bytes", report.rebase.old_bytes},
                           {"rebase_written_bytes", report.rebase.written_bytes},
                           {"unused_bytes", report.unused_bytes},
                           {"parity_packs", report.parity.packs},
                           {"forgotten_removed", report.forgotten_removed},
                           {"forgotten_kept", report.forgotten_kept}});
}

Action define_prune(CLI::App& app) {
  auto choice = std::make_shared<PruneChoice>();
  add_prune_options(app, *choice);
  app.add_flag("-n,--dry-run", choice->options.dry_run, "only tell what would be removed");
  return [choice](Context& context) -> Result<ExitCode> {
    KIN_TRY_ASSIGN(
        const LockedRepository alone,
        open_repository_alone(context, choice->options.dry_run ? Healing::in_memory : Healing::on_disk));
    const auto& repository = alone.repository;
    KIN_TRY(run_prune(context, *repository, *choice));
    return ExitCode::ok;
  };
}

}  // namespace

void add_prune_options(CLI::App& app, PruneChoice& choice) {
  app.add_option_function<std::string>(
         "--max-unused", [&choice](const std::string& text) { set_most_unused(text, choice.options); },
         "how much of what is left may be needless: 5%, 200M, unlimited (default 5%)")
      ->type_name("LIMIT");
  app.add_flag("--rebase", choice.options.rebase,
               "give deltas another base where that frees one which no snapshot needs");
  app.add_option("--grace", choice.options.grace,
                 "how many prunes later what is needless is removed (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--now", choice.now,
               "as --grace 0: at once; a backup that runs meanwhile may have to be run again");
}

Result<void> run_prune(Context& context, store::Repository& repository, const PruneChoice& choice) {
  store::PruneOptions options = choice.options;
  if (choice.now) options.grace = 0;
  store::Prune prune(repository, options, [&](std::string_view doing, std::uint64_t done, std::uint64_t all) {
    context.progress(fmt::format("{}: {} of {}", doing, done, all));
  });
  auto report = prune.run(context.stop());
  context.progress("");
  if (!report) return std::move(report).error();
  tell(context, *report, choice);
  return {};
}

extern const Command kPrune{"prune", "remove what no snapshot needs", define_prune};

}  // namespace kin::cmd

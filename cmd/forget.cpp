#include "cmd/prune_options.h"
#include "cmd/snapshot_options.h"
#include "lib/engine/retention.h"
#include "store/block_use.h"

#include <algorithm>

namespace kin::cmd {
namespace {

struct ForgetOptions {
  store::SnapshotFilter filter;
  std::vector<std::string> ids;
  RetentionPolicy policy;
  std::string group_by = "host,paths";
  bool dry_run = false;
  bool prune = false;
  PruneChoice prune_choice;
};

struct Verdict {
  const store::StoredSnapshot* snapshot = nullptr;
  std::vector<std::string> reasons;  // to keep it
  bool stays = false;
};

class Forget {
 public:
  Forget(Context& context, const ForgetOptions& options) : context_(context), options_(options) {}

  Result<ExitCode> run();

 private:
  Result<void> choose_named(store::Repository& repository);
  Result<void> choose_by_policy();
  void show(const std::string& heading, const std::vector<Verdict>& verdicts);
  Result<void> tell_freed(store::Repository& repository, Json& summary);

  Context& context_;
  const ForgetOptions& options_;
  std::vector<store::StoredSnapshot> all_;
  std::vector<SnapshotId> going_;
  std::size_t kept_ = 0;
  bool damaged_ = false;
};

Result<void> Forget::choose_named(store::Repository& repository) {
  std::vector<Verdict> verdicts;
  for (const std::string& text : options_.ids) {
    KIN_TRY_ASSIGN(const store::StoredSnapshot named,
                   store::find_snapshot(repository, text, options_.filter));
    const auto at =
        std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.id == named.id; });
    const bool is_new = std::find(going_.begin(), going_.end(), named.id) == going_.end();
    if (at == all_.end() || !is_new) continue;
    going_.push_back(named.id);
    verdicts.push_back({&*at, {}, false});
  }
  kept_ = all_.size() - going_.size();
  show("", verdicts);
  return {};
}

Result<void> Forget::choose_by_policy() {
  KIN_TRY_ASSIGN(const SnapshotGrouping grouping, parse_snapshot_grouping(options_.group_by));
  std::vector<const store::StoredSnapshot*> admitted;
  std::vector<const Snapshot*> snapshots;
  for (const store::StoredSnapshot& stored : all_) {
    if (!options_.filter.admits(stored.snapshot)) continue;
    admitted.push_back(&stored);
    snapshots.push_back(&stored.snapshot);
  }
  for (const SnapshotGroup& group : group_snapshots(snapshots, grouping)) {
    std::vector<const Snapshot*> members;
    for (const std::size_t at : group.members) members.push_back(snapshots[at]);
    const auto reasons = apply_policy(members, options_.policy, now());
    std::string heading;
    if (grouping.host) heading += " of host " + printable(group.host);
    for (const std::string& path : group.paths) heading += " " + printable(path);
    for (const std::string& tag : group.tags) heading += " #" + printable(tag);
    std::vector<Verdict> verdicts;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      verdicts.push_back({admitted[group.members[i]], reasons[i], !reasons[i].empty()});
      if (verdicts.back().stays) ++kept;
    }
    if (kept == 0)
      return Error(ErrorCode::invalid_argument,
                   fmt::format("that would keep none of the {}{}; nothing was forgotten (name them by their "
                               "ids if that is meant)",
                               counted(members.size(), "snapshot"), heading));
    for (const Verdict& verdict : verdicts)
      if (!verdict.stays) going_.push_back(verdict.snapshot->id);
    kept_ += kept;
    show(heading, verdicts);
  }
  return {};
}

void Forget::show(const std::string& heading, const std::vector<Verdict>& verdicts) {
  if (!heading.empty()) context_.print("snapshots" + heading + ":");
  for (const Verdict& verdict : verdicts) {
    std::string why;
    for (const std::string& reason : verdict.reasons) why += (why.empty() ? "" : ", ") + printable(reason);
    const Snapshot& snapshot = verdict.snapshot->snapshot;
    context_.print(fmt::format("  {}  {}  {}{}", verdict.stays ? "keep  " : "forget",
                               verdict.snapshot->id.short_hex(), local_time(snapshot.time),
                               why.empty() ? "" : "  " + why));
    Json fields = snapshot_json(*verdict.snapshot);
    fields["reasons"] = verdict.reasons;
    context_.json(verdict.stays ? "kept" : "forgotten", std::move(fields));
  }
}

// What those that go need, and no other: to the byte, with what deltas lean on.
Result<void> Forget::tell_freed(store::Repository& repository, Json& summary) {
  KIN_TRY_ASSIGN(store::BlockUse use, store::BlockUse::read(repository, context_.stop()));
  const auto goes = [&](const SnapshotId& id) {
    return std::find(going_.begin(), going_.end(), id) != going_.end();
  };
  for (const store::StoredSnapshot& stored : all_)
    if (!goes(stored.id)) KIN_TRY(use.add(stored.snapshot, context_.stop()));
  const std::uint64_t needed = use.needed().bytes;
  for (const store::StoredSnapshot& stored : all_)
    if (goes(stored.id)) KIN_TRY(use.add(stored.snapshot, context_.stop()));
  const std::uint64_t freed = use.needed().bytes - needed;
  const std::uint64_t unneeded = use.all().bytes - use.needed().bytes;
  summary["freed_bytes"] = freed;
  summary["unneeded_bytes"] = unneeded;
  context_.print(fmt::format("{} of {} ({}) are needed by these alone{}", human_bytes(freed),
                             human_bytes(use.all().bytes), grouped(freed) + " bytes",
                             unneeded > 0 ? fmt::format(", and {} by nothing", human_bytes(unneeded)) : ""));
  return {};
}

Result<ExitCode> Forget::run() {
  if (options_.ids.empty() && options_.policy.is_empty())
    return Error(
        ErrorCode::invalid_argument,
        "nothing says which snapshots are to be kept: give --keep-last, --keep-daily or another rule, "
        "or the ids of those to forget");
  if (!options_.ids.empty() && !options_.policy.is_empty())
    return Error(ErrorCode::invalid_argument, "snapshots are named, or chosen by rules to keep, not both");
  // Two who forget by rules at the same time could each keep what the other forgets.
  KIN_TRY_ASSIGN(const LockedRepository alone, open_repository_alone(context_));
  const auto& repository = alone.repository;
  if (!options_.dry_run) KIN_TRY(repository->require_removable());  // before a list of what goes is shown
  KIN_TRY_ASSIGN(all_, store::load_snapshots(*repository, {}, [&](const Error& error) {
                   context_.warn(error.message());
                   damaged_ = true;
                 }));
  KIN_TRY(options_.ids.empty() ? choose_by_policy() : choose_named(*repository));
  const bool will_prune = options_.prune && !options_.dry_run;
  Json summary{{"kept", kept_}, {"forgotten", going_.size()}, {"dry_run", options_.dry_run}};
  if (options_.dry_run) {
    if (damaged_)
      context_.warn("what would be free cannot be told, since not all snapshots can be read");
    else
      KIN_TRY(tell_freed(*repository, summary));
    context_.print(fmt::format("{} would be forgotten, {} kept", counted(going_.size(), "snapshot"), kept_));
  } else {
    for (const SnapshotId& id : going_) KIN_TRY(repository->forget_snapshot(id));
    context_.print(fmt::format("{} forgotten, {} kept{}", counted(going_.size(), "snapshot"), kept_,
                               going_.empty() || will_prune ? "" : "; kin undelete brings them back"));
  }
  context_.json("summary", std::move(summary));
  // With a snapshot that cannot be read, nobody knows what it needs.
  if (will_prune && !damaged_) KIN_TRY(run_prune(context_, *repository, options_.prune_choice));
  return damaged_ ? ExitCode::corrupt : ExitCode::ok;
}

void add_count(CLI::App& app, const std::string& name, std::uint32_t& count, const std::string& what) {
  app.add_option_function<std::string>(
         name,
         [&count, name](const std::string& text) {
           const bool is_number =
               !text.empty() && text.size() < 9 &&
               std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
           if (text != "all" && !is_number) throw CLI::ValidationError(name, "takes a number, or all");
           count = text == "all" ? RetentionPolicy::kAll : static_cast<std::uint32_t>(std::stoul(text));
         },
         what)
      ->type_name("N");
}

void add_span(CLI::App& app, const std::string& name, CalendarSpan& span, const std::string& what) {
  app.add_option_function<std::string>(
         name,
         [&span, name](const std::string& text) {
           const auto parsed = parse_calendar_span(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error().message());
           span = *parsed;
         },
         what)
      ->type_name("SPAN");
}

Action define_forget(CLI::App& app) {
  auto options = std::make_shared<ForgetOptions>();
  RetentionPolicy& policy = options->policy;
  add_filter_options(app, options->filter);
  add_count(app, "--keep-last", policy.last, "keep the newest N");
  add_count(app, "--keep-hourly", policy.hourly, "keep the newest of each of the last N hours that have one");
  add_count(app, "--keep-daily", policy.daily, "the same of days");
  add_count(app, "--keep-weekly", policy.weekly, "of weeks");
  add_count(app, "--keep-monthly", policy.monthly, "of months");
  add_count(app, "--keep-yearly", policy.yearly, "of years");
  add_span(app, "--keep-within", policy.within, "keep all of the time before the newest (1y5m7d2h)");
  add_span(app, "--keep-within-hourly", policy.within_hourly, "of that time, the newest of each hour");
  add_span(app, "--keep-within-daily", policy.within_daily, "of each day");
  add_span(app, "--keep-within-weekly", policy.within_weekly, "of each week");
  add_span(app, "--keep-within-monthly", policy.within_monthly, "of each month");
  add_span(app, "--keep-within-yearly", policy.within_yearly, "of each year");
  app.add_option("--keep-tag", policy.tags, "keep those with all of these tags (a,b)")
      ->allow_extra_args(false);
  app.add_option("--group-by", options->group_by,
                 "what the rules are applied to one by one: of host,paths,tags")
      ->capture_default_str();
  app.add_flag("-n,--dry-run", options->dry_run, "tell what would go, and what that would free");
  app.add_flag("--prune", options->prune, "then remove what no snapshot needs, as kin prune does");
  add_prune_options(app, options->prune_choice);
  app.add_option("SNAPSHOT", options->ids, "forget these (ids or their first digits)");
  return [options](Context& context) { return Forget(context, *options).run(); };
}

}  // namespace

extern const Command kForget{"forget", "forget snapshots, by name or by rules which to keep", define_forget};

}  // namespace kin::cmd

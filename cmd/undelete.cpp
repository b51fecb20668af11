#include "cmd/snapshot_options.h"
#include "store/block_use.h"

#include <algorithm>

namespace kin::cmd {
namespace {

struct UndeleteOptions {
  std::vector<std::string> ids;
  bool all = false;
};

Result<std::vector<store::StoredSnapshot>> load_forgotten(Context& context, store::Repository& repository,
                                                          bool& damaged) {
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> ids, repository.list_forgotten());
  std::vector<store::StoredSnapshot> out;
  for (const SnapshotId& id : ids) {
    auto snapshot = repository.load_forgotten(id);
    if (snapshot) {
      out.push_back({id, *std::move(snapshot)});
    } else if (snapshot.error().code() != ErrorCode::not_found) {  // else it was brought back since
      context.warn(snapshot.error().message());
      damaged = true;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.snapshot.time < b.snapshot.time; });
  return out;
}

Result<std::vector<store::StoredSnapshot>> choose(const UndeleteOptions& options,
                                                  const std::vector<store::StoredSnapshot>& forgotten) {
  if (options.all) return forgotten;
  std::vector<store::StoredSnapshot> out;
  for (const std::string& text : options.ids) {
    std::vector<const store::StoredSnapshot*> matches;
    for (const store::StoredSnapshot& stored : forgotten)
      if (!text.empty() && stored.id.hex().starts_with(text)) matches.push_back(&stored);
    if (matches.size() != 1)
      return Error(matches.empty() ? ErrorCode::not_found : ErrorCode::invalid_argument,
                   matches.empty() ? "there is no forgotten snapshot " + printable(text)
                                   : "snapshot " + printable(text) + " is not clear: several ids start so");
    out.push_back(*matches.front());
  }
  return out;
}

Result<ExitCode> run_undelete(Context& context, const UndeleteOptions& options) {
  if (options.all && !options.ids.empty())
    return Error(ErrorCode::invalid_argument, "--all does not go with ids");
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const Fd lock, lock_repository(repository_location(context), context.stop()));
  bool damaged = false;
  KIN_TRY_ASSIGN(const auto forgotten, load_forgotten(context, *repository, damaged));
  if (!options.all && options.ids.empty()) {
    for (const store::StoredSnapshot& stored : forgotten) {
      context.print_always(fmt::format("{}  {}  {}", stored.id.short_hex(), local_time(stored.snapshot.time),
                                       printable(stored.snapshot.host)));
      context.json("forgotten", snapshot_json(stored));
    }
    context.print(counted(forgotten.size(), "forgotten snapshot"));
    return damaged ? ExitCode::corrupt : ExitCode::ok;
  }
  KIN_TRY_ASSIGN(const auto chosen, choose(options, forgotten));
  KIN_TRY_ASSIGN(store::BlockUse use, store::BlockUse::read(*repository, context.stop()));
  std::size_t recalled = 0;
  for (const store::StoredSnapshot& stored : chosen) {
    // All that it names must be there: a snapshot that cannot be restored is none.
    if (const auto added = use.add(stored.snapshot, context.stop()); !added) {
      if (added.error().code() == ErrorCode::cancelled) return added.error();
      context.warn(
          fmt::format("snapshot {} stays forgotten: {}", stored.id.short_hex(), added.error().message()));
      damaged = true;
      continue;
    }
    KIN_TRY(repository->recall_snapshot(stored.id));
    context.print(
        fmt::format("snapshot {} of {} is back", stored.id.short_hex(), local_time(stored.snapshot.time)));
    context.json("undeleted", {{"snapshot_id", stored.id.hex()}});
    ++recalled;
  }
  context.print(counted(recalled, "snapshot") + " brought back");
  context.json("summary", {{"undeleted", recalled}});
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Action define_undelete(CLI::App& app) {
  auto options = std::make_shared<UndeleteOptions>();
  app.add_flag("--all", options->all, "all of them");
  app.add_option("SNAPSHOT", options->ids, "these (ids or their first digits); none: list them");
  return [options](Context& context) { return run_undelete(context, *options); };
}

}  // namespace

extern const Command kUndelete{"undelete", "bring back forgotten snapshots", define_undelete};

}  // namespace kin::cmd

#include "cmd/snapshot_options.h"

namespace kin::cmd {
namespace {

struct SnapshotsOptions {
  store::SnapshotFilter filter;
  std::vector<std::string> ids;
  unsigned latest = 0;
};

std::string joined(const std::vector<std::string>& texts, const char* separator) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : separator) + printable(text);
  return out;
}

Result<ExitCode> run_snapshots(Context& context, const SnapshotsOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  bool damaged = false;
  std::vector<store::StoredSnapshot> snapshots;
  if (options.ids.empty()) {
    KIN_TRY_ASSIGN(snapshots, store::load_snapshots(*repository, options.filter, [&](const Error& error) {
                     context.warn(error.message());
                     damaged = true;
                   }));
  }
  for (const std::string& id : options.ids) {
    KIN_TRY_ASSIGN(store::StoredSnapshot snapshot, store::find_snapshot(*repository, id, options.filter));
    snapshots.push_back(std::move(snapshot));
  }
  if (options.latest > 0 && snapshots.size() > options.latest)
    snapshots.erase(snapshots.begin(), snapshots.end() - static_cast<std::ptrdiff_t>(options.latest));

  if (!snapshots.empty())
    context.print_always(fmt::format("{:<8}  {:<19}  {:<12}  {:<12}  {:>12}  {:>12}  {}", "ID", "Time",
                                     "Host", "Tags", "Size", "Added", "Paths"));
  for (const store::StoredSnapshot& stored : snapshots) {
    const Snapshot& snapshot = stored.snapshot;
    context.print_always(fmt::format(
        "{:<8}  {:<19}  {:<12}  {:<12}  {:>12}  {:>12}  {}", stored.id.short_hex(), local_time(snapshot.time),
        printable(snapshot.host), joined(snapshot.tags, ","), human_bytes(snapshot.summary.bytes),
        human_bytes(snapshot.summary.bytes_stored), joined(snapshot.paths, ", ")));
    context.json("snapshot", snapshot_json(stored));
  }
  context.print(fmt::format("{} snapshot{}", snapshots.size(), snapshots.size() == 1 ? "" : "s"));
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Action define_snapshots(CLI::App& app) {
  auto options = std::make_shared<SnapshotsOptions>();
  add_filter_options(app, options->filter);
  app.add_option("--latest", options->latest, "only the newest N");
  app.add_option("SNAPSHOT", options->ids, "only these (ids or their first digits)");
  return [options](Context& context) { return run_snapshots(context, *options); };
}

}  // namespace

extern const Command kSnapshots{"snapshots", "list the snapshots", define_snapshots};

}  // namespace kin::cmd

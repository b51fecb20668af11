#include "cmd/snapshot_options.h"

#include <algorithm>

namespace kin::cmd {
namespace {

struct TagOptions {
  store::SnapshotFilter filter;
  std::vector<std::string> ids, add, remove, set;
};

std::vector<std::string> changed_tags(const TagOptions& options, const std::vector<std::string>& tags) {
  if (!options.set.empty()) return store::split_tags(options.set);
  std::vector<std::string> out = tags;
  out.insert(out.end(), options.add.begin(), options.add.end());
  out = store::split_tags(out);
  const std::vector<std::string> removed = store::split_tags(options.remove);
  std::erase_if(out, [&](const std::string& tag) {
    return std::find(removed.begin(), removed.end(), tag) != removed.end();
  });
  return out;
}

Result<ExitCode> run_tag(Context& context, const TagOptions& options) {
  if (options.set.empty() && options.add.empty() && options.remove.empty())
    return Error(ErrorCode::invalid_argument, "nothing to do: give --add, --remove or --set");
  if (!options.set.empty() && (!options.add.empty() || !options.remove.empty()))
    return Error(ErrorCode::invalid_argument, "--set does not go with --add or --remove");
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  // Two who replace the same snapshot would leave two of it.
  KIN_TRY_ASSIGN(const Fd lock, lock_repository(repository_location(context), context.stop()));
  std::vector<store::StoredSnapshot> snapshots;
  bool damaged = false;
  if (options.ids.empty()) {
    KIN_TRY_ASSIGN(snapshots, store::load_snapshots(*repository, options.filter, [&](const Error& error) {
                     context.warn(error.message());
                     damaged = true;
                   }));
  }
  for (const std::string& id : options.ids) {
    KIN_TRY_ASSIGN(store::StoredSnapshot snapshot, store::find_snapshot(*repository, id, options.filter));
    const bool named_twice = std::any_of(snapshots.begin(), snapshots.end(),
                                         [&](const auto& other) { return other.id == snapshot.id; });
    if (!named_twice) snapshots.push_back(std::move(snapshot));
  }
  std::size_t changed = 0;
  for (store::StoredSnapshot& stored : snapshots) {
    Snapshot copy = stored.snapshot;
    copy.tags = changed_tags(options, copy.tags);
    if (copy.tags == stored.snapshot.tags) continue;
    if (!copy.original) copy.original = stored.id;
    KIN_TRY_ASSIGN(const SnapshotId id, repository->replace_snapshot(stored.id, copy));
    context.print(fmt::format("snapshot {} is now {}", stored.id.short_hex(), id.short_hex()));
    context.json("changed", {{"old_snapshot_id", stored.id.hex()}, {"new_snapshot_id", id.hex()}});
    ++changed;
  }
  context.print(fmt::format("changed the tags of {} snapshot{}", changed, changed == 1 ? "" : "s"));
  context.json("summary", {{"changed_snapshots", changed}});
  return damaged ? ExitCode::corrupt : ExitCode::ok;
}

Action define_tag(CLI::App& app) {
  auto options = std::make_shared<TagOptions>();
  add_filter_options(app, options->filter);
  app.add_option("--add", options->add, "tags to add (a,b)")->allow_extra_args(false);
  app.add_option("--remove", options->remove, "tags to remove")->allow_extra_args(false);
  app.add_option("--set", options->set, "tags to have instead of all others")->allow_extra_args(false);
  app.add_option("SNAPSHOT", options->ids, "only these (ids or their first digits)");
  return [options](Context& context) { return run_tag(context, *options); };
}

}  // namespace

extern const Command kTag{"tag", "change the tags of snapshots", define_tag};

}  // namespace kin::cmd

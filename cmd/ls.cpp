#include "cmd/tree_walk.h"

namespace kin::cmd {
namespace {

struct LsOptions {
  store::SnapshotFilter filter;
  std::string snapshot = "latest";
  std::vector<std::string> paths;
  bool long_lines = false, recursive = false;
};

void show(Context& context, const LsOptions& options, const Node& node, const std::string& path) {
  context.print_always(options.long_lines ? long_line(node, path) : printable(path));
  if (context.options.json) context.json("node", node_json(node, path));
}

Result<ExitCode> run_ls(Context& context, const LsOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const TreePlace top, find_place(*repository, options.snapshot, options.filter));
  std::vector<TreePlace> places;
  for (const std::string& path : options.paths) {
    const std::string text =
        top.snapshot.id.hex() + ":" + top.path + (path.starts_with('/') ? "" : "/") + path;
    KIN_TRY_ASSIGN(TreePlace place, find_place(*repository, text, {}));
    places.push_back(std::move(place));
  }
  if (places.empty()) places.push_back(top);

  const Snapshot& snapshot = top.snapshot.snapshot;
  std::string sources;
  for (const std::string& source : snapshot.paths)
    sources += (sources.empty() ? "" : ", ") + printable(source);
  context.print(fmt::format("snapshot {} of {} at {} by {}@{}:", top.snapshot.id.short_hex(), sources,
                            local_time(snapshot.time), printable(snapshot.user), printable(snapshot.host)));
  context.json("snapshot", snapshot_json(top.snapshot));
  TreeVisitor visitor;
  visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
    show(context, options, node, path);
    KIN_TRY(context.still_heard());
    return options.recursive || options.paths.empty();
  };
  for (const TreePlace& place : places) {
    if (!place.path.empty()) show(context, options, place.node, place.path);
    if (place.node.type == NodeType::directory)
      KIN_TRY(walk_tree(*repository, place.node.subtree, place.path, visitor, context.stop()));
  }
  return ExitCode::ok;
}

Action define_ls(CLI::App& app) {
  auto options = std::make_shared<LsOptions>();
  add_filter_options(app, options->filter);
  app.add_flag("-l,--long", options->long_lines, "mode, user, group, size and time too");
  app.add_flag("-R,--recursive", options->recursive, "with PATHs: also what is deeper in them");
  app.add_option("SNAPSHOT", options->snapshot,
                 "an id, its first digits, or 'latest' (default); with :PATH only what is there");
  app.add_option("PATH", options->paths, "only what is in these directories");
  return [options](Context& context) {
    // No snapshot starts with a '/', so one may leave out "latest".
    if (options->snapshot.starts_with('/'))
      options->paths.insert(options->paths.begin(), std::exchange(options->snapshot, "latest"));
    return run_ls(context, *options);
  };
}

}  // namespace

extern const Command kLs{"ls", "list the files of a snapshot", define_ls};

}  // namespace kin::cmd

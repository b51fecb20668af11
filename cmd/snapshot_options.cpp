#include "cmd/snapshot_options.h"

#include "lib/engine/path_filter.h"
#include "lib/object/tree.h"

namespace kin::cmd {

void add_filter_options(CLI::App& app, store::SnapshotFilter& filter) {
  app.add_option("--host,-H", filter.hosts, "only snapshots of this host")->allow_extra_args(false);
  app.add_option("--tag", filter.tags, "only snapshots with these tags (a,b: both)")->allow_extra_args(false);
  app.add_option("--path", filter.paths, "only snapshots of this path")->allow_extra_args(false);
}

Json snapshot_json(const store::StoredSnapshot& stored) {
  const Snapshot& snapshot = stored.snapshot;
  const SnapshotSummary& summary = snapshot.summary;
  Json out{{"id", stored.id.hex()},
           {"short_id", stored.id.short_hex()},
           {"time", iso_time(snapshot.time)},
           {"hostname", snapshot.host},
           {"username", snapshot.user},
           {"uid", snapshot.uid},
           {"gid", snapshot.gid},
           {"paths", snapshot.paths},
           {"tags", snapshot.tags},
           {"tree", snapshot.tree.hex()},
           {"program_version", snapshot.program_version},
           {"summary",
            {{"files_new", summary.files_new},
             {"files_changed", summary.files_changed},
             {"files_unmodified", summary.files_unmodified},
             {"dirs", summary.directories},
             {"total_files_processed", summary.files},
             {"total_bytes_processed", summary.bytes},
             {"bytes_read", summary.bytes_read},
             {"data_objects", summary.objects_added},
             {"data_added", summary.bytes_added},
             {"data_added_packed", summary.bytes_stored},
             {"skipped", summary.skipped}}}};
  if (snapshot.parent) out["parent"] = snapshot.parent->hex();
  if (snapshot.original) out["original"] = snapshot.original->hex();
  return out;
}

Json node_json(const Node& node, std::string_view path) {
  Json out{{"type", name_of(node.type)},
           {"mode", node.mode},
           {"permissions", mode_text(node)},
           {"uid", node.uid},
           {"gid", node.gid},
           {"user", node.user},
           {"group", node.group},
           {"mtime", iso_time(node.mtime)},
           {"ctime", iso_time(node.ctime)},
           {"inode", node.inode}};
  set_path(out, "name", node.name);
  set_path(out, "path", path);
  if (node.type == NodeType::file) out["size"] = node.size;
  if (node.type == NodeType::symlink) set_path(out, "linktarget", node.target);
  if (node.links > 1) out["links"] = node.links;
  return out;
}

std::string mode_text(const Node& node) {
  static constexpr char kTypes[] = "?-dlpscb";
  std::string out(1, kTypes[static_cast<std::size_t>(node.type)]);
  for (int shift = 6; shift >= 0; shift -= 3) {
    const std::uint32_t bits = node.mode >> shift;
    out += bits & 4 ? 'r' : '-';
    out += bits & 2 ? 'w' : '-';
    out += bits & 1 ? 'x' : '-';
  }
  const auto special = [&](std::uint32_t bit, std::size_t at, char letter) {
    if (node.mode & bit) out[at] = out[at] == 'x' ? letter : static_cast<char>(letter - 32);
  };
  special(04000, 3, 's');
  special(02000, 6, 's');
  special(01000, 9, 't');
  return out;
}

Result<TreePlace> find_place(store::Repository& repository, const std::string& text,
                             const store::SnapshotFilter& filter) {
  const auto [snapshot_text, path_text] = store::split_snapshot_path(text);
  TreePlace place;
  KIN_TRY_ASSIGN(place.snapshot, store::find_snapshot(repository, snapshot_text, filter));
  place.node.type = NodeType::directory;
  place.node.mode = 0755;
  place.node.subtree = place.snapshot.snapshot.tree;
  for (const std::string& name : path_components(path_text)) {
    std::optional<Node> found;
    if (place.node.type == NodeType::directory) {
      KIN_TRY_ASSIGN(found, find_in_tree(repository, place.node.subtree, name));
    }
    if (!found)
      return Error(ErrorCode::not_found, fmt::format("there is no {} in snapshot {}", printable(path_text),
                                                     place.snapshot.id.short_hex()));
    place.path += "/" + name;
    place.node = *std::move(found);
  }
  return place;
}

}  // namespace kin::cmd

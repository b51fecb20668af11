// The options by which several commands choose snapshots, and the JSON and text forms of what they print of
// them.
#pragma once

#include "cmd/context.h"
#include "lib/object/node.h"
#include "store/snapshots.h"

namespace kin::cmd {

void add_filter_options(CLI::App& app, store::SnapshotFilter& filter);

Json snapshot_json(const store::StoredSnapshot& snapshot);
Json node_json(const Node& node, std::string_view path);

// "drwxr-xr-x"
std::string mode_text(const Node& node);

// A snapshot, or a place in one: "latest", "3f9a", "latest:home/u".
struct TreePlace {
  store::StoredSnapshot snapshot;
  std::string path;  // "/" + components, "" for the root
  Node node;         // of the path; for the root a nameless directory
};
Result<TreePlace> find_place(store::Repository& repository, const std::string& text,
                             const store::SnapshotFilter& filter);

}  // namespace kin::cmd

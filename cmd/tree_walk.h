// How ls, find, diff, dump, explain and stats go through the tree of a snapshot, and the line that some of
// them print of an entry.
#pragma once

#include "cmd/snapshot_options.h"
#include "lib/object/tree.h"

#include <stop_token>
#include <string>
#include <vector>

namespace kin::cmd {

struct TreeVisitor {
  // Sees every entry, a directory before what is in it; false skips what is in it. The path is that of the
  // walk's root, "/" and names.
  std::function<Result<bool>(const Node& node, const std::string& path)> enter;
  std::function<void(const Node& directory)> leave = {};  // after all that is in it
  VisitList object = {};                                  // each tree object; false skips it
};

// In order of names. Keeps its own stack, one leaf per level: directories may lie thousands deep. cancelled
// if asked to stop.
inline Result<void> walk_tree(ObjectReader& reader, const ObjectId& root, std::string path,
                              const TreeVisitor& visitor, const std::stop_token& stop) {
  struct Level {
    TreeCursor cursor;
    Node directory;
    std::size_t path_size;
  };
  std::vector<Level> levels;
  const auto descend = [&](const ObjectId& tree, Node directory) {
    levels.push_back({TreeCursor(reader, tree), std::move(directory), path.size()});
    if (visitor.object) levels.back().cursor.on_object(visitor.object);
  };
  descend(root, {});
  while (!levels.empty()) {
    if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    Level& level = levels.back();
    path.resize(level.path_size);
    auto next = level.cursor.next();
    if (!next) return std::move(next).error().context("cannot list " + printable(path.empty() ? "/" : path));
    if (!*next) {
      if (visitor.leave && levels.size() > 1) visitor.leave(level.directory);
      levels.pop_back();
      continue;
    }
    Node node = **std::move(next);
    path += "/" + node.name;
    KIN_TRY_ASSIGN(const bool deeper, visitor.enter(node, path));
    const ObjectId subtree = node.subtree;
    if (deeper && node.type == NodeType::directory) descend(subtree, std::move(node));
  }
  return {};
}

// "-rw-r--r-- user     group         1234 2026-11-16 08:30:00 /path -> target"
inline std::string long_line(const Node& node, std::string_view path) {
  const bool device = node.type == NodeType::character_device || node.type == NodeType::block_device;
  return fmt::format("{} {:<8} {:<8} {:>12} {} {}{}", mode_text(node),
                     node.user.empty() ? std::to_string(node.uid) : printable(node.user),
                     node.group.empty() ? std::to_string(node.gid) : printable(node.group),
                     device ? fmt::format("{}, {}", node.device_number >> 32, node.device_number & 0xffffffff)
                            : std::to_string(node.size),
                     local_time(node.mtime), printable(path),
                     node.type == NodeType::symlink ? " -> " + printable(node.target) : "");
}

}  // namespace kin::cmd

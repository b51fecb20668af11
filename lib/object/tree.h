// Tree: one directory level, as objects. A small directory is one leaf. A large one is many leaves under
// inner nodes, cut where the hash of a name says so: the same entries give the same leaves, and one changed
// entry changes one leaf and the path to it.
#pragma once

#include "lib/object/content.h"
#include "lib/object/node.h"
#include "lib/object/object_store.h"

#include <optional>
#include <string>
#include <vector>

namespace kin {

// Walks recurse, and a hostile tree must get an error instead of a stack overflow. A backup goes this many
// directories below a source, in a thread that may have a stack of 2 MiB only; readers, in the main thread,
// take what is as deep as that below as long a path as there can be.
inline constexpr int kMostDirectoryDepth = 600;
inline constexpr int kMostTreeDepth = 3000;

// Builds a tree from nodes in strictly increasing order of name (as bytes). Holds one unfinished node per
// level. One thread at a time.
class TreeWriter {
 public:
  explicit TreeWriter(StoreObject store) : store_(std::move(store)) {}

  Result<void> add(const Node& node);
  Result<ObjectId> finish();  // once: the root's id

 private:
  struct Level {
    WireWriter entries;
    std::size_t count = 0;
    std::string first_name;
  };

  Result<void> add_entry(std::size_t level, const std::string& name, ByteView entry);
  Result<ObjectId> close_level(std::size_t level);

  StoreObject store_;
  std::vector<Level> levels_;
  std::string last_name_;
};

// Reads a tree's nodes in order, one leaf in memory at a time. The reader must outlive it. One thread at a
// time.
class TreeCursor {
 public:
  TreeCursor(ObjectReader& reader, const ObjectId& root) : reader_(reader) {
    pending_.push_back({root, -1, {}});
  }

  // Sees the id of each tree object before it is loaded; false skips what lies below.
  void on_object(VisitList visit) { visit_ = std::move(visit); }

  // Nothing after the last node.
  Result<std::optional<Node>> next();

 private:
  struct Child {
    ObjectId id;
    int level;  // what it must be; -1 for the root, which may be any
    std::string first_name;
  };
  Result<void> descend();

  ObjectReader& reader_;
  VisitList visit_;
  std::vector<Child> pending_;  // the next one last
  std::vector<Node> leaf_;      // the next one last
  std::string last_name_;
};

// The entry with this name, if there is one.
Result<std::optional<Node>> find_in_tree(ObjectReader& reader, const ObjectId& root, std::string_view name);

}  // namespace kin

// Walker: goes through what a backup should hold, in the order of the tree, and says of each entry whether it
// has to be read.
//
// Directories are held open and their entries reached by name, so that no path is too long. Within a
// directory the order is that of names as bytes; the parent snapshot's tree has the same order, so that
// comparing with it is a merge, not a search.
#pragma once

#include "lib/base/file.h"
#include "lib/engine/node_io.h"
#include "lib/engine/path_filter.h"
#include "lib/object/node.h"
#include "lib/object/tree.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kin {

// A file or directory to back up, and where it goes in the tree (components; empty: its entries are the
// root's).
struct BackupSource {
  std::string path;
  std::vector<std::string> tree_path;
};

struct WalkOptions {
  std::vector<BackupSource> sources;
  PathFilter excludes;
  bool exclude_caches = false;                  // directories with a CACHEDIR.TAG keep only that
  std::vector<std::string> exclude_if_present;  // FILE or FILE:HEADER
  std::optional<std::uint64_t> exclude_larger_than;
  bool one_file_system = false;
  bool attributes = true;  // read the extended ones: a call for each file that only a backup needs
  std::set<std::pair<std::uint64_t, std::uint64_t>>
      never_enter;  // device and inode: the repository itself, the cache
};

using OpenDirectory = std::shared_ptr<const Fd>;

struct WalkEntry {
  enum class Kind {
    enter,  // a directory; its entries follow
    leave,  // end of the directory entered last
    file,   // a regular file; `before` is its node in the parent snapshot
    other,  // complete as it is
  };
  Kind kind = Kind::other;
  Node node;
  std::optional<Node> before;
  OpenDirectory directory;  // in which `disk_name` is found
  std::string disk_name;    // the node's name, unless --as-path gave it another
  std::string path;         // on disk, for messages
  std::string tree_path;    // in the snapshot
};

class Walker {
 public:
  // `emit` gives false to stop.
  using Emit = std::function<bool(WalkEntry entry)>;
  using Skip = std::function<void(const std::string& path, const Error& error)>;

  // `parent` is the tree to compare with, if there is one.
  Walker(const WalkOptions& options, ObjectReader* parent_reader, std::optional<ObjectId> parent, Emit emit,
         Skip skip);

  // not_found if none of the sources is there.
  Result<void> walk();

 private:
  struct PlanNode;

  bool walk_plan(const PlanNode& plan, const std::string& tree_path, std::optional<ObjectId> before);
  bool walk_directory(const OpenDirectory& directory, const std::string& path, const std::string& tree_path,
                      std::optional<ObjectId> before, std::uint64_t device, int depth);
  bool walk_source(const BackupSource& source, const std::string& name, const std::string& tree_path,
                   std::optional<Node> before);
  bool walk_entry(const OpenDirectory& directory, const std::string& disk_name, const std::string& name,
                  const std::string& path, const std::string& tree_path, std::optional<Node> before,
                  std::optional<std::uint64_t> device, int depth);
  WalkEntry directory_above(const PlanNode& plan, const std::string& name, const std::optional<Node>& before);
  bool has_exclusion_marker(const OpenDirectory& directory) const;

  const WalkOptions& options_;
  ObjectReader* const parent_reader_;
  const std::optional<ObjectId> parent_;
  const Emit emit_;
  const Skip skip_;
  OwnerNames names_;
};

}  // namespace kin

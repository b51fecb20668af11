// ImportedTree: entries in any order, as an archive has them, become a tree in order. They are held until the
// last has come, some 200 bytes each and their names; their content is stored by then. One thread at a time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/object/node.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kin {

// Far beyond any archive that was not made to fill the memory.
inline constexpr std::uint64_t kMostImportedEntries = 10'000'000;

class ImportedTree {
 public:
  // All paths are put below `below`, which is empty or such a path. Directories that no entry describes are
  // as `unknown` says.
  ImportedTree(std::string below, Node unknown) : below_(std::move(below)), unknown_(std::move(unknown)) {}

  // The node is complete but for its name, links and inode. Of two entries with one path the later counts.
  // unsupported: too many entries, or too deep.
  Result<void> add(const Node& node, const std::string& path);
  // Another name for an entry that was added, and is no directory; with content, if the node has any, for all
  // its names. False if there is no such entry.
  Result<bool> add_link(const Node& node, const std::string& path, const std::string& target);

  bool empty() const { return items_.empty(); }

  // Entries that are no directories, and are gone: a later one has their path.
  struct Replaced {
    std::uint64_t entries = 0;
    std::string example;  // the path of the first
  };
  const Replaced& replaced() const { return replaced_; }

  struct Visitor {
    std::function<Result<void>(Node directory)> enter;
    std::function<Result<void>(Node node)> add;  // whatever is no directory
    std::function<Result<void>()> leave;
  };
  // In the order of trees. unsupported: an entry lies below one that is no directory.
  Result<void> visit(const Visitor& visitor) const;

 private:
  struct Item {
    std::optional<std::size_t> file;  // of several names
    Bytes node;                       // else
  };

  Result<std::string> key_of(const std::string& path) const;
  Result<void> put(const std::string& key, Item item);

  const std::string below_;
  const Node unknown_;
  // By path, with NUL in the place of '/': no name has one, and none sorts before it. So this is the order of
  // the tree, each directory before what is in it.
  std::map<std::string, Item> items_;
  std::vector<Bytes> files_;  // nodes of files with several names
  Replaced replaced_;
};

}  // namespace kin

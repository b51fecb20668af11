// What kin explain tells of a container: its members, with members within members, as its recipe has them.
#pragma once

#include "cmd/context.h"
#include "lib/object/node.h"
#include "store/repository.h"

#include <string>
#include <vector>

namespace kin::cmd {

struct ContainerMember {
  std::string name;    // empty if the format has none
  std::string coding;  // how it stood there; empty: as it is
  std::string type;    // if it was opened in turn
  std::uint64_t size = 0;
  std::uint64_t corrections = 0;         // bytes
  std::vector<ContainerMember> members;  // the same
};

struct ContainerTree {
  std::string type;
  std::vector<ContainerMember> members;
  // Of all levels.
  std::uint64_t count = 0, literal_bytes = 0, corrections = 0;
};

// Members beyond the first million are counted only. corrupt: a recipe cannot be read.
Result<ContainerTree> container_tree(Context& context, store::Repository& repository,
                                     const Extent& container);

// Up to `most` lines, and how many more there are.
void print_tree(Context& context, const ContainerTree& tree, std::size_t most);
Json tree_json(const ContainerTree& tree);

}  // namespace kin::cmd

// What kin explain tells of a container: its members, with members within members, as its recipe has them.
// They are read once more for each purpose, and never held: there may be millions.
#pragma once

#include "cmd/context.h"
#include "cmd/json_writer.h"
#include "lib/object/node.h"
#include "store/repository.h"

#include <string>

namespace kin::cmd {

struct ContainerTree {
  Extent container;
  std::string type;
  // Of all levels.
  std::uint64_t count = 0, literal_bytes = 0, corrections = 0;
};

// Members beyond the first million are counted only, and those within them not even that. corrupt: a recipe
// cannot be read.
Result<ContainerTree> container_tree(Context& context, store::Repository& repository,
                                     const Extent& container);

// Up to `most` lines, and how many more there are.
Result<void> print_tree(Context& context, store::Repository& repository, const ContainerTree& tree,
                        std::size_t most);
// Its fields, into an object that was begun.
Result<void> write_tree(Context& context, store::Repository& repository, const ContainerTree& tree,
                        JsonWriter& out);

}  // namespace kin::cmd

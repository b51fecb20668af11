// Whether a file on disk has the content that a node says, by reading it.
#pragma once

#include "lib/base/file.h"
#include "lib/engine/block_store.h"
#include "lib/object/node.h"

#include <string>

namespace kin {

// Size, objects and holes of `name` in `directory` against the node; links are not followed. An error if it
// cannot be read, or the node's lists cannot.
Result<bool> has_content(BlockStore& store, const Fd& directory, const std::string& name, const Node& node);

}  // namespace kin

// Whether a file on disk has the content that a node says, by reading it.
#pragma once

#include "lib/base/file.h"
#include "lib/container/container_format.h"
#include "lib/engine/block_store.h"
#include "lib/object/node.h"

#include <stop_token>
#include <string>

namespace kin {

// Size, objects and holes of an open file against the node; `path` is for messages. An error if it cannot be
// read, or the node's lists and containers cannot; cancelled if asked to stop meanwhile.
Result<bool> has_content(BlockStore& store, const Formats& formats, const Fd& file, const std::string& path,
                         const Node& node, const std::stop_token& stop);

}  // namespace kin

// Signatures of what a file's content was, kept as notes of its replica, so that a change of it can be sent
// as a difference (block_delta.h) to whoever still has that.
#pragma once

#include "lib/sync/block_delta.h"
#include "lib/sync/replica.h"

namespace kin::sync {

// The file has this content from now on. Some former ones stay known; two peers may have two of them.
Result<void> note_content(Replica& replica, const ItemId& file, BlockSignature signature);
Result<std::optional<BlockSignature>> former_content(Replica& replica, const ItemId& file,
                                                     const ObjectId& object);
void forget_contents(Replica& replica, const ItemId& file);

}  // namespace kin::sync

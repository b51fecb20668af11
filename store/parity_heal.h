// Heals packs from a parity file. All other packs of the file are read, one at a time; what is found of the
// damaged ones is used, also where bytes are missing in front of it and it has moved. A pack counts as healed
// when its bytes hash to its name.
//
// Memory: the parity and as much again at most of what is healed, a pack, 8 bytes for each sector of the set
// (twice if the parity file was cut), and up to 24 for each of the damaged packs'.
#pragma once

#include "store/parity_file.h"

#include <functional>
#include <set>
#include <stop_token>

namespace kin::store {

// Keeps a pack that was healed, or puts it back.
using TakePack = std::function<Result<void>(const ObjectId& pack, Bytes bytes)>;

// Gives to `take` what can be healed of the file's packs that are wanted: one that a prune has removed is
// missing, too, and is not. Those that are damaged and cannot be healed are the result, wanted or not.
Result<std::set<ObjectId>> heal_from_parity(const ParityPlace& place, const ParityFile& file,
                                            const std::function<bool(const ObjectId& pack)>& is_wanted,
                                            const TakePack& take, const std::stop_token& stop);

}  // namespace kin::store

// A file's content as extents. A node holds up to kInlineExtents of them itself; beyond that they go into
// list objects of up to kListExtents each, and lists of lists, so that a node stays small for a file of any
// size.
#pragma once

#include "lib/object/node.h"
#include "lib/object/object_store.h"

#include <functional>
#include <span>
#include <vector>

namespace kin {

inline constexpr std::size_t kInlineExtents = 16;
inline constexpr std::size_t kListExtents = 4096;

using StoreObject = std::function<Result<ObjectId>(ObjectKind kind, Bytes bytes)>;

// Extents as a node should hold them; lists that this needs are stored by `store`.
Result<std::vector<Extent>> fold_extents(std::vector<Extent> extents, const StoreObject& store);

// A list object, and its extents.
Bytes encode_list(std::span<const Extent> extents);
Result<std::vector<Extent>> load_list(ObjectReader& reader, const Extent& list);

// Calls `visit` for each data extent, container and hole, in order, with its offset in the file. Lists are
// loaded one at a time. `visit_list`, if given, sees the id of each list object before it is loaded; false
// skips it.
using VisitExtent = std::function<Result<void>(const Extent& extent, std::uint64_t offset)>;
using VisitList = std::function<bool(const ObjectId& id)>;
Result<void> for_each_extent(ObjectReader& reader, const std::vector<Extent>& extents,
                             const VisitExtent& visit, const VisitList& visit_list = {});

}  // namespace kin

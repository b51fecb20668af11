// CopiedIds: what objects of one repository are in another. Ids have a key that is each repository's own, so
// the same bytes have two; and what names others (trees, lists, recipes) has other bytes there.
//
// Some 100 bytes for each object. Whole ids are compared: a mistake here would be wrong content in a copy.
#pragma once

#include "lib/object/object_id.h"

#include <optional>
#include <unordered_map>

namespace kin::store {

// Of lists of extents that hold others; in a deeper one something is wrong.
inline constexpr int kMostListLevels = 8;

class IdMap {
 public:
  std::optional<ObjectId> find(const ObjectId& id) const {
    const auto at = ids_.find(id);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }
  void add(const ObjectId& id, const ObjectId& there) { ids_.insert_or_assign(id, there); }

 private:
  std::unordered_map<ObjectId, ObjectId, ObjectIdHash> ids_;
};

// By what an object is for: the same bytes may be a tree to one and a file's content to another.
struct CopiedIds {
  IdMap content, trees, lists, recipes;
};

}  // namespace kin::store

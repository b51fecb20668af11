// MemoryObjects: objects in a map, for tests of what is built from objects. Thread-safe to read once all are
// stored.
#pragma once

#include "lib/object/content.h"
#include "lib/object/object_store.h"

#include <map>
#include <memory>
#include <utility>

namespace kin::testing {

class MemoryObjects : public ObjectReader {
 public:
  ObjectId store(Bytes bytes) {
    const ObjectId id{hash(bytes)};
    objects_.insert_or_assign(id, std::make_shared<const Bytes>(std::move(bytes)));
    return id;
  }

  // For TreeWriter and fold_extents; this must outlive it.
  StoreObject storer() {
    return [this](ObjectKind, Bytes bytes) -> Result<ObjectId> { return store(std::move(bytes)); };
  }

  Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) override {
    const auto at = objects_.find(id);
    if (at == objects_.end()) return Error(ErrorCode::corrupt, "object " + id.short_hex() + " is missing");
    return at->second;
  }
  Result<bool> contains(const ObjectId& id) override { return objects_.contains(id); }

  void remove(const ObjectId& id) { objects_.erase(id); }
  const std::map<ObjectId, std::shared_ptr<const Bytes>>& all() const { return objects_; }

 private:
  std::map<ObjectId, std::shared_ptr<const Bytes>> objects_;
};

}  // namespace kin::testing

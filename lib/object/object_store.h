// What the engines need from the place where objects live. store/Repository is the real one.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/object/object_id.h"

#include <memory>
#include <span>

namespace kin {

// Written to disk; no number is ever reused.
enum class ObjectKind : std::uint8_t {
  data = 1,    // content, or a segment of it
  tree = 2,    // a node of a Tree
  list = 3,    // a list of extents
  group = 4,   // the whole content of a group, so that it can be a base
  recipe = 5,  // how a container goes together again
};

// Trees and lists are kept in packs of their own: a walk over a snapshot reads those packs and no others.
inline bool is_metadata(ObjectKind kind) { return kind == ObjectKind::tree || kind == ObjectKind::list; }

// Thread-safe.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;

  // The object's bytes, checked against its id.
  virtual Result<std::shared_ptr<const Bytes>> load(const ObjectId& id) = 0;
  virtual Result<bool> contains(const ObjectId& id) = 0;
};

}  // namespace kin

// CopyLesson: learns from a snapshot and its earlier copy which objects are the same, by walking both trees
// side by side. So the next copy need not read again what the last one has taken along: without this, ids
// with another key could only be found by reading all content.
//
// What differs, cannot be read, or is missing on either side is not learned, and then is copied again. One
// thread at a time.
#pragma once

#include "lib/object/tree.h"
#include "store/copied_ids.h"
#include "store/repository.h"

#include <stop_token>
#include <vector>

namespace kin::store {

class CopyLesson {
 public:
  CopyLesson(Repository& source, Repository& target, CopiedIds& ids, std::stop_token stop)
      : source_(source), target_(target), ids_(ids), stop_(std::move(stop)) {}

  // Gives whether all of the tree is known now. The only error is an interruption.
  Result<bool> learn(const ObjectId& tree, const ObjectId& copy) { return learn_tree(tree, copy, 0); }

 private:
  using Extents = std::vector<Extent>;

  Result<bool> learn_tree(const ObjectId& tree, const ObjectId& copy, int depth);
  bool learn_extents(const Extents& extents, const Extents& copies, int containers, int lists);
  bool learn_extent(const Extent& extent, const Extent& copy, int containers, int lists);
  bool learn_recipe(const Extent& container, const Extent& copy, int containers);
  bool is_there(const ObjectId& copy);

  Repository& source_;
  Repository& target_;
  CopiedIds& ids_;
  const std::stop_token stop_;
};

}  // namespace kin::store

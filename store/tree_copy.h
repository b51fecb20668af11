// TreeCopy: a snapshot's tree, made anew for another repository. All that names objects by their ids is
// written anew: trees, lists of extents and the recipes of containers. Content goes by way of BlockCopy.
//
// First the content that is not there is gathered, a window of it at a time, and copied in the order in which
// it lies in the source: each block is read once, forwards. Then the trees are written, from the leaves up.
//
// One thread at a time.
#pragma once

#include "lib/object/tree.h"
#include "store/block_copy.h"
#include "store/short_id.h"

#include <functional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

namespace kin::store {

class TreeCopy {
 public:
  TreeCopy(Repository& source, BlockCopy& blocks, CopiedIds& ids, std::function<void()> on_progress,
           std::stop_token stop)
      : source_(source),
        blocks_(blocks),
        ids_(ids),
        on_progress_(std::move(on_progress)),
        stop_(std::move(stop)) {}

  // The tree's id in the target. Where it fails, failed_in_source() says whether that is for damage of the
  // source; then the error begins with the path, and another tree may do better.
  Result<ObjectId> copy(const ObjectId& tree);
  bool failed_in_source() const { return failed_in_source_; }

 private:
  struct Wanted {
    BlockRef block;
    ObjectId id;
  };

  Result<void> gather_tree(const ObjectId& tree, int depth);
  Result<void> gather(const std::vector<Extent>& extents, int containers, int lists);
  Result<void> fetch();
  Result<ObjectId> copy_tree(const ObjectId& tree, int depth);
  Result<void> copy_extents(std::vector<Extent>& extents, int containers, int lists);
  Result<ObjectId> copy_content(const ObjectId& id);
  Result<ObjectId> copy_list(const Extent& list, int containers, int lists);
  Result<ObjectId> copy_recipe(const Extent& container, int containers);
  Result<void> check_stop() const;
  // Notes that what failed is the source.
  template <typename T>
  Result<T> read(Result<T> from_source) {
    if (!from_source && from_source.error().code() != ErrorCode::cancelled) failed_in_source_ = true;
    return from_source;
  }

  Repository& source_;
  BlockCopy& blocks_;
  CopiedIds& ids_;
  const std::function<void()> on_progress_;
  const std::stop_token stop_;
  bool failed_in_source_ = false;
  std::vector<Wanted> window_;
  std::unordered_set<ShortId, ShortIdHash> gathered_;  // trees, lists and recipes
};

}  // namespace kin::store

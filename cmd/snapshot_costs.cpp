#include "cmd/snapshot_costs.h"

#include "cmd/tree_walk.h"
#include "lib/container/content_source.h"
#include "store/object_storage.h"

#include <algorithm>
#include <utility>

namespace kin::cmd {
namespace {

std::uint32_t share(const store::Location& location) {
  return static_cast<std::uint32_t>(
      store::share_of(location.size, location.range.size, location.content_size));
}

}  // namespace

Result<bool> SnapshotCosts::meet(const ObjectId& id, bool is_metadata) {
  const auto here = static_cast<Owner>(rows_.size() - 1);
  const auto [at, is_new] = met_.try_emplace(id);
  Met& met = at->second;
  if (!is_new) {
    // What it leads to has been met with it, by this snapshot or by two others: unless one of them could not
    // be read whole, for then this one may miss the same.
    if (met.owner == here) return false;
    if (met.owner == kSeveral) return any_failed_ && entered_.insert(id).second;
    met.owner = kSeveral;
    return true;
  }
  auto found = store::require_location(repository_, id);
  if (!found) {
    met_.erase(at);  // whoever needs it too is to be told as well
    return std::move(found).error();
  }
  const store::Location location = *std::move(found);
  met = {here, kNone, share(location), location.size};
  Row& row = rows_.back();
  row.added.add(met.content, met.stored);
  if (is_metadata) row.metadata.add(met.content, met.stored);
  if (location.base) {
    row.deltas.add(met.content, met.stored);
    bases_.emplace(id, *location.base);
  }
  return true;
}

// Of a container, what the file has in its place is new or not, however large its members are.
Result<void> SnapshotCosts::meet_content(const Node& file) {
  std::optional<Error> failed;
  const auto visit = [&](const Extent& extent, std::uint64_t) -> Result<void> {
    if (extent.kind == Extent::Kind::hole) return {};
    if (!met_.contains(extent.id)) rows_.back().new_file_bytes += extent.size;
    return for_each_object(repository_, {extent}, [&](const Extent& object) {
      return meet(object.id, object.kind != Extent::Kind::data);
    });
  };
  const auto visit_list = [&](const ObjectId& id) {
    auto deeper = meet(id, true);
    if (deeper) return *deeper;
    failed = std::move(deeper).error();
    return false;
  };
  KIN_TRY(for_each_extent(repository_, file.content, visit, visit_list));
  if (failed) return *std::move(failed);
  return {};
}

Result<void> SnapshotCosts::add(const Snapshot& snapshot, const std::stop_token& stop) {
  rows_.emplace_back();
  entered_.clear();
  auto walked = walk(snapshot, stop);
  any_failed_ = any_failed_ || !walked;
  return walked;
}

Result<void> SnapshotCosts::walk(const Snapshot& snapshot, const std::stop_token& stop) {
  std::optional<Error> failed;
  TreeVisitor visitor;
  visitor.object = [&](const ObjectId& id) {
    auto deeper = meet(id, true);
    if (deeper) return *deeper;
    if (!failed) failed = std::move(deeper).error();
    return false;
  };
  visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
    if (node.type != NodeType::file) return true;
    if (auto met = meet_content(node); !met) return std::move(met).error().context(printable(path));
    return true;
  };
  KIN_TRY(walk_tree(repository_, snapshot.tree, "", visitor, stop));
  if (failed) return *std::move(failed);
  return {};
}

Result<void> SnapshotCosts::lean(const ObjectId& delta, Owner owner) {
  unsigned steps = 0;
  for (auto next = bases_.find(delta); next != bases_.end();) {
    const ObjectId base = next->second;
    if (++steps > store::kMostChain)
      return Error(ErrorCode::corrupt,
                   fmt::format("object {}: the chain of bases is too long or has a loop", delta.short_hex()));
    const auto [at, is_new] = met_.try_emplace(base);
    Met& met = at->second;
    met.as_base = join(met.as_base, owner);
    if (is_new) {
      KIN_TRY_ASSIGN(const store::Location location, store::require_location(repository_, base));
      met.stored = share(location);
      met.content = location.size;
      bases_only_.add(met.content, met.stored);
      if (location.base) bases_.emplace(base, *location.base);
    }
    next = bases_.find(base);
  }
  return {};
}

Result<void> SnapshotCosts::finish() {
  std::vector<std::pair<ObjectId, Owner>> deltas;  // met by snapshots; bases that only are bases come now
  for (const auto& [id, base] : bases_) deltas.emplace_back(id, met_.at(id).owner);
  for (const auto& [id, owner] : deltas) KIN_TRY(lean(id, owner));
  for (const auto& [id, met] : met_) {
    const Owner needed_by = join(met.owner, met.as_base);
    if (needed_by < rows_.size()) rows_[needed_by].frees.add(met.content, met.stored);
  }
  return {};
}

}  // namespace kin::cmd

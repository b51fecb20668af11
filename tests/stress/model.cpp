#include "tests/stress/model.h"

#include "lib/object/content.h"
#include "lib/object/tree.h"

#include <set>

namespace kin::testing {
namespace {

Result<void> restore_tree(store::Repository& repository, const ObjectId& tree, const std::string& where,
                          ContentHashes& out) {
  TreeCursor cursor(repository, tree);
  for (;;) {
    KIN_TRY_ASSIGN(const std::optional<Node> node, cursor.next());
    if (!node) return {};
    if (node->type == NodeType::directory) {
      KIN_TRY(restore_tree(repository, node->subtree, where + node->name + "/", out));
      continue;
    }
    Bytes content;
    KIN_TRY(
        for_each_extent(repository, node->content, [&](const Extent& extent, std::uint64_t) -> Result<void> {
          KIN_TRY_ASSIGN(const auto bytes, repository.load(extent.id));
          append(content, *bytes);
          return {};
        }));
    out[where + node->name] = hash(content);
  }
}

}  // namespace

ContentHashes hashes_of(const FileContents& files) {
  ContentHashes out;
  for (const auto& [path, bytes] : files) out[path] = hash(bytes);
  return out;
}

Result<ContentHashes> restore_all(store::Repository& repository, const ObjectId& tree) {
  ContentHashes out;
  KIN_TRY(restore_tree(repository, tree, "", out));
  return out;
}

const ContentHashes* Model::content(const std::string& label) const {
  const auto at = contents_.find(label);
  return at == contents_.end() ? nullptr : &at->second;
}

std::optional<SnapshotId> Model::take(Random& random, Where where) {
  std::vector<SnapshotId> ids;
  for (const auto& [id, known] : snapshots_)
    if (known.where == where && !known.is_taken) ids.push_back(id);
  if (ids.empty()) return std::nullopt;
  const SnapshotId id = ids[random.below(ids.size())];
  snapshots_[id].is_taken = true;
  return id;
}

std::size_t Model::count(Where where) const {
  std::size_t out = 0;
  for (const auto& [id, known] : snapshots_) out += known.where == where;
  return out;
}

Result<void> Model::look_at(store::Repository& repository, const SnapshotId& id,
                            std::vector<std::string>& wrong) {
  KIN_TRY_ASSIGN(const Snapshot snapshot, repository.load_snapshot(id));
  const ContentHashes* const expected = content(snapshot.host);
  if (expected == nullptr) {
    wrong.push_back("snapshot " + id.short_hex() + " was made by nobody");
    return {};
  }
  const bool is_new = !snapshots_.contains(id);
  Known& known = snapshots_[id];
  known.label = snapshot.host;
  known.may_be_broken |= is_new;
  auto restored = restore_all(repository, snapshot.tree);
  if (!restored && known.may_be_broken) {
    ++left_broken_;
    snapshots_.erase(id);
    return repository.remove_snapshot(id);
  }
  if (!restored)
    wrong.push_back("snapshot " + id.short_hex() + " of " + snapshot.host + ": " +
                    restored.error().message());
  else if (*restored != *expected)
    wrong.push_back("snapshot " + id.short_hex() + " of " + snapshot.host + " has other content");
  known.where = Where::listed;
  known.may_be_broken = false;
  return {};
}

std::vector<std::string> Model::compare(store::Repository& repository) {
  std::vector<std::string> wrong;
  const auto listed = repository.list_snapshots();
  const auto forgotten = repository.list_forgotten();
  if (!listed || !forgotten) return {"snapshots cannot be listed"};
  const std::set<SnapshotId> there(listed->begin(), listed->end()),
      aside(forgotten->begin(), forgotten->end());
  for (auto at = snapshots_.begin(); at != snapshots_.end();) {
    auto& [id, known] = *at;
    known.is_taken = false;
    if (known.where == Where::listed && !there.contains(id))
      wrong.push_back("snapshot " + id.short_hex() + " of " + known.label + " is gone");
    if (known.where == Where::forgotten && !aside.contains(id) && prunes_begun == known.prunes_before)
      wrong.push_back("forgotten snapshot " + id.short_hex() + " is gone, and nothing was pruned");
    if (!there.contains(id) && aside.contains(id)) {
      if (known.where != Where::forgotten) known.prunes_before = 0;
      known.where = Where::forgotten;
    }
    at = there.contains(id) || aside.contains(id) ? std::next(at) : snapshots_.erase(at);
  }
  for (const SnapshotId& id : *listed)
    if (auto looked = look_at(repository, id, wrong); !looked)
      wrong.push_back("snapshot " + id.short_hex() + ": " + looked.error().message());
  return wrong;
}

}  // namespace kin::testing

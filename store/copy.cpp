#include "store/copy.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace kin::store {
namespace {

// Of all its copies, here and elsewhere, with whatever tags.
SnapshotId origin_of(const StoredSnapshot& stored) { return stored.snapshot.original.value_or(stored.id); }

// What a copy has in common with its original, whatever the key of the repository. What was repaired, and so
// has lost something, is not what it was.
Bytes identity_of(Snapshot snapshot) {
  snapshot.tags.clear();
  snapshot.parent.reset();
  snapshot.original.reset();
  snapshot.tree = {};
  return encode_snapshot(snapshot);
}

}  // namespace

Result<void> Copy::begin(const std::vector<StoredSnapshot>& snapshots) {
  if (source_.config().repository_id == target_.config().repository_id)
    return Error(ErrorCode::invalid_argument,
                 "source and target are the same repository (or one has the other's files)");
  KIN_TRY_ASSIGN(std::vector<StoredSnapshot> present, load_snapshots(target_, {}, observer_.on_damage));
  std::multimap<SnapshotId, const StoredSnapshot*> by_origin;
  for (const StoredSnapshot& stored : present) by_origin.emplace(origin_of(stored), &stored);
  const auto find_copy = [&](const StoredSnapshot& stored) -> const StoredSnapshot* {
    const auto [begin, end] = by_origin.equal_range(origin_of(stored));
    const Bytes identity = identity_of(stored.snapshot);
    for (auto at = begin; at != end; ++at)
      if (identity_of(at->second->snapshot) == identity) return at->second;
    return nullptr;
  };
  // Also those that were not asked for: there is something to learn from them.
  KIN_TRY_ASSIGN(std::vector<StoredSnapshot> all, load_snapshots(source_, {}, [](const Error&) {}));
  for (StoredSnapshot& stored : all)
    if (const StoredSnapshot* const copy = find_copy(stored)) {
      copies_.emplace(stored.id, copy->id);
      there_.push_back({std::move(stored), *copy});
    }
  for (const StoredSnapshot& stored : snapshots) {
    const auto copy = copies_.find(stored.id);
    if (copy == copies_.end()) {
      left_.push_back(stored);
      continue;
    }
    ++report_.there;
    observer_.on_there(stored, copy->second);
  }
  return {};
}

Result<CopyReport> Copy::rehearse(const std::vector<StoredSnapshot>& snapshots, const std::stop_token& stop) {
  KIN_TRY(begin(snapshots));
  if (left_.empty()) return report_;
  KIN_TRY_ASSIGN(use_, BlockUse::read(source_, stop));
  const auto add = [&](const StoredSnapshot& stored) -> Result<std::optional<Error>> {
    auto added = use_->add(stored.snapshot, stop);
    if (added) return std::optional<Error>();
    if (added.error().code() == ErrorCode::cancelled) return std::move(added).error();
    return std::optional(added.error());
  };
  for (const Pair& pair : there_) KIN_TRY(add(pair.snapshot));
  const std::uint64_t there = use_->needed().bytes;
  for (const StoredSnapshot& stored : left_) {
    KIN_TRY_ASSIGN(const std::optional<Error> fault, add(stored));
    ++(fault ? report_.left_out : report_.copied);
    if (fault) observer_.on_left_out(stored, *fault);
  }
  report_.content.read_bytes = use_->needed().bytes - there;
  return report_;
}

Result<CopyReport> Copy::run(const std::vector<StoredSnapshot>& snapshots, const std::stop_token& stop) {
  KIN_TRY(target_.require_writable());
  KIN_TRY(begin(snapshots));
  if (left_.empty()) return report_;
  KIN_TRY(target_.begin_writing(stop));
  auto copied = copy_all(stop);
  if (!copied) {
    // What is stored by now need not be stored again. If that fails too, the first reason is the better one.
    if (blocks_->flush()) static_cast<void>(target_.flush());
    return std::move(copied).error();
  }
  report_.content = blocks_->copied();
  return report_;
}

Result<void> Copy::copy_all(const std::stop_token& stop) {
  blocks_.emplace(source_, target_, ids_, [this](const ObjectId& id) { return use_->is_content(id); });
  KIN_TRY_ASSIGN(use_, BlockUse::read(source_, stop));
  for (const StoredSnapshot& stored : left_) {
    // What it lacks is met again, and told, when it is copied.
    if (const auto added = use_->add(stored.snapshot, stop);
        !added && added.error().code() == ErrorCode::cancelled)
      return added.error();
  }
  TreeCopy trees(
      source_, *blocks_, ids_, [this] { tell_progress(at_); }, stop);
  CopyLesson lesson(source_, target_, ids_, stop);
  for (const StoredSnapshot& stored : left_) {
    tell_progress(++at_);
    KIN_TRY(learn_for(lesson, stored.snapshot));
    KIN_TRY(copy_one(trees, stored));
  }
  return {};
}

// From the snapshot that has most in common with it: the newest one before it of the same host and paths. If
// packs of the target are lost, nothing is learned, so that what was in them is stored again.
Result<void> Copy::learn_for(CopyLesson& lesson, const Snapshot& snapshot) {
  if (!target_.lost_packs().empty()) return {};
  const Pair* best = nullptr;
  const auto rank = [&](const Pair& pair) {
    const Snapshot& other = pair.snapshot.snapshot;
    return std::tuple(other.host == snapshot.host && other.paths == snapshot.paths,
                      other.time < snapshot.time, other.time);
  };
  for (const Pair& pair : there_)
    if (best == nullptr || rank(*best) < rank(pair)) best = &pair;
  if (best == nullptr || !learned_from_.insert(best->snapshot.id).second) return {};
  KIN_TRY(lesson.learn(best->snapshot.snapshot.tree, best->copy.snapshot.tree));
  return {};
}

Result<void> Copy::copy_one(TreeCopy& trees, const StoredSnapshot& stored) {
  auto tree = trees.copy(stored.snapshot.tree);
  if (!tree && !trees.failed_in_source()) return std::move(tree).error();
  if (!tree) {
    ++report_.left_out;
    observer_.on_left_out(stored, tree.error());
    return {};
  }
  KIN_TRY(blocks_->flush());
  Snapshot copy = stored.snapshot;
  copy.tree = *tree;
  copy.original = origin_of(stored);
  if (copy.parent) {
    const auto parent = copies_.find(*copy.parent);
    copy.parent = parent == copies_.end() ? std::nullopt : std::optional(parent->second);
  }
  KIN_TRY_ASSIGN(const SnapshotId id, target_.commit(copy));
  copies_[stored.id] = id;
  ++report_.copied;
  observer_.on_copied(stored, id);
  return {};
}

void Copy::tell_progress(std::uint64_t at) {
  observer_.on_progress({at, left_.size(), blocks_->copied(), use_->needed().bytes});
}

}  // namespace kin::store

// Two repositories with different keys, the one to be copied into the other, and trees that are made by hand:
// for tests of what copies take along.
#pragma once

#include "lib/object/tree.h"
#include "store/copy.h"
#include "tests/support/random_bytes.h"
#include "tests/support/test_repository.h"

#include <algorithm>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace kin::testing {

using NamedContents = std::map<std::string, Bytes>;

// A file whose content is this one object.
inline Node file_of(const std::string& name, const ObjectId& id, std::uint64_t size) {
  Node node;
  node.name = name;
  node.size = size;
  node.content = {{Extent::Kind::data, size, id}};
  return node;
}

// A snapshot of these nodes, in the order of their names.
inline Result<SnapshotId> commit_nodes(store::Repository& repository, const std::vector<Node>& nodes,
                                       std::int64_t seconds) {
  TreeWriter tree([&](ObjectKind kind, const Bytes& bytes) { return store_object(repository, bytes, kind); });
  for (const Node& node : nodes) KIN_TRY(tree.add(node));
  Snapshot snapshot = snapshot_named("host");
  snapshot.time.seconds = seconds;
  snapshot.paths = {"/home"};
  snapshot.summary.files = nodes.size();
  KIN_TRY_ASSIGN(snapshot.tree, tree.finish());
  return repository.commit(snapshot);
}

// Each file a block of its own.
inline SnapshotId commit_files(FaultyDisk& disk, const NamedContents& files, std::int64_t seconds) {
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  std::vector<Node> nodes;
  for (const auto& [name, bytes] : files)
    nodes.push_back(file_of(name, value_of(store_object(*repository, bytes)), bytes.size()));
  return value_of(commit_nodes(*repository, nodes, seconds));
}

struct CopyOutcome {
  std::vector<SnapshotId> copied, there, left_out;  // by their ids in the source
  std::vector<SnapshotId> copies;
  std::vector<std::string> faults;
};

// All snapshots, or these. `outcome` is also there where it fails.
inline Result<store::CopyReport> copy_all(store::Repository& source, store::Repository& target,
                                          CopyOutcome* outcome = nullptr,
                                          const std::vector<SnapshotId>& only = {}, bool dry_run = false,
                                          std::stop_source* stop_after_one = nullptr) {
  CopyOutcome own;
  CopyOutcome& out = outcome == nullptr ? own : *outcome;
  store::CopyObserver observer;
  observer.on_copied = [&](const store::StoredSnapshot& stored, const SnapshotId& copy) {
    out.copied.push_back(stored.id);
    out.copies.push_back(copy);
    if (stop_after_one != nullptr) stop_after_one->request_stop();
  };
  observer.on_there = [&](const store::StoredSnapshot& stored, const SnapshotId&) {
    out.there.push_back(stored.id);
  };
  observer.on_left_out = [&](const store::StoredSnapshot& stored, const Error& why) {
    out.left_out.push_back(stored.id);
    out.faults.push_back(why.message());
  };
  observer.on_damage = [&](const Error& error) { out.faults.push_back(error.message()); };
  observer.on_progress = [](const store::CopyProgress&) {};
  KIN_TRY_ASSIGN(std::vector<store::StoredSnapshot> snapshots, store::load_snapshots(source, {}));
  if (!only.empty())
    std::erase_if(snapshots, [&](const store::StoredSnapshot& stored) {
      return std::find(only.begin(), only.end(), stored.id) == only.end();
    });
  store::Copy copy(source, target, observer);
  const std::stop_token stop = stop_after_one == nullptr ? std::stop_token() : stop_after_one->get_token();
  return dry_run ? copy.rehearse(snapshots, stop) : copy.run(snapshots, stop);
}

inline Result<store::CopyReport> copy_all(FaultyDisk& source, FaultyDisk& target,
                                          CopyOutcome* outcome = nullptr,
                                          const std::vector<SnapshotId>& only = {}) {
  KIN_TRY_ASSIGN(const auto from, open_repository(source.open()));
  KIN_TRY(from->refresh_index());
  KIN_TRY_ASSIGN(const auto to, open_repository(target.open()));
  KIN_TRY(to->refresh_index());
  return copy_all(*from, *to, outcome, only);
}

// The files of a snapshot that commit_files() or commit_nodes() has made, read by one who has only what is on
// the disk. Files of several extents are put together.
inline NamedContents files_of(store::Repository& repository, const SnapshotId& id) {
  const Snapshot snapshot = value_of(repository.load_snapshot(id));
  TreeCursor cursor(repository, snapshot.tree);
  NamedContents out;
  for (;;) {
    const auto node = value_of(cursor.next());
    if (!node) return out;
    Bytes& bytes = out[node->name];
    require_ok(
        for_each_extent(repository, node->content, [&](const Extent& extent, std::uint64_t) -> Result<void> {
          if (extent.kind == Extent::Kind::hole) {
            bytes.resize(bytes.size() + extent.size);
            return {};
          }
          KIN_TRY_ASSIGN(const auto content, repository.load(extent.id));
          append(bytes, *content);
          return {};
        }));
  }
}

inline NamedContents files_of(FaultyDisk& disk, const SnapshotId& id) { return files_of(*reopen(disk), id); }

// By which of the source's snapshots they are copies of.
inline std::map<SnapshotId, SnapshotId> copies_in(store::Repository& repository) {
  std::map<SnapshotId, SnapshotId> out;
  for (const store::StoredSnapshot& stored : value_of(store::load_snapshots(repository, {})))
    if (stored.snapshot.original) {
      CHECK(out.emplace(*stored.snapshot.original, stored.id).second);
    }
  return out;
}

inline std::map<SnapshotId, SnapshotId> copies_in(FaultyDisk& disk) { return copies_in(*reopen(disk)); }

}  // namespace kin::testing

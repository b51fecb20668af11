#include "store/snapshots.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::store {
namespace {

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::vector<std::string> split_tags(const std::vector<std::string>& entries) {
  std::set<std::string> tags;
  for (const std::string& entry : entries) {
    for (std::size_t begin = 0; begin <= entry.size();) {
      const std::size_t end = std::min(entry.find(',', begin), entry.size());
      if (end > begin) tags.insert(entry.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return {tags.begin(), tags.end()};
}

bool SnapshotFilter::admits(const Snapshot& snapshot) const {
  if (!hosts.empty() && !has(hosts, snapshot.host)) return false;
  for (const std::string& path : paths)
    if (!has(snapshot.paths, path)) return false;
  return tags.empty() || std::any_of(tags.begin(), tags.end(), [&](const std::string& entry) {
           const std::vector<std::string> wanted = split_tags({entry});
           // An empty entry asks for snapshots without tags.
           if (wanted.empty()) return snapshot.tags.empty();
           return std::all_of(wanted.begin(), wanted.end(),
                              [&](const std::string& tag) { return has(snapshot.tags, tag); });
         });
}

Result<std::vector<StoredSnapshot>> load_snapshots(Repository& repository, const SnapshotFilter& filter,
                                                   const std::function<void(const Error&)>& on_damage) {
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> ids, repository.list_snapshots());
  std::vector<StoredSnapshot> out;
  for (const SnapshotId& id : ids) {
    auto snapshot = repository.load_snapshot(id);
    if (!snapshot && snapshot.error().code() == ErrorCode::not_found)
      continue;  // removed since it was listed
    if (!snapshot && on_damage) {
      on_damage(snapshot.error());
      continue;
    }
    if (!snapshot) return std::move(snapshot).error();
    if (filter.admits(*snapshot)) out.push_back({id, *std::move(snapshot)});
  }
  std::stable_sort(out.begin(), out.end(), [](const StoredSnapshot& a, const StoredSnapshot& b) {
    return a.snapshot.time < b.snapshot.time;
  });
  return out;
}

Result<StoredSnapshot> find_snapshot(Repository& repository, const std::string& text,
                                     const SnapshotFilter& filter) {
  if (text == "latest") {
    auto loaded = load_snapshots(repository, filter);
    // It may be the newest. Taking another for it could restore, and delete by, an old state unnoticed.
    if (!loaded && loaded.error().code() != ErrorCode::cancelled)
      return Error(
          loaded.error().code(),
          loaded.error().message() +
              "; so it is not certain which snapshot is the latest: give one by its id, from kin snapshots");
    KIN_TRY_ASSIGN(std::vector<StoredSnapshot> all, std::move(loaded));
    if (!all.empty()) return std::move(all.back());
    KIN_TRY_ASSIGN(const std::vector<SnapshotId> any, repository.list_snapshots());
    return Error(ErrorCode::not_found, any.empty() ? "the repository has no snapshot yet"
                                                   : "no snapshot fits --host, --tag and --path");
  }
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> ids, repository.list_snapshots());
  std::vector<SnapshotId> matches;
  for (const SnapshotId& id : ids)
    if (id.hex().starts_with(text)) matches.push_back(id);
  if (matches.size() > 1)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("snapshot {} is not clear: {} ids start so", printable(text), matches.size()));
  if (matches.empty() || text.empty())
    return Error(ErrorCode::not_found,
                 fmt::format("there is no snapshot {}", text.empty() ? "''" : printable(text)));
  KIN_TRY_ASSIGN(Snapshot snapshot, repository.load_snapshot(matches.front()));
  return StoredSnapshot{matches.front(), std::move(snapshot)};
}

std::pair<std::string, std::string> split_snapshot_path(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace kin::store

#include "cmd/sync_report.h"

#include "lib/base/path_text.h"

namespace kin::cmd {
namespace {

std::string shown(const std::string& folder) { return folder.empty() ? "." : path_text(folder); }

Json json_of(const SyncReport::Counts& counts) {
  return {{"new", counts.added},
          {"moved", counts.moved},
          {"changed", counts.changed},
          {"deleted", counts.deleted}};
}

}  // namespace

std::string SyncReport::folder_of(const sync::Record& record) {
  return record.item.type == sync::ItemType::directory && record.item.folder.empty() ? record.item.name
                                                                                     : record.item.folder;
}

void SyncReport::count(Counts& counts, const sync::Record& record) {
  using Kind = sync::Record::Kind;
  const bool is_message = record.item.type == sync::ItemType::message;
  if (is_mail_ && record.item.type == sync::ItemType::directory) return;  // a folder is no message
  switch (record.kind) {
    case Kind::remove:
      ++counts.deleted;
      break;
    case Kind::update:
      ++counts.changed;
      // Of a tree, what has changed is most often the content.
      if (record.item.type == sync::ItemType::file) content_bytes_ += record.item.size;
      break;
    case Kind::move:
      ++counts.moved;
      break;
    case Kind::place:
    case Kind::full:
    case Kind::announce:
      ++counts.added;
      if (is_message || record.item.type == sync::ItemType::file) content_bytes_ += record.item.size;
      break;
  }
}

void SyncReport::print(Context& context) const {
  constexpr const char* kRow = "{:<30} {:>7} {:>7} {:>8} {:>8}   {:>7} {:>7} {:>8} {:>8}  {:>9}";
  const char* const changed = is_mail_ ? "flagged" : "changed";
  bool has_header = false;
  for (const auto& [folder, counts] : folders_) {
    if (!counts.here.any() && !counts.there.any() && counts.conflicts == 0) continue;
    if (!has_header) {
      context.print(fmt::format("{:<30} {:>33}   {:>33}", "", "made here", "made there"));
      context.print(fmt::format(kRow, "Folder", "new", "moved", changed, "deleted", "new", "moved", changed,
                                "deleted", "conflicts"));
      has_header = true;
    }
    context.print(fmt::format(kRow, shown(folder), grouped(counts.here.added), grouped(counts.here.moved),
                              grouped(counts.here.changed), grouped(counts.here.deleted),
                              grouped(counts.there.added), grouped(counts.there.moved),
                              grouped(counts.there.changed), grouped(counts.there.deleted),
                              grouped(counts.conflicts)));
  }
}

Json SyncReport::json() const {
  Json out = Json::array();
  for (const auto& [folder, counts] : folders_) {
    Json row{
        {"here", json_of(counts.here)}, {"there", json_of(counts.there)}, {"conflicts", counts.conflicts}};
    set_path(row, "folder", folder);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace kin::cmd

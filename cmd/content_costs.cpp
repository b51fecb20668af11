#include "cmd/content_costs.h"

#include "cmd/stats_details.h"
#include "cmd/svg_plots.h"
#include "cmd/tree_walk.h"
#include "lib/base/text.h"
#include "lib/container/content_source.h"
#include "store/object_storage.h"

#include <algorithm>
#include <utility>

namespace kin::cmd {
namespace {

using Order = ContentCosts::Order;

std::uint64_t value(const ContentCosts::Tally& tally, Order order) {
  return order == Order::stored ? tally.stored : tally.saved();
}

bool is_better(const ContentCosts::Named& a, const ContentCosts::Named& b, Order order) {
  const std::uint64_t left = value(a.tally, order), right = value(b.tally, order);
  return left != right ? left > right : a.name < b.name;
}

}  // namespace

Result<ContentCosts::Tally> ContentCosts::tally_of(const Node& file) {
  Tally out{1, file.size, 0};
  KIN_TRY(for_each_object(repository_, file.content, [&](const Extent& extent) -> Result<bool> {
    if (!seen_.insert(extent.id).second) return false;
    KIN_TRY_ASSIGN(const store::Location location, store::require_location(repository_, extent.id));
    out.stored += store::share_of(location.size, location.range.size, location.content_size);
    return true;
  }));
  return out;
}

Result<void> ContentCosts::add(const Snapshot& snapshot, const std::stop_token& stop) {
  struct Level {
    std::string path;
    Directory directory;
  };
  std::vector<Level> levels{{"/", {}}};
  TreeVisitor visitor;
  visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
    if (node.type == NodeType::directory) levels.push_back({path, {}});
    if (node.type != NodeType::file) return true;
    auto tally = tally_of(node);
    if (!tally) return std::move(tally).error().context(printable(path));
    levels.back().directory.tally.add(*tally);
    add_file(path, node, *tally);
    return true;
  };
  const auto leave = [&] {
    Level done = std::move(levels.back());
    levels.pop_back();
    if (!levels.empty()) {
      Directory& around = levels.back().directory;
      around.tally.add(done.directory.tally);
      if (done.directory.tally.stored > around.largest.stored) around.largest = done.directory.tally;
      if (done.directory.tally.saved() > around.most_saving.saved())
        around.most_saving = done.directory.tally;
    }
    directories_.insert_or_assign(std::move(done.path), done.directory);
  };
  visitor.leave = [&](const Node&) { leave(); };
  KIN_TRY(walk_tree(repository_, snapshot.tree, "", visitor, stop));
  leave();
  return {};
}

void ContentCosts::add_file(const std::string& path, const Node& node, const Tally& tally) {
  all_.add(tally);
  types_[suffix_of(node.name)].add(tally);
  keep_best(costliest_, path, tally, Order::stored);
  keep_best(most_saving_, path, tally, Order::saved);
}

void ContentCosts::keep_best(std::vector<Named>& best, const std::string& path, const Tally& tally,
                             Order order) const {
  if (most_ == 0 || value(tally, order) == 0) return;
  if (best.size() == most_ && value(best.back().tally, order) >= value(tally, order)) return;
  Named file{path, tally};
  const auto place = std::upper_bound(best.begin(), best.end(), file,
                                      [&](const Named& a, const Named& b) { return is_better(a, b, order); });
  best.insert(place, std::move(file));
  if (best.size() > most_) best.pop_back();
}

std::vector<ContentCosts::Named> ContentCosts::first_of(std::vector<Named> all, Order order) const {
  std::sort(all.begin(), all.end(), [&](const Named& a, const Named& b) { return is_better(a, b, order); });
  if (all.size() > most_) all.resize(most_);
  return all;
}

std::vector<ContentCosts::Named> ContentCosts::directories(Order order) const {
  std::vector<Named> out;
  for (const auto& [path, directory] : directories_) {
    const std::uint64_t whole = value(directory.tally, order);
    const Tally& largest = order == Order::stored ? directory.largest : directory.most_saving;
    if (whole > 0 && value(largest, order) <= whole / 4 * 3) out.push_back({path, directory.tally});
  }
  return first_of(std::move(out), order);
}

std::vector<ContentCosts::Named> ContentCosts::parts(std::size_t most) const {
  // What is in a directory, and the files right in it.
  const auto split = [&](const std::string& path) {
    std::vector<Named> out;
    Tally files = directories_.at(path).tally;
    const std::string below = path == "/" ? path : path + "/";
    for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);
         ++at) {
      if (at->first == path || at->first.find('/', below.size()) != std::string::npos) continue;
      out.push_back({at->first, at->second.tally});
      files.files -= at->second.tally.files;
      files.bytes -= at->second.tally.bytes;
      files.stored -= at->second.tally.stored;
    }
    if (!out.empty() && files.files > 0) out.push_back({below + "*", files});
    return out;
  };
  std::vector<Named> out;
  if (directories_.empty()) return out;
  std::vector<Named> whole{{"/", directories_.at("/").tally}};
  while (!whole.empty() && out.size() + whole.size() < most) {
    const auto largest = std::min_element(whole.begin(), whole.end(), [](const Named& a, const Named& b) {
      return is_better(a, b, Order::stored);
    });
    Named next = std::move(*largest);
    whole.erase(largest);
    std::vector<Named> within = split(next.name);
    if (within.empty() || out.size() + whole.size() + within.size() > most) {
      out.push_back(std::move(next));
      continue;
    }
    for (Named& part : within) (part.name.ends_with("/*") ? out : whole).push_back(std::move(part));
  }
  out.insert(out.end(), whole.begin(), whole.end());
  std::erase_if(out, [](const Named& part) { return part.tally.stored == 0; });
  std::sort(out.begin(), out.end(),
            [](const Named& a, const Named& b) { return is_better(a, b, Order::stored); });
  return out;
}

std::vector<ContentCosts::Named> ContentCosts::types(Order order) const {
  std::vector<Named> out;
  for (const auto& [type, tally] : types_) out.push_back({type, tally});
  return first_of(std::move(out), order);
}

void add_directories(HtmlPage& page, const std::vector<ContentCosts::Named>& parts, const char* caption) {
  if (parts.empty()) return;
  std::vector<Area> areas;
  std::vector<std::vector<HtmlPage::Cell>> rows;
  for (const ContentCosts::Named& part : parts) {
    areas.push_back({part.name, human_bytes(part.tally.stored), static_cast<double>(part.tally.stored)});
    rows.push_back({HtmlPage::text(part.name), HtmlPage::number(part.tally.files),
                    HtmlPage::bytes(part.tally.bytes), HtmlPage::bytes(part.tally.stored)});
  }
  page.plot(treemap_plot({"directories-plot", caption}, areas));
  page.table("directories", "The same in numbers; /*: files right in the directory",
             {"directory", "files", "size", "stored"}, rows);
}

}  // namespace kin::cmd

#include "lib/engine/imported_tree.h"

#include "lib/base/check.h"
#include "lib/base/path_text.h"
#include "lib/base/text.h"
#include "lib/object/tree.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin {
namespace {

Bytes encoded(const Node& node) {
  WireWriter out;
  encode_node(node, out);
  return out.take();
}

Node decoded(const Bytes& bytes) {
  WireReader in(bytes);
  Node node = decode_node(in);
  KIN_CHECK(in.finish("entry").has_value());  // our own encoding
  return node;
}

std::string name_in(const std::string& key) { return key.substr(key.rfind('\0') + 1); }

bool lies_below(const std::string& key, const std::string& directory) {
  return key.size() > directory.size() && key[directory.size()] == '\0' && key.starts_with(directory);
}

std::string path_of(std::string key) {
  std::replace(key.begin(), key.end(), '\0', '/');
  return key;
}

}  // namespace

Result<std::string> ImportedTree::key_of(const std::string& path) const {
  std::string key = below_.empty() || path.empty() ? below_ + path : below_ + "/" + path;
  if (std::count(key.begin(), key.end(), '/') >= kMostDirectoryDepth)
    return Error(ErrorCode::unsupported,
                 fmt::format("{}: more than {} directories deep", path_text(path), kMostDirectoryDepth));
  std::replace(key.begin(), key.end(), '/', '\0');
  return key;
}

Result<void> ImportedTree::put(const std::string& key, Item item) {
  if (key.empty()) return {};  // the root of a snapshot has no node
  const auto [at, is_new] = items_.try_emplace(key);
  Item& known = at->second;
  const bool same_file = known.file && known.file == item.file;
  if (!is_new && !same_file && (known.file || decoded(known.node).type != NodeType::directory) &&
      ++replaced_.entries == 1)
    replaced_.example = path_of(key);
  known = std::move(item);
  if (items_.size() > kMostImportedEntries)
    return Error(ErrorCode::unsupported, fmt::format("more than {} entries", grouped(kMostImportedEntries)));
  return {};
}

Result<void> ImportedTree::add(const Node& node, const std::string& path) {
  KIN_TRY_ASSIGN(const std::string key, key_of(path));
  Node named = node;
  named.name = name_in(key);
  return put(key, {std::nullopt, encoded(named)});
}

Result<bool> ImportedTree::add_link(const Node& node, const std::string& path, const std::string& target) {
  KIN_TRY_ASSIGN(const std::string key, key_of(path));
  KIN_TRY_ASSIGN(const std::string target_key, key_of(target));
  const auto at = items_.find(target_key);
  if (at == items_.end() || key.empty()) return false;
  Item& first = at->second;
  if (!first.file) {
    if (decoded(first.node).type == NodeType::directory) return false;
    files_.push_back(std::move(first.node));
    first = {files_.size() - 1, {}};
  }
  const std::size_t file = *first.file;
  if (!node.content.empty()) {
    Node named = node;
    named.name = name_in(key);
    files_[file] = encoded(named);
  }
  KIN_TRY(put(key, {file, {}}));
  return true;
}

Result<void> ImportedTree::visit(const Visitor& visitor) const {
  std::vector<std::uint64_t> names(files_.size());
  for (const auto& [key, item] : items_)
    if (item.file) ++names[*item.file];

  std::vector<std::string> entered;  // keys
  std::string last_file;             // the key of what was no directory
  const auto enter = [&](const std::string& key, Node node) {
    node.name = name_in(key);
    entered.push_back(key);
    return visitor.enter(std::move(node));
  };
  for (const auto& [key, item] : items_) {
    if (!last_file.empty() && lies_below(key, last_file))
      return Error(ErrorCode::unsupported,
                   fmt::format("{} cannot be below {}, which is no directory", path_text(path_of(key)),
                               path_text(path_of(last_file))));
    while (!entered.empty() && !lies_below(key, entered.back())) {
      KIN_TRY(visitor.leave());
      entered.pop_back();
    }
    // Directories that have no entry.
    std::size_t at = entered.empty() ? 0 : entered.back().size() + 1;
    while ((at = key.find('\0', at)) != std::string::npos) {
      KIN_TRY(enter(key.substr(0, at), unknown_));
      ++at;
    }
    Node node = decoded(item.file ? files_[*item.file] : item.node);
    if (node.type == NodeType::directory) {
      KIN_TRY(enter(key, std::move(node)));
      continue;
    }
    node.name = name_in(key);
    if (item.file && names[*item.file] > 1) {
      node.links = names[*item.file];
      node.inode = *item.file + 1;
    }
    last_file = key;
    KIN_TRY(visitor.add(std::move(node)));
  }
  for (; !entered.empty(); entered.pop_back()) KIN_TRY(visitor.leave());
  return {};
}

}  // namespace kin

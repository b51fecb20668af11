#include "lib/object/tree.h"

#include "lib/base/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace kin {
namespace {

constexpr std::uint8_t kTreeVersion = 1;
// Cuts: after an entry whose name hashes to 0 in 9 bits, 512 entries (60 KB) on average; never below 16 KiB,
// so that a directory of a few dozen entries is one object; always at 256 KiB, whatever the names are.
constexpr std::size_t kLeastBytes = 16 << 10;
constexpr std::size_t kMostBytes = 256 << 10;
constexpr std::uint64_t kCutMask = 511;
constexpr int kMostTreeLevels = 12;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

// Each level looks at other bits, else every leaf's cut would be an inner node's cut as well.
bool cut_after(std::string_view name, std::size_t level) {
  return (fnv1a(name) >> (8 + 9 * (level % 6)) & kCutMask) == 0;
}

struct TreeNode {
  int level = 0;
  std::vector<Node> entries;                               // level 0
  std::vector<std::pair<std::string, ObjectId>> children;  // above: first name and id

  const std::string& name(std::size_t i) const { return level == 0 ? entries[i].name : children[i].first; }
  bool empty() const { return entries.empty() && children.empty(); }
};

Result<TreeNode> decode_tree_node(ByteView bytes, const ObjectId& id) {
  WireReader in(bytes);
  TreeNode node;
  if (!bytes.empty() && bytes[0] > kTreeVersion)
    return Error(ErrorCode::unsupported, "tree " + id.short_hex() + " was made by a newer kin");
  if (in.u8() != kTreeVersion) in.fail();
  node.level = in.u8();
  if (node.level > kMostTreeLevels) in.fail();
  const std::size_t count = in.count(node.level == 0 ? 13 : 34);  // the least bytes an entry takes
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    if (node.level == 0) {
      node.entries.push_back(decode_node(in));
    } else {
      std::string name = in.text();
      node.children.emplace_back(std::move(name), ObjectId{in.array<32>()});
    }
    // Whoever searches in it relies on the order.
    if (!in.failed() && i > 0 && node.name(i) <= node.name(i - 1))
      return Error(ErrorCode::corrupt,
                   fmt::format("tree {}: entry {} is out of order", id.short_hex(), printable(node.name(i))));
  }
  if (node.level > 0 && count == 0) in.fail();
  KIN_TRY(in.finish("tree " + id.short_hex()));
  return node;
}

// `expected_level` and `first_name` are what its parent says of it; -1 for a root, which has none.
Result<TreeNode> load_tree_node(ObjectReader& reader, const ObjectId& id, int expected_level,
                                std::string_view first_name) {
  auto bytes = reader.load(id);
  if (!bytes) return std::move(bytes).error().context("tree " + id.short_hex());
  KIN_TRY_ASSIGN(TreeNode node, decode_tree_node(**bytes, id));
  if (expected_level >= 0 && node.level != expected_level)
    return Error(ErrorCode::corrupt,
                 fmt::format("tree {} is at level {}, not {}", id.short_hex(), node.level, expected_level));
  // Only a directory with nothing in it has an empty leaf, and that is its root.
  if (expected_level >= 0 && (node.empty() || node.name(0) != first_name))
    return Error(ErrorCode::corrupt, fmt::format("tree {} does not begin with {}, as the tree above it says",
                                                 id.short_hex(), printable(first_name)));
  return node;
}

}  // namespace

Result<void> TreeWriter::add(const Node& node) {
  KIN_CHECK(last_name_ < node.name);
  last_name_ = node.name;
  WireWriter entry;
  encode_node(node, entry);
  return add_entry(0, node.name, entry.bytes());
}

Result<void> TreeWriter::add_entry(std::size_t level, const std::string& name, ByteView entry) {
  if (levels_.size() <= level) levels_.resize(level + 1);
  Level& at = levels_[level];
  if (at.count == 0) at.first_name = name;
  at.entries.raw(entry);
  ++at.count;
  if (at.entries.size() < kLeastBytes || (at.entries.size() < kMostBytes && !cut_after(name, level)))
    return {};
  const std::string first_name = at.first_name;
  KIN_TRY_ASSIGN(const ObjectId id, close_level(level));
  WireWriter child;
  child.text(first_name);
  child.raw(id.bytes);
  return add_entry(level + 1, first_name, child.bytes());
}

Result<ObjectId> TreeWriter::close_level(std::size_t level) {
  Level done = std::exchange(levels_[level], Level{});
  WireWriter out;
  out.u8(kTreeVersion);
  out.u8(static_cast<std::uint8_t>(level));
  out.varint(done.count);
  out.raw(done.entries.bytes());
  return store_(ObjectKind::tree, out.take());
}

Result<ObjectId> TreeWriter::finish() {
  if (levels_.empty()) levels_.resize(1);
  for (std::size_t level = 0;; ++level) {
    const bool top = level + 1 == levels_.size();
    if (top) return close_level(level);
    if (levels_[level].count == 0) {
      // All below is cut off already; if that is a single node, it is the root.
      if (level + 2 == levels_.size() && levels_[level + 1].count == 1)
        return ObjectId::from_bytes(ByteView(levels_[level + 1].entries.bytes()).last(32));
      continue;
    }
    const std::string first_name = levels_[level].first_name;
    KIN_TRY_ASSIGN(const ObjectId id, close_level(level));
    WireWriter child;
    child.text(first_name);
    child.raw(id.bytes);
    KIN_TRY(add_entry(level + 1, first_name, child.bytes()));
  }
}

Result<void> TreeCursor::descend() {
  const Child child = pending_.back();
  pending_.pop_back();
  if (visit_ && !visit_(child.id)) return {};
  KIN_TRY_ASSIGN(TreeNode node, load_tree_node(reader_, child.id, child.level, child.first_name));
  for (std::size_t i = node.children.size(); i-- > 0;)
    pending_.push_back({node.children[i].second, node.level - 1, std::move(node.children[i].first)});
  leaf_ = std::move(node.entries);
  std::reverse(leaf_.begin(), leaf_.end());
  return {};
}

Result<std::optional<Node>> TreeCursor::next() {
  while (leaf_.empty() && !pending_.empty()) KIN_TRY(descend());
  if (leaf_.empty()) return std::optional<Node>();
  Node node = std::move(leaf_.back());
  leaf_.pop_back();
  if (node.name <= last_name_)
    return Error(ErrorCode::corrupt, fmt::format("tree entry {} is out of order", printable(node.name)));
  last_name_ = node.name;
  return std::optional<Node>(std::move(node));
}

Result<std::optional<Node>> find_in_tree(ObjectReader& reader, const ObjectId& root, std::string_view name) {
  ObjectId id = root;
  std::string first_name;
  for (int level = -1;;) {
    KIN_TRY_ASSIGN(TreeNode node, load_tree_node(reader, id, level, first_name));
    if (node.level == 0) {
      const auto at =
          std::lower_bound(node.entries.begin(), node.entries.end(), name,
                           [](const Node& entry, std::string_view wanted) { return entry.name < wanted; });
      if (at == node.entries.end() || at->name != name) return std::optional<Node>();
      return std::optional<Node>(std::move(*at));
    }
    auto after =
        std::upper_bound(node.children.begin(), node.children.end(), name,
                         [](std::string_view wanted, const auto& child) { return wanted < child.first; });
    if (after == node.children.begin()) return std::optional<Node>();
    std::tie(first_name, id) = std::move(*std::prev(after));
    level = node.level - 1;
  }
}

}  // namespace kin

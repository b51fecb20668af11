#include "store/tree_copy.h"

#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

#include <algorithm>
#include <utility>

namespace kin::store {
namespace {

// Content that is copied together: 90 bytes each.
constexpr std::size_t kWindowObjects = 64 << 10;
// Longer recipes are in pieces, as a backup makes them.
constexpr std::size_t kRecipePieceBytes = 1 << 20;

Error too_deep(const char* what) {
  return Error(ErrorCode::corrupt, std::string(what) + " deeper than kin ever stores");
}

// A recipe, while it is written.
class RecipeBytes {
 public:
  explicit RecipeBytes(StoreObject store) : store_(std::move(store)) {}

  Result<void> add(ByteView bytes) {
    append(held_, bytes);
    while (held_.size() > kRecipePieceBytes) {
      Bytes rest(held_.begin() + kRecipePieceBytes, held_.end());
      held_.resize(kRecipePieceBytes);
      KIN_TRY(put_piece());
      held_ = std::move(rest);
    }
    return {};
  }
  Result<ObjectId> finish() {
    RecipeObject object;
    if (pieces_.empty()) {
      object.bytes = std::move(held_);
    } else {
      if (!held_.empty()) KIN_TRY(put_piece());
      KIN_TRY_ASSIGN(object.extents, fold_extents(std::move(pieces_), store_));
    }
    return store_(ObjectKind::recipe, encode_recipe_object(object));
  }

 private:
  Result<void> put_piece() {
    const std::uint64_t size = held_.size();
    KIN_TRY_ASSIGN(const ObjectId id, store_(ObjectKind::data, std::exchange(held_, {})));
    pieces_.push_back({Extent::Kind::data, size, id});
    return {};
  }

  const StoreObject store_;
  Bytes held_;
  std::vector<Extent> pieces_;
};

}  // namespace

Result<void> TreeCopy::check_stop() const {
  if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  return {};
}

Result<ObjectId> TreeCopy::copy(const ObjectId& tree) {
  failed_in_source_ = false;
  KIN_TRY(gather_tree(tree, 0));
  KIN_TRY(fetch());
  return copy_tree(tree, 0);
}

// What cannot be read is left for copy_tree() to meet, which knows its path.
Result<void> TreeCopy::gather_tree(const ObjectId& tree, int depth) {
  if (ids_.trees.find(tree) || depth > kMostTreeDepth) return {};
  TreeCursor cursor(source_, tree);
  cursor.on_object([this](const ObjectId& id) { return gathered_.insert(ShortId(id)).second; });
  for (;;) {
    KIN_TRY(check_stop());
    const auto node = cursor.next();
    if (!node || !*node) return {};
    if ((*node)->type == NodeType::file) KIN_TRY(gather((*node)->content, 0, 0));
    if ((*node)->type == NodeType::directory) KIN_TRY(gather_tree((*node)->subtree, depth + 1));
  }
}

Result<void> TreeCopy::gather(const std::vector<Extent>& extents, int containers, int lists) {
  if (containers > kMostContainerDepth || lists > kMostListLevels) return {};
  for (const Extent& extent : extents) {
    if (extent.kind == Extent::Kind::hole) continue;
    if (extent.kind == Extent::Kind::data) {
      if (ids_.content.find(extent.id)) continue;
      const auto block = source_.locate(extent.id);
      if (block) window_.push_back({*block, extent.id});
      if (window_.size() >= kWindowObjects) KIN_TRY(fetch());
      continue;
    }
    const bool is_list = extent.kind == Extent::Kind::list;
    if ((is_list ? ids_.lists : ids_.recipes).find(extent.id)) continue;
    if (!gathered_.insert(ShortId(extent.id)).second) continue;
    if (is_list) {
      if (const auto inner = load_list(source_, extent)) KIN_TRY(gather(*inner, containers, lists + 1));
      continue;
    }
    const auto bytes = open_recipe(source_, extent);
    if (!bytes) continue;
    RecipeReader recipe(**bytes);
    for (;;) {
      const auto part = recipe.next();
      if (!part || !*part) break;
      KIN_TRY(gather((*part)->content, containers + 1, 0));
      KIN_TRY(gather((*part)->corrections, containers + 1, 0));
    }
  }
  return {};
}

Result<void> TreeCopy::fetch() {
  std::vector<Wanted> window = std::exchange(window_, {});
  std::sort(window.begin(), window.end(), [](const Wanted& a, const Wanted& b) {
    return a.block == b.block ? a.id < b.id : a.block < b.block;
  });
  for (const Wanted& wanted : window) {
    KIN_TRY(check_stop());
    KIN_TRY(blocks_.copy(wanted.id));
    on_progress_();
  }
  return {};
}

Result<ObjectId> TreeCopy::copy_tree(const ObjectId& tree, int depth) {
  if (const auto known = ids_.trees.find(tree)) return *known;
  if (depth > kMostTreeDepth) return read(Result<ObjectId>(too_deep("directories")));
  TreeCursor cursor(source_, tree);
  TreeWriter writer([this](ObjectKind kind, Bytes bytes) { return blocks_.store(kind, std::move(bytes)); });
  for (;;) {
    KIN_TRY(check_stop());
    KIN_TRY_ASSIGN(auto node, read(cursor.next()));
    if (!node) break;
    const auto copy_node = [&]() -> Result<void> {
      if (node->type == NodeType::file) return copy_extents(node->content, 0, 0);
      if (node->type != NodeType::directory) return {};
      KIN_TRY_ASSIGN(node->subtree, copy_tree(node->subtree, depth + 1));
      return {};
    };
    if (auto copied = copy_node(); !copied) {
      if (!failed_in_source_) return std::move(copied).error();
      // Of a directory, the names below it follow.
      const char* const between = node->type == NodeType::directory ? "/" : ": ";
      return Error(copied.error().code(), printable(node->name) + between + copied.error().message());
    }
    KIN_TRY(writer.add(*node));
    on_progress_();
  }
  KIN_TRY_ASSIGN(const ObjectId id, writer.finish());
  ids_.trees.add(tree, id);
  return id;
}

Result<void> TreeCopy::copy_extents(std::vector<Extent>& extents, int containers, int lists) {
  for (Extent& extent : extents) {
    switch (extent.kind) {
      case Extent::Kind::hole:
        break;
      case Extent::Kind::data: {
        KIN_TRY_ASSIGN(extent.id, copy_content(extent.id));
        break;
      }
      case Extent::Kind::list: {
        KIN_TRY_ASSIGN(extent.id, copy_list(extent, containers, lists));
        break;
      }
      case Extent::Kind::container: {
        KIN_TRY_ASSIGN(extent.id, copy_recipe(extent, containers));
        break;
      }
    }
  }
  return {};
}

Result<ObjectId> TreeCopy::copy_content(const ObjectId& id) {
  KIN_TRY_ASSIGN(const std::optional<Error> fault, blocks_.copy(id));
  if (fault) return read(Result<ObjectId>(*fault));
  return *ids_.content.find(id);
}

Result<ObjectId> TreeCopy::copy_list(const Extent& list, int containers, int lists) {
  if (const auto known = ids_.lists.find(list.id)) return *known;
  if (lists >= kMostListLevels) return read(Result<ObjectId>(too_deep("lists of extents")));
  KIN_TRY(check_stop());
  KIN_TRY_ASSIGN(std::vector<Extent> extents, read(load_list(source_, list)));
  KIN_TRY(copy_extents(extents, containers, lists + 1));
  KIN_TRY_ASSIGN(const ObjectId id, blocks_.store(ObjectKind::list, encode_list(extents)));
  ids_.lists.add(list.id, id);
  return id;
}

Result<ObjectId> TreeCopy::copy_recipe(const Extent& container, int containers) {
  if (const auto known = ids_.recipes.find(container.id)) return *known;
  if (containers >= kMostContainerDepth) return read(Result<ObjectId>(too_deep("containers")));
  KIN_TRY_ASSIGN(const auto bytes, read(open_recipe(source_, container)));
  RecipeReader recipe(*bytes);
  RecipeBytes out([this](ObjectKind kind, Bytes piece) { return blocks_.store(kind, std::move(piece)); });
  for (bool is_first = true;; is_first = false) {
    KIN_TRY(check_stop());
    KIN_TRY_ASSIGN(std::optional<RecipePart> part, read(recipe.next()));
    WireWriter bytes_out;
    if (is_first) encode_recipe_start(recipe.type(), bytes_out);
    if (part) {
      KIN_TRY(copy_extents(part->content, containers + 1, 0));
      KIN_TRY(copy_extents(part->corrections, containers + 1, 0));
      encode_recipe_part(*part, bytes_out);
    } else {
      encode_recipe_end(recipe.end(), bytes_out);
    }
    KIN_TRY(out.add(bytes_out.bytes()));
    if (!part) break;
  }
  KIN_TRY_ASSIGN(const ObjectId id, out.finish());
  ids_.recipes.add(container.id, id);
  return id;
}

}  // namespace kin::store

#include "store/copy_lesson.h"

#include "lib/container/content_source.h"
#include "lib/container/recipe.h"

#include <utility>

namespace kin::store {
namespace {

// But for what depends on a repository's key.
bool is_equal(Node node, Node copy) {
  for (Node* const one : {&node, &copy}) {
    one->content.clear();
    one->subtree = {};
  }
  return node == copy;
}

bool is_equal(const RecipePart& part, const RecipePart& copy) {
  return part.literal == copy.literal && part.coding == copy.coding && part.name == copy.name &&
         part.inline_corrections == copy.inline_corrections;
}

}  // namespace

Result<bool> CopyLesson::learn_tree(const ObjectId& tree, const ObjectId& copy, int depth) {
  if (const auto known = ids_.trees.find(tree)) return *known == copy;
  if (depth > kMostTreeDepth) return false;
  TreeCursor here(source_, tree), there(target_, copy);
  bool all = true;
  for (;;) {
    if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    const auto node = here.next(), other = there.next();
    if (!node || !other) return false;
    if (!*node || !*other) {
      all = all && !*node && !*other;
      break;
    }
    if (!is_equal(**node, **other)) return false;
    all = learn_extents((*node)->content, (*other)->content, 0, 0) && all;
    if ((*node)->type != NodeType::directory) continue;
    KIN_TRY_ASSIGN(const bool below, learn_tree((*node)->subtree, (*other)->subtree, depth + 1));
    all = all && below;
  }
  if (all) ids_.trees.add(tree, copy);
  return all;
}

bool CopyLesson::learn_extents(const Extents& extents, const Extents& copies, int containers, int lists) {
  if (extents.size() != copies.size()) return false;
  bool all = true;
  for (std::size_t i = 0; i < extents.size(); ++i)
    all = learn_extent(extents[i], copies[i], containers, lists) && all;
  return all;
}

bool CopyLesson::learn_extent(const Extent& extent, const Extent& copy, int containers, int lists) {
  if (extent.kind != copy.kind || extent.size != copy.size) return false;
  switch (extent.kind) {
    case Extent::Kind::hole:
      return true;
    case Extent::Kind::data:
      if (const auto known = ids_.content.find(extent.id)) return *known == copy.id;
      if (!is_there(copy.id)) return false;
      ids_.content.add(extent.id, copy.id);
      return true;
    case Extent::Kind::list: {
      if (const auto known = ids_.lists.find(extent.id)) return *known == copy.id;
      if (lists >= kMostListLevels) return false;
      const auto inner = load_list(source_, extent), other = load_list(target_, copy);
      if (!inner || !other || !learn_extents(*inner, *other, containers, lists + 1)) return false;
      ids_.lists.add(extent.id, copy.id);
      return true;
    }
    case Extent::Kind::container:
      if (const auto known = ids_.recipes.find(extent.id)) return *known == copy.id;
      if (containers >= kMostContainerDepth || !learn_recipe(extent, copy, containers)) return false;
      ids_.recipes.add(extent.id, copy.id);
      return true;
  }
  return false;
}

bool CopyLesson::learn_recipe(const Extent& container, const Extent& copy, int containers) {
  const auto bytes = open_recipe(source_, container), other_bytes = open_recipe(target_, copy);
  if (!bytes || !other_bytes) return false;
  RecipeReader recipe(**bytes), other(**other_bytes);
  for (bool all = true;;) {
    const auto part = recipe.next(), other_part = other.next();
    if (!part || !other_part) return false;
    if (!*part || !*other_part)
      return all && !*part && !*other_part && recipe.type() == other.type() &&
             recipe.end().size == other.end().size && recipe.end().digest == other.end().digest;
    if (!is_equal(**part, **other_part)) return false;
    all = learn_extents((*part)->content, (*other_part)->content, containers + 1, 0) && all;
    all = learn_extents((*part)->corrections, (*other_part)->corrections, containers + 1, 0) && all;
  }
}

bool CopyLesson::is_there(const ObjectId& copy) {
  const auto there = target_.contains(copy);
  return there && *there;
}

}  // namespace kin::store

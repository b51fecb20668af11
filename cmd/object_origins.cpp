#include "cmd/object_origins.h"

#include "cmd/tree_walk.h"
#include "lib/container/content_source.h"

namespace kin::cmd {
namespace {

using Ids = std::unordered_set<ObjectId, ObjectIdHash>;

constexpr auto kNoEnd = std::chrono::steady_clock::time_point::max();

class OriginSearch {
 public:
  OriginSearch(Context& context, store::Repository& repository, Ids wanted,
               std::chrono::steady_clock::time_point until)
      : context_(context), repository_(repository), wanted_(std::move(wanted)), until_(until) {}

  bool done() const {
    return wanted_.empty() || (until_ != kNoEnd && std::chrono::steady_clock::now() > until_);
  }

  Result<void> look_in(const store::StoredSnapshot& snapshot) {
    context_.progress("looking for bases in snapshot " + snapshot.id.short_hex());
    if (!seen_.insert(snapshot.snapshot.tree).second) return {};
    TreeVisitor visitor;
    visitor.enter = [&](const Node& node, const std::string& path) -> Result<bool> {
      if (node.type == NodeType::file) KIN_TRY(look_at(node, {snapshot.id, path}));
      return node.type == NodeType::directory && !done() && seen_.insert(node.subtree).second;
    };
    visitor.object = [&](const ObjectId&) { return !done(); };
    return walk_tree(repository_, snapshot.snapshot.tree, "", visitor, context_.stop());
  }

  Origins found;

 private:
  Result<void> look_at(const Node& file, const Origin& origin) {
    return for_each_object(repository_, file.content, [&](const Extent& extent) -> Result<bool> {
      if (wanted_.erase(extent.id) > 0) found.emplace(extent.id, origin);
      return !done() && (extent.kind == Extent::Kind::data || seen_.insert(extent.id).second);
    });
  }

  Context& context_;
  store::Repository& repository_;
  Ids wanted_;
  const std::chrono::steady_clock::time_point until_;
  Ids seen_;  // trees, lists and recipes
};

Result<Origins> search_all(Context& context, store::Repository& repository,
                           const store::StoredSnapshot* first, Ids wanted, bool& damaged,
                           std::chrono::steady_clock::time_point until) {
  OriginSearch search(context, repository, std::move(wanted), until);
  const auto look_in = [&](const store::StoredSnapshot& snapshot) -> Result<void> {
    auto looked = search.look_in(snapshot);
    if (looked) return {};
    Error error = std::move(looked).error().context("snapshot " + snapshot.id.short_hex());
    if (error.code() != ErrorCode::corrupt) return error;
    context.warn(error.message());
    damaged = true;
    return {};
  };
  if (first != nullptr && !search.done()) KIN_TRY(look_in(*first));
  if (!search.done()) {
    KIN_TRY_ASSIGN(const std::vector<store::StoredSnapshot> all,
                   store::load_snapshots(repository, {}, [&](const Error& error) {
                     context.warn(error.message());
                     damaged = true;
                   }));
    for (auto snapshot = all.rbegin(); snapshot != all.rend() && !search.done(); ++snapshot)
      KIN_TRY(look_in(*snapshot));
  }
  context.progress("");
  return std::move(search.found);
}

}  // namespace

Result<Origins> find_origins(Context& context, store::Repository& repository,
                             const store::StoredSnapshot& first, Ids wanted, bool& damaged) {
  return search_all(context, repository, &first, std::move(wanted), damaged, kNoEnd);
}

Result<Origins> find_origins_until(Context& context, store::Repository& repository, Ids wanted, bool& damaged,
                                   std::chrono::steady_clock::time_point until) {
  return search_all(context, repository, nullptr, std::move(wanted), damaged, until);
}

}  // namespace kin::cmd

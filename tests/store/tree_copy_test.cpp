// What names objects by their ids is made anew for the other key, and is the same in all else.
#include "store/tree_copy.h"

#include "lib/container/content_source.h"
#include "lib/container/recipe.h"
#include "tests/support/copied_repositories.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace kin::testing {
namespace {

using store::CopyLesson;
using store::Repository;

constexpr std::uint64_t kArchiveBytes = 2'000'000;
constexpr std::size_t kRecipePieceBytes = 1 << 20;

// All that snapshots name, by way of recipes too, without playing these: some are made up.
void require_all_there(FaultyDisk& disk) {
  const auto repository = reopen(disk);
  auto use = value_of(store::BlockUse::read(*repository, {}));
  for (const SnapshotId& id : value_of(repository->list_snapshots()))
    require_ok(use.add(value_of(repository->load_snapshot(id)), {}));
  CHECK(use.needed().blocks == use.all().blocks);
}

// A hole between many pieces, so that they are in a list.
Node many_extents(Repository& repository) {
  Node out;
  out.name = "many";
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Bytes piece = random_bytes(i, 100 + i);
    out.content.push_back({Extent::Kind::data, piece.size(), value_of(store_object(repository, piece))});
    if (i == 20) out.content.push_back({Extent::Kind::hole, 5000, {}});
  }
  for (const Extent& extent : out.content) out.size += extent.size;
  out.content = value_of(fold_extents(out.content, [&](ObjectKind kind, const Bytes& bytes) {
    return store_object(repository, bytes, kind);
  }));
  CHECK(out.content.size() == 1);
  return out;
}

// A container that nobody can put together again, of one member and literals: so many that its recipe is in
// pieces, or few.
Extent container_of(Repository& repository, const std::vector<Extent>& member, std::uint64_t seed,
                    bool is_long) {
  WireWriter out;
  encode_recipe_start("test", out);
  RecipePart part;
  part.coding = static_cast<CodingId>(1);
  part.name = "member";
  part.content = member;
  const Bytes corrections = random_bytes(seed, 500);
  part.corrections = {
      {Extent::Kind::data, corrections.size(), value_of(store_object(repository, corrections))}};
  encode_recipe_part(part, out);
  for (std::uint64_t i = 0; i < (is_long ? 20U : 2U); ++i) {
    RecipePart literal;
    literal.literal = random_bytes(1000 + i, 60'000);
    encode_recipe_part(literal, out);
  }
  encode_recipe_end({kArchiveBytes, hash(corrections)}, out);
  RecipeObject object;
  object.bytes = out.take();
  for (ByteView rest = object.bytes; is_long && !rest.empty();) {
    const ByteView piece = rest.first(std::min(rest.size(), kRecipePieceBytes));
    const ObjectId id = value_of(store_object(repository, Bytes(piece.begin(), piece.end())));
    object.extents.push_back({Extent::Kind::data, piece.size(), id});
    rest = rest.subspan(piece.size());
  }
  return {Extent::Kind::container, kArchiveBytes,
          value_of(store_object(repository, encode_recipe_object(object), ObjectKind::recipe))};
}

// A file in a container in a container, and beside them.
SnapshotId commit_archives(FaultyDisk& disk, bool is_long) {
  const auto repository = reopen(disk);
  value_of(repository->begin_writing());
  const Node many = many_extents(*repository);
  Node archive;
  archive.name = "archive";
  archive.size = kArchiveBytes;
  archive.content = {
      container_of(*repository, {container_of(*repository, many.content, 50, is_long)}, 51, is_long)};
  return value_of(commit_nodes(*repository, {archive, many}, 1));
}

ObjectId tree_of(Repository& repository, const SnapshotId& id) {
  return value_of(repository.load_snapshot(id)).tree;
}

}  // namespace

TEST_CASE("lists of extents, holes and recipes are made anew for the other key", "[repository][copy]") {
  const Mode mode = any_mode();
  const bool is_long = GENERATE(false, true);
  FaultyDisk source, target;
  create_repository(source, mode);
  create_repository(target, Mode::encrypted);
  const SnapshotId id = commit_archives(source, is_long);
  CopyOutcome outcome;
  value_of(copy_all(source, target, &outcome));
  REQUIRE(outcome.copied == std::vector<SnapshotId>{id});
  require_all_there(target);

  // All is the same but for ids; and behind those, so is the content.
  const auto from = reopen(source), to = reopen(target);
  store::CopiedIds ids;
  const ObjectId tree = tree_of(*from, id);
  CHECK(value_of(CopyLesson(*from, *to, ids, {}).learn(tree, tree_of(*to, outcome.copies.front()))));
  std::uint64_t compared = 0;
  TreeCursor cursor(*from, tree);
  while (const auto node = value_of(cursor.next()))
    require_ok(for_each_object(*from, node->content, [&](const Extent& extent) -> Result<bool> {
      const auto there = ids.content.find(extent.id);
      if (extent.kind != Extent::Kind::data || !there) return true;
      ++compared;
      CHECK(*value_of(to->load(*there)) == *value_of(from->load(extent.id)));
      return true;
    }));
  CHECK(compared >= 40 + 2);

  // And back again, into a third one: it is what it was.
  FaultyDisk third;
  create_repository(third, mode);
  CopyOutcome back;
  value_of(copy_all(target, third, &back));
  REQUIRE(back.copies.size() == 1);
  require_all_there(third);
  const auto last = reopen(third);
  CHECK(value_of(last->load_snapshot(back.copies.front())).original == id);
  store::CopiedIds more;
  CHECK(value_of(CopyLesson(*from, *last, more, {}).learn(tree, tree_of(*last, back.copies.front()))));
}

TEST_CASE("what differs or is missing in a copy is not learned, and the rest of it is",
          "[repository][copy]") {
  FaultyDisk source, target;
  create_repository(source);
  create_repository(target, Mode::encrypted);
  const NamedContents files{{"a", random_bytes(1, 300)}, {"b", random_bytes(2, 300)}};
  const SnapshotId id = commit_files(source, files, 1);
  value_of(copy_all(source, target));
  const auto from = reopen(source);
  const auto learn = [&](FaultyDisk& disk, const SnapshotId& copy) {
    const auto to = reopen(disk);
    require_ok(to->find_lost_packs());
    store::CopiedIds ids;
    const bool all = value_of(CopyLesson(*from, *to, ids, {}).learn(tree_of(*from, id), tree_of(*to, copy)));
    std::vector<std::string> out;
    for (const auto& [name, bytes] : files)
      if (ids.content.find(from->id_of(bytes))) out.push_back(name);
    CHECK(ids.trees.find(tree_of(*from, id)).has_value() == all);
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(learn(target, copies_in(target).at(id)) == Names{"a", "b"});
  FaultyDisk other;
  create_repository(other);
  // Another size, another name; and the same of all that can be compared.
  CHECK(learn(other, commit_files(other, {{"a", files.at("a")}, {"b", random_bytes(3, 301)}}, 1)) ==
        Names{"a"});
  CHECK(learn(other, commit_files(other, {{"a", files.at("a")}, {"c", files.at("b")}}, 1)) == Names{"a"});
  CHECK(learn(other, commit_files(other, {{"a", files.at("a")}}, 1)) == Names{"a"});
  // The content is lost, and the tree is there.
  const SnapshotId whole = commit_files(other, files, 1);
  const auto repository = reopen(other);
  const BlockRef at = value_of(repository->locate(repository->id_of(files.at("b"))));
  other.erase({store::FileKind::pack, at.pack.hex()});
  CHECK(learn(other, whole) == Names{"a"});
}

}  // namespace kin::testing

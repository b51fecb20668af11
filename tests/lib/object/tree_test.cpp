#include "lib/object/tree.h"

#include "tests/support/cutting_name.h"
#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/memory_objects.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace kin {
namespace {

using testing::code_of;
using testing::cutting_name;
using testing::error_of;
using testing::MemoryObjects;
using testing::value_of;

Node file(std::string name, std::uint64_t number = 0) {
  Node node;
  node.name = std::move(name);
  node.mode = 0644;
  node.uid = node.gid = 1000;
  node.user = node.group = "someone";
  node.mtime = {1'700'000'000 + static_cast<std::int64_t>(number),
                static_cast<std::uint32_t>(number % 1'000'000'000)};
  node.ctime = node.mtime;
  node.device = 64769;
  node.inode = 1'000'000 + number;
  node.size = 1 + number;
  node.content = {{Extent::Kind::data, node.size, ObjectId{hash(as_bytes(std::to_string(number)))}}};
  return node;
}

std::vector<Node> many_files(std::size_t count) {
  std::vector<Node> out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) out.push_back(file(fmt::format("file-{:07}.txt", i), i));
  return out;
}

ObjectId write_tree(const std::vector<Node>& nodes, const StoreObject& store) {
  TreeWriter writer(store);
  for (const Node& node : nodes)
    if (auto added = writer.add(node); !added) FAIL(added.error().message());
  return value_of(writer.finish());
}

Result<std::vector<Node>> read_tree(ObjectReader& reader, const ObjectId& root) {
  TreeCursor cursor(reader, root);
  std::vector<Node> out;
  for (;;) {
    KIN_TRY_ASSIGN(std::optional<Node> node, cursor.next());
    if (!node) return out;
    out.push_back(*std::move(node));
  }
}

std::size_t count_new(const MemoryObjects& after, const MemoryObjects& before) {
  std::size_t out = 0;
  for (const auto& [id, bytes] : after.all()) out += before.all().contains(id) ? 0 : 1;
  return out;
}

// Tree objects as TreeWriter would never write them.
Bytes leaf_bytes(const std::vector<Node>& nodes) {
  WireWriter out;
  out.u8(1);
  out.u8(0);
  out.varint(nodes.size());
  for (const Node& node : nodes) encode_node(node, out);
  return out.take();
}

Bytes inner_bytes(int level, const std::vector<std::pair<std::string, ObjectId>>& children) {
  WireWriter out;
  out.u8(1);
  out.u8(static_cast<std::uint8_t>(level));
  out.varint(children.size());
  for (const auto& [name, id] : children) {
    out.text(name);
    out.raw(id.bytes);
  }
  return out.take();
}

}  // namespace

TEST_CASE("200,000 entries come back in order, from objects of bounded size", "[tree]") {
  const std::vector<Node> nodes = many_files(200'000);
  MemoryObjects objects;
  const ObjectId root = write_tree(nodes, objects.storer());
  CHECK((value_of(read_tree(objects, root)) == nodes));

  std::size_t largest = 0, sum = 0;
  for (const auto& [id, bytes] : objects.all()) {
    largest = std::max(largest, bytes->size());
    sum += bytes->size();
  }
  CHECK(largest <= 300 << 10);
  CHECK(sum / objects.all().size() > 30 << 10);
  CHECK(sum / objects.all().size() < 120 << 10);
}

TEST_CASE("names that never invite a cut still give bounded objects", "[tree]") {
  // The hash of no name here has the bits that cut, so only the size does.
  std::vector<Node> nodes;
  for (int i = 0; nodes.size() < 20'000; ++i) {
    const std::string name = fmt::format("{:07}", i);
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    if ((h >> 8 & 511) != 0) nodes.push_back(file(name, static_cast<std::uint64_t>(i)));
  }
  MemoryObjects objects;
  const ObjectId root = write_tree(nodes, objects.storer());
  CHECK((value_of(read_tree(objects, root)) == nodes));
  for (const auto& [id, bytes] : objects.all()) CHECK(bytes->size() <= 300 << 10);
}

TEST_CASE("the root of these entries is part of the format", "[tree]") {
  MemoryObjects objects;
  CHECK(write_tree({}, objects.storer()).hex() ==
        "5a121beb1148b31fc56f3d26f80800fd9eb4a90435a72d3cc74c42bc72bca9b8");
  CHECK(write_tree({file("a", 1)}, objects.storer()).hex() ==
        "476f77bdcb0814f35093be1ecad9d56409c0c08f4e4972a02df5cf48ba6ed8ef");
  CHECK(write_tree(many_files(30'000), objects.storer()).hex() ==
        "e6f9d9e5277ed37c6f4c8149205051b7037d9f038f8ae31721ae2c00ddf2a514");
}

TEST_CASE("a tree of every size around the cuts comes back, and its root has more than one child", "[tree]") {
  // Every entry fills a leaf, and every 58 leaves an inner node.
  std::vector<Node> nodes;
  for (int i = 0; i < 180; ++i) {
    Node node = file(cutting_name(i));
    node.attributes = {{"user.large", Bytes(16 << 10, static_cast<std::uint8_t>(i))}};
    nodes.push_back(std::move(node));
  }
  const bool with_rest = GENERATE(false, true);  // an entry at the end that fills nothing
  std::set<int> levels;
  for (std::size_t count = 0; count <= nodes.size(); ++count) {
    std::vector<Node> some(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count));
    if (with_rest) some.push_back(file("999999"));
    MemoryObjects objects;
    const ObjectId root = write_tree(some, objects.storer());
    INFO(count);
    REQUIRE((value_of(read_tree(objects, root)) == some));
    const Bytes& bytes = *value_of(objects.load(root));
    levels.insert(bytes[1]);
    if (bytes[1] > 0) REQUIRE(bytes[2] >= 2);
  }
  CHECK(levels == std::set<int>{0, 1, 2});
}

TEST_CASE("the same entries give the same tree", "[tree]") {
  MemoryObjects first, second;
  const ObjectId root = write_tree(many_files(20'000), first.storer());
  CHECK(write_tree(many_files(20'000), second.storer()) == root);
  CHECK(count_new(second, first) == 0);
}

TEST_CASE("one changed entry changes one leaf and the path to it", "[tree]") {
  std::vector<Node> nodes = many_files(200'000);
  MemoryObjects before;
  const ObjectId root = write_tree(nodes, before.storer());
  CHECK(before.all().size() > 200);
  for (const std::size_t at : {std::size_t{0}, std::size_t{123'456}, nodes.size() - 1}) {
    nodes[at].mtime.seconds += 1;
    MemoryObjects after;
    CHECK(write_tree(nodes, after.storer()) != root);
    INFO(at);
    CHECK(count_new(after, before) >= 2);
    CHECK(count_new(after, before) <= 3);
    nodes[at].mtime.seconds -= 1;
  }
}

TEST_CASE("an entry that comes or goes changes few objects", "[tree]") {
  std::vector<Node> nodes = many_files(100'000);
  MemoryObjects before;
  write_tree(nodes, before.storer());
  nodes.insert(nodes.begin() + 50'000, file("file-0049999.txt.new"));
  nodes.erase(nodes.begin() + 10);
  MemoryObjects after;
  write_tree(nodes, after.storer());
  CHECK(count_new(after, before) >= 2);
  CHECK(count_new(after, before) <= 8);
}

TEST_CASE("an empty directory is one small object", "[tree]") {
  MemoryObjects objects;
  const ObjectId root = write_tree({}, objects.storer());
  CHECK(objects.all().size() == 1);
  CHECK(value_of(read_tree(objects, root)).empty());
  CHECK_FALSE(value_of(find_in_tree(objects, root, "a")).has_value());
}

TEST_CASE("names are ordered as bytes, not as text", "[tree]") {
  std::vector<Node> nodes;
  for (const char* name : {"A", "B", "a", "a b", "a-", "a.", "aa", "b", "\x7f", "\x80", "\xc3\xa4", "\xff"})
    nodes.push_back(file(name));
  MemoryObjects objects;
  CHECK(value_of(read_tree(objects, write_tree(nodes, objects.storer()))) == nodes);
}

TEST_CASE("every entry can be found by its name, and no other", "[tree]") {
  const std::vector<Node> nodes = many_files(50'000);
  MemoryObjects objects;
  const ObjectId root = write_tree(nodes, objects.storer());
  for (std::size_t i = 0; i < nodes.size(); i += 501) {
    const std::optional<Node> found = value_of(find_in_tree(objects, root, nodes[i].name));
    CHECK(found == nodes[i]);
    CHECK_FALSE(value_of(find_in_tree(objects, root, nodes[i].name + "x")).has_value());
    CHECK_FALSE(value_of(find_in_tree(objects, root, nodes[i].name.substr(0, 8))).has_value());
  }
  for (const char* absent : {"", "a", "file", "zzz", "\xff"})
    CHECK_FALSE(value_of(find_in_tree(objects, root, absent)).has_value());
  CHECK(value_of(find_in_tree(objects, root, nodes.front().name)) == nodes.front());
  CHECK(value_of(find_in_tree(objects, root, nodes.back().name)) == nodes.back());
}

TEST_CASE("the cursor shows each object before it is loaded, and skips what it is told to", "[tree]") {
  const std::vector<Node> nodes = many_files(20'000);
  MemoryObjects objects;
  const ObjectId root = write_tree(nodes, objects.storer());
  std::vector<ObjectId> seen;
  TreeCursor all(objects, root);
  all.on_object([&](const ObjectId& id) {
    seen.push_back(id);
    return true;
  });
  while (value_of(all.next())) {
  }
  CHECK(seen.front() == root);
  CHECK(std::set<ObjectId>(seen.begin(), seen.end()).size() == objects.all().size());
  CHECK(seen.size() == objects.all().size());

  // The second leaf is gone, but nobody asks for it.
  objects.remove(seen[2]);
  TreeCursor cursor(objects, root);
  cursor.on_object([&](const ObjectId& id) { return id != seen[2]; });
  std::size_t count = 0;
  while (value_of(cursor.next())) ++count;
  CHECK(count > 15'000);
  CHECK(count < 20'000);
  CHECK(code_of(read_tree(objects, root)) == ErrorCode::corrupt);
}

TEST_CASE("a missing tree object is an error that names it", "[tree]") {
  MemoryObjects objects;
  const ObjectId missing{hash(as_bytes("nothing"))};
  CHECK_THAT(error_of(read_tree(objects, missing)).message(), Catch::Contains(missing.short_hex()));
  CHECK_THAT(error_of(find_in_tree(objects, missing, "a")).message(), Catch::Contains(missing.short_hex()));
}

TEST_CASE("a failure to store is the writer's answer", "[tree]") {
  const StoreObject full = [](ObjectKind, const Bytes&) -> Result<ObjectId> {
    return Error(ErrorCode::no_space, "full");
  };
  TreeWriter writer(full);
  std::optional<Error> error;
  for (const Node& node : many_files(20'000))
    if (auto added = writer.add(node); !added && !error) error = added.error();
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::no_space);
  CHECK(code_of(TreeWriter(full).finish()) == ErrorCode::no_space);
}

TEST_CASE("a tree with a name that could leave its directory is corrupt", "[tree][hostile]") {
  for (const std::string& name : {std::string(""), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("/"), std::string("x\0", 2)}) {
    MemoryObjects objects;
    const ObjectId root = objects.store(leaf_bytes({file("!"), file(name)}));
    INFO(printable(name));
    CHECK(code_of(read_tree(objects, root)) == ErrorCode::corrupt);
    CHECK(code_of(find_in_tree(objects, root, name)) == ErrorCode::corrupt);
  }
}

TEST_CASE("entries out of order or twice are corrupt, in one leaf and across two", "[tree][hostile]") {
  MemoryObjects objects;
  CHECK(code_of(read_tree(objects, objects.store(leaf_bytes({file("b"), file("a")})))) == ErrorCode::corrupt);
  CHECK(code_of(read_tree(objects, objects.store(leaf_bytes({file("a"), file("a")})))) == ErrorCode::corrupt);
  const ObjectId leaf = objects.store(leaf_bytes({file("a"), file("b")}));
  const ObjectId twice = objects.store(inner_bytes(1, {{"a", leaf}, {"c", leaf}}));
  CHECK(code_of(read_tree(objects, twice)) == ErrorCode::corrupt);
  const ObjectId before = objects.store(leaf_bytes({file("Z")}));
  const ObjectId backwards = objects.store(inner_bytes(1, {{"a", leaf}, {"c", before}}));
  CHECK(code_of(read_tree(objects, backwards)) == ErrorCode::corrupt);
}

TEST_CASE("a search finds disorder corrupt as well, instead of finding nothing", "[tree][hostile]") {
  MemoryObjects objects;
  const auto search = [&](const Bytes& root) {
    return code_of(find_in_tree(objects, objects.store(root), "a"));
  };
  CHECK(search(leaf_bytes({file("b"), file("a")})) == ErrorCode::corrupt);
  CHECK(search(leaf_bytes({file("a"), file("a")})) == ErrorCode::corrupt);
  const ObjectId a = objects.store(leaf_bytes({file("a")})), b = objects.store(leaf_bytes({file("b")}));
  CHECK(search(inner_bytes(1, {{"b", b}, {"a", a}})) == ErrorCode::corrupt);
  CHECK(search(inner_bytes(1, {{"a", a}, {"a", a}})) == ErrorCode::corrupt);
  // A child that begins with another name than its parent says: the search would go astray.
  CHECK(search(inner_bytes(1, {{"a", b}})) == ErrorCode::corrupt);
  CHECK(code_of(read_tree(objects, objects.store(inner_bytes(1, {{"a", b}})))) == ErrorCode::corrupt);
}

TEST_CASE("a tree object at another level than its parent says is corrupt", "[tree][hostile]") {
  MemoryObjects objects;
  const ObjectId leaf = objects.store(leaf_bytes({file("a")}));
  const ObjectId inner = objects.store(inner_bytes(1, {{"a", leaf}}));
  const auto is_corrupt = [&](const ObjectId& root) {
    const auto read = read_tree(objects, root);
    const auto found = find_in_tree(objects, root, "a");
    return !read && read.error().code() == ErrorCode::corrupt && !found &&
           found.error().code() == ErrorCode::corrupt;
  };
  REQUIRE(value_of(read_tree(objects, inner)).size() == 1);
  CHECK(is_corrupt(objects.store(inner_bytes(2, {{"a", leaf}}))));
  CHECK(is_corrupt(objects.store(inner_bytes(1, {{"a", inner}}))));
  CHECK(is_corrupt(objects.store(inner_bytes(3, {{"a", inner}}))));
  CHECK(is_corrupt(objects.store(inner_bytes(13, {{"a", leaf}}))));
  CHECK(is_corrupt(objects.store(inner_bytes(255, {{"a", leaf}}))));
}

TEST_CASE("an inner node without children is corrupt", "[tree][hostile]") {
  MemoryObjects objects;
  CHECK(code_of(read_tree(objects, objects.store(inner_bytes(1, {})))) == ErrorCode::corrupt);
}

TEST_CASE("an empty leaf below an inner node is corrupt", "[tree][hostile]") {
  // Twelve levels of a thousand references each to one empty leaf take 500 KB, and 10^36 steps to walk: order
  // of names cannot end it.
  MemoryObjects objects;
  const ObjectId empty = objects.store(leaf_bytes({}));
  const ObjectId root = objects.store(inner_bytes(1, {{"a", empty}, {"b", empty}}));
  CHECK(code_of(read_tree(objects, root)) == ErrorCode::corrupt);
}

TEST_CASE("a tree object of a version that there is not is refused", "[tree][hostile]") {
  for (const std::uint8_t version : {0, 2, 255}) {
    MemoryObjects objects;
    Bytes bytes = leaf_bytes({file("a")});
    bytes[0] = version;
    CHECK_FALSE(read_tree(objects, objects.store(bytes)));
  }
}

TEST_CASE("a tree object cut at any length, or with bytes to spare, is corrupt", "[tree][hostile]") {
  MemoryObjects objects;
  const ObjectId leaf = objects.store(leaf_bytes({file("a")}));
  for (const Bytes& whole :
       {leaf_bytes({file("a", 1), file("b", 2)}), inner_bytes(1, {{"a", leaf}, {"b", leaf}})}) {
    testing::for_each_cut(whole, [&](const Bytes& cut, const std::string& what) {
      INFO(what);
      const ObjectId root = objects.store(cut);
      CHECK(code_of(read_tree(objects, root)) == ErrorCode::corrupt);
      CHECK(code_of(find_in_tree(objects, root, "a")) == ErrorCode::corrupt);
    });
    Bytes longer = whole;
    longer.push_back(0);
    CHECK(code_of(read_tree(objects, objects.store(longer))) == ErrorCode::corrupt);
  }
}

TEST_CASE("a damaged tree object is refused or has safe names in order", "[tree][hostile]") {
  std::size_t refused = 0;
  testing::for_each_flip(
      leaf_bytes({file("a", 1), file("b", 2), file("c", 3)}),
      [&](const Bytes& damaged, const std::string& what) {
        MemoryObjects objects;
        const auto nodes = read_tree(objects, objects.store(damaged));
        if (!nodes) {
          ++refused;
          return;
        }
        for (std::size_t i = 0; i < nodes->size(); ++i)
          if (!is_safe_name((*nodes)[i].name) || (i > 0 && !((*nodes)[i - 1].name < (*nodes)[i].name)))
            FAIL(what);
      });
  CHECK(refused > 50);
}

TEST_CASE("a count that the bytes cannot hold is corrupt and allocates nothing", "[tree][hostile]") {
  MemoryObjects objects;
  for (const int level : {0, 1}) {
    WireWriter out;
    out.u8(1);
    out.u8(static_cast<std::uint8_t>(level));
    out.varint(std::uint64_t{1} << 60);
    out.raw(Bytes(100, 1));
    CHECK(code_of(read_tree(objects, objects.store(out.take()))) == ErrorCode::corrupt);
  }
}

}  // namespace kin

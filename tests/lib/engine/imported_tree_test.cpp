#include "lib/engine/imported_tree.h"

#include "lib/object/tree.h"
#include "tests/support/expect.h"

#include <catch2/catch.hpp>

namespace kin {
namespace {

using testing::code_of;
using testing::require_ok;
using testing::value_of;

Node node_of(NodeType type, std::int64_t seconds = 0) {
  Node node;
  node.type = type;
  node.mtime = {seconds, 0};
  return node;
}

Node file_of(std::uint8_t number) {
  Node node = node_of(NodeType::file, number);
  ObjectId id;
  id.bytes.fill(number);
  node.size = number;
  node.content = {{Extent::Kind::data, node.size, id}};
  return node;
}

// "(a@7 b1 )": a directory with its time, a file with its size, and "x2#1": two links, inode 1.
std::string shape(const ImportedTree& tree) {
  std::string out;
  ImportedTree::Visitor visitor;
  visitor.enter = [&](Node node) -> Result<void> {
    out += "(" + node.name + "@" + std::to_string(node.mtime.seconds) + " ";
    return {};
  };
  visitor.add = [&](Node node) -> Result<void> {
    out += node.name + std::to_string(node.size);
    if (node.links > 1) out += "x" + std::to_string(node.links) + "#" + std::to_string(node.inode);
    out += " ";
    return {};
  };
  visitor.leave = [&]() -> Result<void> {
    out += ") ";
    return {};
  };
  const auto visited = tree.visit(visitor);
  return visited ? out : "error: " + visited.error().message();
}

ImportedTree empty_tree(std::string below = "") {
  return ImportedTree(std::move(below), node_of(NodeType::directory, 7));
}

TEST_CASE("entries in any order become a tree in order", "[engine]") {
  ImportedTree tree = empty_tree();
  for (const char* path : {"b", "a/z/1", "a.txt", "a/b", "a/z/0"}) require_ok(tree.add(file_of(1), path));
  require_ok(tree.add(node_of(NodeType::directory, 3), "a/z"));
  CHECK(shape(tree) == "(a@7 b1 (z@3 01 11 ) ) a.txt1 b1 ");
}

TEST_CASE("imported entries go below the path that was asked for", "[engine]") {
  ImportedTree tree = empty_tree("home/ann");
  require_ok(tree.add(node_of(NodeType::directory, 9), ""));
  require_ok(tree.add(file_of(2), "x"));
  CHECK(value_of(tree.add_link(node_of(NodeType::file), "y", "x")));
  CHECK(shape(tree) == "(home@7 (ann@9 x2x2#1 y2x2#1 ) ) ");
}

TEST_CASE("the root of an archive is nothing in the root of a snapshot", "[engine]") {
  ImportedTree tree = empty_tree();
  require_ok(tree.add(node_of(NodeType::directory), ""));
  CHECK(tree.empty());
}

TEST_CASE("of two imported entries with one name the later counts", "[engine]") {
  ImportedTree tree = empty_tree();
  require_ok(tree.add(file_of(1), "a"));
  CHECK(tree.replaced().entries == 0);
  require_ok(tree.add(node_of(NodeType::directory, 4), "a"));
  CHECK(tree.replaced().entries == 1);
  CHECK(tree.replaced().example == "a");
  require_ok(tree.add(node_of(NodeType::directory, 5), "a"));  // loses nothing
  CHECK(tree.replaced().entries == 1);
  require_ok(tree.add(file_of(2), "a/b"));
  require_ok(tree.add(file_of(3), "a/b"));
  CHECK(tree.replaced().entries == 2);
  CHECK(shape(tree) == "(a@5 b3 ) ");
}

TEST_CASE("imported hard links share their content, whichever name brings it", "[engine]") {
  ImportedTree tree = empty_tree();
  require_ok(tree.add(node_of(NodeType::file), "a"));
  CHECK(value_of(tree.add_link(file_of(4), "b", "a")));  // as cpio has it: the last one
  CHECK(value_of(tree.add_link(node_of(NodeType::file), "c", "b")));
  require_ok(tree.add(file_of(5), "d"));
  CHECK(value_of(tree.add_link(node_of(NodeType::file), "e", "d")));
  CHECK(value_of(tree.add_link(node_of(NodeType::file), "d", "d")));
  CHECK(tree.replaced().entries == 0);
  CHECK(shape(tree) == "a4x3#1 b4x3#1 c4x3#1 d5x2#2 e5x2#2 ");
  require_ok(tree.add(file_of(6), "e"));
  CHECK(shape(tree) == "a4x3#1 b4x3#1 c4x3#1 d5 e6 ");
}

TEST_CASE("a hard link to nothing, or to a directory, is told of", "[engine]") {
  ImportedTree tree = empty_tree();
  require_ok(tree.add(node_of(NodeType::directory), "d"));
  CHECK_FALSE(value_of(tree.add_link(file_of(1), "a", "nowhere")));
  CHECK_FALSE(value_of(tree.add_link(file_of(1), "a", "d")));
  CHECK(shape(tree) == "(d@0 ) ");
}

TEST_CASE("an entry below a file, or too deep, is refused", "[engine]") {
  ImportedTree tree = empty_tree();
  require_ok(tree.add(file_of(1), "a"));
  require_ok(tree.add(file_of(1), "a.b"));
  require_ok(tree.add(file_of(1), "a/b/c"));
  CHECK(shape(tree) == "error: a/b/c cannot be below a, which is no directory");
  std::string deep = "x";
  for (int i = 0; i < kMostDirectoryDepth; ++i) deep += "/x";
  CHECK(code_of(tree.add(file_of(1), deep)) == ErrorCode::unsupported);
}

}  // namespace
}  // namespace kin

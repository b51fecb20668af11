#include "lib/object/node.h"

#include "tests/support/damage.h"
#include "tests/support/expect.h"
#include "tests/support/ids.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <limits>

namespace kin {
namespace {

using testing::filled_id;

constexpr NodeType kAllTypes[] = {NodeType::file,        NodeType::directory, NodeType::symlink,
                                  NodeType::fifo,        NodeType::socket,    NodeType::character_device,
                                  NodeType::block_device};

// A node of this type with every field that the type has set to something.
Node full_node(NodeType type) {
  Node node;
  node.name = "name \xff\n";
  node.type = type;
  node.mode = 07777;
  node.uid = std::numeric_limits<std::uint32_t>::max();
  node.gid = 100;
  node.user = "jürgen";
  node.group = "users";
  node.mtime = {-5, 999'999'999};
  node.ctime = {std::numeric_limits<std::int64_t>::max(), 1};
  node.device = std::numeric_limits<std::uint64_t>::max();
  node.inode = 12345;
  if (type != NodeType::directory) node.links = 3;
  node.attributes = {{"user.empty", {}}, {"security.capability", testing::random_bytes(1, 20)}};
  switch (type) {
    case NodeType::file:
      node.size = 10'000'000'060;
      node.content = {{Extent::Kind::data, 50, filled_id(1)},
                      {Extent::Kind::hole, 10'000'000'000, {}},
                      {Extent::Kind::list, 10, filled_id(2)}};
      break;
    case NodeType::directory:
      node.subtree = filled_id(3);
      break;
    case NodeType::symlink:
      node.target = "../\xfe somewhere";
      break;
    case NodeType::character_device:
    case NodeType::block_device:
      node.device_number = (std::uint64_t{8} << 32) | 17;
      break;
    case NodeType::fifo:
    case NodeType::socket:
      break;
  }
  return node;
}

Bytes encoded(const Node& node) {
  WireWriter out;
  encode_node(node, out);
  return out.take();
}

std::optional<Node> decoded(ByteView bytes) {
  WireReader in(bytes);
  Node node = decode_node(in);
  if (!in.finish("node")) return std::nullopt;
  return node;
}

// The fields in the order of the format, so that a test can put in what encode_node never would.
struct RawNode {
  std::string name = "n";
  std::uint8_t type = 4, flags = 0;
  std::uint64_t mode = 0644, uid = 1, gid = 1;
  std::uint64_t mtime_nanoseconds = 0, ctime_nanoseconds = 0;
  Bytes tail;

  Bytes bytes() const {
    WireWriter out;
    out.text(name);
    out.u8(type);
    out.u8(flags);
    out.varint(mode);
    out.varint(uid);
    out.varint(gid);
    out.text("");
    out.text("");
    out.signed_varint(0);
    out.varint(mtime_nanoseconds);
    out.signed_varint(0);
    out.varint(ctime_nanoseconds);
    out.varint(0);
    out.varint(0);
    out.raw(tail);
    return out.take();
  }
};

Bytes file_tail(std::uint64_t size, const std::vector<Extent>& extents) {
  WireWriter out;
  out.varint(size);
  out.varint(extents.size());
  for (const Extent& extent : extents) encode_extent(extent, out);
  return out.take();
}

}  // namespace

TEST_CASE("a node of every type comes back with every field", "[node]") {
  for (const NodeType type : kAllTypes) {
    INFO(name_of(type));
    const Node node = full_node(type);
    CHECK(decoded(encoded(node)) == node);
    Node bare;
    bare.name = "x";
    bare.type = type;
    CHECK(decoded(encoded(bare)) == bare);
  }
}

TEST_CASE("a node's bytes are part of the format", "[node]") {
  Node node;
  node.name = "ab";
  node.mode = 0644;
  node.uid = 1000;
  node.gid = 100;
  node.user = "u";
  node.group = "g";
  node.mtime = {1, 2};
  node.ctime = {-1, 3};
  node.device = 4;
  node.inode = 5;
  node.links = 2;
  node.attributes = {{"a", {9}}};
  node.size = 7;
  node.content = {{Extent::Kind::hole, 7, {}}};
  CHECK(encoded(node) == Bytes{2,    'a',  'b',  // name
                               1,    3,          // a file, with attributes and links
                               0xa4, 0x03, 0xe8, 0x07, 100, 1, 'u', 1, 'g',  // mode, uid, gid, user, group
                               2,    2,    1,    3,    4,   5,               // mtime, ctime, device, inode
                               2,                                            // links
                               1,    1,    'a',  1,    9,                    // attributes
                               7,    1,    3,    7});                        // size, one extent, a hole
}

TEST_CASE("the numbers of node types and extent kinds never change", "[node]") {
  int number = 1;
  for (const NodeType type : kAllTypes) CHECK(static_cast<int>(type) == number++);
  CHECK(static_cast<int>(Extent::Kind::data) == 1);
  CHECK(static_cast<int>(Extent::Kind::list) == 2);
  CHECK(static_cast<int>(Extent::Kind::hole) == 3);
}

TEST_CASE("a node cut at any length is refused", "[node]") {
  for (const NodeType type : kAllTypes)
    testing::for_each_cut(encoded(full_node(type)), [&](const Bytes& cut, const std::string& what) {
      INFO(name_of(type) << " " << what);
      CHECK_FALSE(decoded(cut));
    });
}

TEST_CASE("a damaged node is refused or is a node with a safe name", "[node]") {
  std::size_t refused = 0;
  for (const NodeType type : kAllTypes)
    testing::for_each_flip(encoded(full_node(type)), [&](const Bytes& damaged, const std::string& what) {
      const std::optional<Node> node = decoded(damaged);
      if (!node) ++refused;
      if (node && (!is_safe_name(node->name) || node->mode > 07777 || node->mtime.nanoseconds > 999'999'999))
        FAIL(what);
    });
  CHECK(refused > 100);
}

TEST_CASE("random bytes never make an unsafe node", "[node]") {
  testing::Random random(2);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = testing::random_bytes(random.next(), random.below(80));
    for (std::uint8_t& byte : bytes) byte &= 0x0f;  // small numbers get further
    if (const std::optional<Node> node = decoded(bytes); node && !is_safe_name(node->name)) FAIL(hex(bytes));
  }
  CHECK(decoded(RawNode{}.bytes()));
}

TEST_CASE("a name that could leave its directory is refused", "[node]") {
  for (const std::string& name : {std::string(""), std::string("."), std::string(".."), std::string("/"),
                                  std::string("a/b"), std::string("../x"), std::string("/etc/passwd"),
                                  std::string("a\0b", 3), std::string("\0", 1), std::string("a/")}) {
    INFO(printable(name));
    CHECK_FALSE(is_safe_name(name));
    RawNode raw;
    raw.name = name;
    CHECK_FALSE(decoded(raw.bytes()));
  }
  for (const char* name : {"a", "...", "..a", ".a", " ", "\n", "\xff", "-rf"}) {
    CHECK(is_safe_name(name));
    RawNode raw;
    raw.name = name;
    CHECK(decoded(raw.bytes()));
  }
}

TEST_CASE("a link's target and an attribute's name that the system would cut at a NUL are refused",
          "[node]") {
  Node link;
  link.name = "link";
  link.type = NodeType::symlink;
  link.target = std::string("a\0b", 3);
  CHECK_FALSE(decoded(encoded(link)));
  link.target = "a";
  CHECK(decoded(encoded(link)));
  link.attributes = {{std::string("user.a\0b", 8), {}}};
  CHECK_FALSE(decoded(encoded(link)));
}

TEST_CASE("types, flags and extent kinds that there are not are refused", "[node]") {
  for (int type = 0; type < 256; ++type) {
    RawNode raw;
    raw.type = static_cast<std::uint8_t>(type);
    if (type == 1) raw.tail = file_tail(0, {});
    if (type == 2) raw.tail = Bytes(32);
    if (type == 3 || type == 6 || type == 7) raw.tail = {0};
    INFO(type);
    CHECK(decoded(raw.bytes()).has_value() == (type >= 1 && type <= 7));
  }
  for (int flag = 4; flag < 256; flag *= 2) {
    RawNode raw;
    raw.flags = static_cast<std::uint8_t>(flag);
    CHECK_FALSE(decoded(raw.bytes()));
  }
  for (const int kind : {0, 5, 255}) {
    RawNode raw;
    raw.type = 1;
    raw.tail = file_tail(5, {{static_cast<Extent::Kind>(kind), 5, filled_id(1)}});
    CHECK_FALSE(decoded(raw.bytes()));
  }
}

TEST_CASE("extents must add up to the file's size", "[node]") {
  const auto accepted = [](std::uint64_t size, const std::vector<Extent>& extents) {
    RawNode raw;
    raw.type = 1;
    raw.tail = file_tail(size, extents);
    return decoded(raw.bytes()).has_value();
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto data = [](std::uint64_t size) { return Extent{Extent::Kind::data, size, filled_id(1)}; };
  const auto hole = [](std::uint64_t size) { return Extent{Extent::Kind::hole, size, {}}; };
  CHECK(accepted(0, {}));
  CHECK(accepted(7, {data(3), hole(4)}));
  CHECK(accepted(kMost, {hole(kMost)}));
  CHECK_FALSE(accepted(1, {}));
  CHECK_FALSE(accepted(0, {data(0)}));  // an empty file has no extents
  CHECK_FALSE(accepted(3, {data(3), hole(0)}));
  CHECK_FALSE(accepted(7, {data(3), hole(3)}));
  CHECK_FALSE(accepted(7, {data(3), hole(5)}));
  CHECK_FALSE(accepted(6, {data(kMost), data(7)}));  // 2^64 + 6
}

TEST_CASE("a mode beyond the permission bits and a second with too many nanoseconds are refused", "[node]") {
  RawNode mode;
  mode.mode = 07777;
  CHECK(decoded(mode.bytes()));
  mode.mode = 010000;
  CHECK_FALSE(decoded(mode.bytes()));
  RawNode mtime;
  mtime.mtime_nanoseconds = 1'000'000'000;
  CHECK_FALSE(decoded(mtime.bytes()));
  RawNode ctime;
  ctime.ctime_nanoseconds = 1'000'000'000;
  CHECK_FALSE(decoded(ctime.bytes()));
}

TEST_CASE("a number too large for its field is refused, not cut off", "[node]") {
  constexpr std::uint64_t kTooLarge = (std::uint64_t{1} << 32) | 5;
  RawNode mode, uid, gid, mtime, ctime;
  mode.mode = kTooLarge;
  uid.uid = kTooLarge;
  gid.gid = kTooLarge;
  mtime.mtime_nanoseconds = kTooLarge;
  ctime.ctime_nanoseconds = kTooLarge;
  CHECK_FALSE(decoded(mode.bytes()));
  CHECK_FALSE(decoded(uid.bytes()));
  CHECK_FALSE(decoded(gid.bytes()));
  CHECK_FALSE(decoded(mtime.bytes()));
  CHECK_FALSE(decoded(ctime.bytes()));
}

TEST_CASE("a claimed count of attributes or extents does not allocate for what is not there", "[node]") {
  RawNode attributes;
  attributes.flags = 1;
  WireWriter count;
  count.varint(std::uint64_t{1} << 40);
  attributes.tail = count.bytes();
  CHECK_FALSE(decoded(attributes.bytes()));
  RawNode extents;
  extents.type = 1;
  WireWriter tail;
  tail.varint(0);
  tail.varint(std::uint64_t{1} << 40);
  extents.tail = tail.bytes();
  CHECK_FALSE(decoded(extents.bytes()));
}

TEST_CASE("names of one file have one digest, and a change of what it holds another", "[node]") {
  for (const NodeType type : kAllTypes) {
    const Node node = full_node(type);
    Node other = node;
    other.name = "another";
    other.mode = 0;
    other.mtime = {1, 2};
    CHECK(content_digest(other) == content_digest(node));
    other.type = type == NodeType::fifo ? NodeType::socket : NodeType::fifo;
    CHECK(content_digest(other) != content_digest(node));
  }
  Node file = full_node(NodeType::file), link = full_node(NodeType::symlink),
       device = full_node(NodeType::block_device);
  file.content[0].id = filled_id(9);
  link.target = "elsewhere";
  device.device_number = 1;
  for (const Node& node : {file, link, device})
    CHECK(content_digest(node) != content_digest(full_node(node.type)));
}

TEST_CASE("types have the names that other tools use", "[node]") {
  CHECK(name_of(NodeType::file) == "file");
  CHECK(name_of(NodeType::directory) == "dir");
  CHECK(name_of(NodeType::symlink) == "symlink");
  CHECK(name_of(NodeType::fifo) == "fifo");
  CHECK(name_of(NodeType::socket) == "socket");
  CHECK(name_of(NodeType::character_device) == "chardev");
  CHECK(name_of(NodeType::block_device) == "dev");
}

}  // namespace kin

#include "lib/object/node.h"

namespace kin {
namespace {

// What follows the fixed fields; a bit per optional part, so that the common node is short.
enum NodeFlag : std::uint8_t { has_attributes = 1, has_links = 2 };

constexpr std::uint64_t kMostId = 0xffff'ffff;

void encode_time(Timestamp time, WireWriter& out) {
  out.signed_varint(time.seconds);
  out.varint(time.nanoseconds);
}

Timestamp decode_time(WireReader& in) {
  Timestamp time;
  time.seconds = in.signed_varint();
  time.nanoseconds = static_cast<std::uint32_t>(in.varint_up_to(999'999'999));
  return time;
}

}  // namespace

std::string_view name_of(NodeType type) {
  switch (type) {
    case NodeType::file:
      return "file";
    case NodeType::directory:
      return "dir";
    case NodeType::symlink:
      return "symlink";
    case NodeType::fifo:
      return "fifo";
    case NodeType::socket:
      return "socket";
    case NodeType::character_device:
      return "chardev";
    case NodeType::block_device:
      return "dev";
  }
  return "unknown";
}

Digest content_digest(const Node& node) {
  WireWriter out;
  out.u8(static_cast<std::uint8_t>(node.type));
  out.varint(node.device_number);
  out.text(node.target);
  for (const Extent& extent : node.content) encode_extent(extent, out);
  return hash(out.bytes());
}

bool is_safe_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

void encode_extent(const Extent& extent, WireWriter& out) {
  out.u8(static_cast<std::uint8_t>(extent.kind));
  out.varint(extent.size);
  if (extent.kind != Extent::Kind::hole) out.raw(extent.id.bytes);
}

Extent decode_extent(WireReader& in) {
  Extent extent;
  const std::uint8_t kind = in.u8();
  if (kind < 1 || kind > 4) in.fail();
  extent.kind = static_cast<Extent::Kind>(kind);
  extent.size = in.varint();
  // Lists of lists of nothing would take for ever to walk; sizes that add up are what bounds a walk.
  if (extent.size == 0) in.fail();
  if (extent.kind != Extent::Kind::hole) extent.id.bytes = in.array<32>();
  return extent;
}

void encode_node(const Node& node, WireWriter& out) {
  out.text(node.name);
  out.u8(static_cast<std::uint8_t>(node.type));
  const bool linked = node.links > 1 && node.type != NodeType::directory;
  out.u8(
      static_cast<std::uint8_t>((node.attributes.empty() ? 0 : has_attributes) | (linked ? has_links : 0)));
  out.varint(node.mode);
  out.varint(node.uid);
  out.varint(node.gid);
  out.text(node.user);
  out.text(node.group);
  encode_time(node.mtime, out);
  encode_time(node.ctime, out);
  out.varint(node.device);
  out.varint(node.inode);
  if (linked) out.varint(node.links);
  if (!node.attributes.empty()) {
    out.varint(node.attributes.size());
    for (const ExtendedAttribute& attribute : node.attributes) {
      out.text(attribute.name);
      out.blob(attribute.value);
    }
  }
  switch (node.type) {
    case NodeType::file:
      out.varint(node.size);
      out.varint(node.content.size());
      for (const Extent& extent : node.content) encode_extent(extent, out);
      break;
    case NodeType::directory:
      out.raw(node.subtree.bytes);
      break;
    case NodeType::symlink:
      out.text(node.target);
      break;
    case NodeType::character_device:
    case NodeType::block_device:
      out.varint(node.device_number);
      break;
    case NodeType::fifo:
    case NodeType::socket:
      break;
  }
}

Node decode_node(WireReader& in) {
  Node node;
  node.name = in.text();
  const std::uint8_t type = in.u8();
  if (type < 1 || type > 7) in.fail();
  node.type = static_cast<NodeType>(type);
  const std::uint8_t flags = in.u8();
  if ((flags & ~(has_attributes | has_links)) != 0) in.fail();
  node.mode = static_cast<std::uint32_t>(in.varint_up_to(07777));
  node.uid = static_cast<std::uint32_t>(in.varint_up_to(kMostId));
  node.gid = static_cast<std::uint32_t>(in.varint_up_to(kMostId));
  node.user = in.text();
  node.group = in.text();
  node.mtime = decode_time(in);
  node.ctime = decode_time(in);
  node.device = in.varint();
  node.inode = in.varint();
  if (flags & has_links) node.links = in.varint();
  if (flags & has_attributes) {
    node.attributes.resize(in.count(2));
    for (ExtendedAttribute& attribute : node.attributes) {
      attribute.name = in.text();
      if (attribute.name.find('\0') != std::string::npos) in.fail();  // the system would see another name
      const ByteView value = in.blob();
      attribute.value.assign(value.begin(), value.end());
    }
  }
  if (in.failed()) return node;
  switch (node.type) {
    case NodeType::file: {
      node.size = in.varint();
      node.content.resize(in.count(2));
      std::uint64_t left = node.size;
      for (Extent& extent : node.content) {
        extent = decode_extent(in);
        if (extent.size > left) in.fail();
        left -= extent.size;
      }
      if (left != 0) in.fail();
      break;
    }
    case NodeType::directory:
      node.subtree.bytes = in.array<32>();
      break;
    case NodeType::symlink:
      node.target = in.text();
      if (node.target.find('\0') != std::string::npos) in.fail();  // nor can a link lead there
      break;
    case NodeType::character_device:
    case NodeType::block_device:
      node.device_number = in.varint();
      break;
    case NodeType::fifo:
    case NodeType::socket:
      break;
  }
  if (!is_safe_name(node.name)) in.fail();
  return node;
}

}  // namespace kin

// Node: everything that a file is, besides its bytes. One entry of a Tree.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "lib/object/object_id.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kin {

// Written to disk; no number is ever reused.
enum class NodeType : std::uint8_t {
  file = 1,
  directory = 2,
  symlink = 3,
  fifo = 4,
  socket = 5,
  character_device = 6,
  block_device = 7,
};

std::string_view name_of(NodeType type);  // "file", "dir", "symlink" ...: restic's words

// A run of a file's content, in order. Written to disk; no number is ever reused.
struct Extent {
  enum class Kind : std::uint8_t {
    data = 1,       // one object
    list = 2,       // an object that lists extents (see content.h)
    hole = 3,       // zeros that the file does not store; no object
    container = 4,  // a recipe, whose parts are the content (lib/container)
  };
  Kind kind = Kind::data;
  std::uint64_t size = 0;  // bytes of content
  ObjectId id;             // but not of holes

  bool operator==(const Extent&) const = default;
};

struct ExtendedAttribute {
  std::string name;  // with its namespace: user.x, system.posix_acl_access
  Bytes value;
  bool operator==(const ExtendedAttribute&) const = default;
};

struct Node {
  std::string name;  // bytes, one path component
  NodeType type = NodeType::file;
  std::uint32_t mode = 0;  // permission bits with setuid, setgid and sticky: 07777
  std::uint32_t uid = 0, gid = 0;
  std::string user, group;  // empty where the system has no name for the number
  Timestamp mtime, ctime;
  std::uint64_t device = 0, inode = 0;  // device and inode: change detection, and which names are one file
  std::uint64_t links = 1;
  std::vector<ExtendedAttribute> attributes;

  std::uint64_t size = 0;           // files
  std::vector<Extent> content;      // files
  ObjectId subtree;                 // directories
  std::string target;               // symlinks
  std::uint64_t device_number = 0;  // devices: major << 32 | minor

  bool operator==(const Node&) const = default;
};

void encode_node(const Node& node, WireWriter& out);
// On malformed input the reader is failed; the caller asks reader.finish().
Node decode_node(WireReader& in);

// Of what all names of one file have in common, whatever its metadata: type, content, target, device number.
// A file that was written between two of its names is two files in the snapshot, and their digests tell.
Digest content_digest(const Node& node);

// A name that cannot leave its directory: not empty, no '/', no NUL, not "." or "..". Trees that hold any
// other are corrupt.
bool is_safe_name(std::string_view name);

void encode_extent(const Extent& extent, WireWriter& out);
Extent decode_extent(WireReader& in);

}  // namespace kin

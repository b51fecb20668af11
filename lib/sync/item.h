// Item: what is kept the same on all replicas: a message in a folder, a file, a directory.
//
// A message is its content. Where it is in the folder, and under which name, is each replica's own business:
// so a Maildir file that is renamed since a flag changed, or an MH folder that is renumbered, is the same
// item as before. The same content twice in a folder is two items, told apart by their copy number. A file is
// its path.
#pragma once

#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "lib/object/object_id.h"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace kin::sync {

// Written to disk and wire; no number is ever reused.
enum class ItemType : std::uint8_t {
  message = 1,
  file = 2,
  directory = 3,  // also a folder of mail
  symlink = 4,
  words = 5,  // a set of lines, such as the subscriptions of a Maildir
};

// Flags of messages, by the letters of Maildir: bits, written to disk and wire.
enum Flag : std::uint8_t {
  kDraft = 1,     // D
  kFlagged = 2,   // F
  kPassed = 4,    // P
  kReplied = 8,   // R
  kSeen = 16,     // S
  kTrashed = 32,  // T
};
inline constexpr std::uint8_t kAllFlags = 63;

// Longer ones are refused, wherever they come from.
inline constexpr std::size_t kMostFolderBytes = 4000;
inline constexpr std::size_t kMostNameBytes = 255;
inline constexpr std::size_t kMostWords = 4000;
inline constexpr std::size_t kMostWordBytes = 255;
inline constexpr std::uint32_t kAllModes =
    0777;  // owners are not kept, so that setuid would be somebody else's

struct Item {
  ItemType type = ItemType::message;
  // Where it is: a path below the store's root, as the kind of store names its folders; empty: the root.
  std::string folder;
  // Of a message: the name that it has where it comes from, without what stands for flags; a hint, and no
  // part of the item. Of all others: the name in the folder. (Folders of mail are in the folder "", and
  // `name` is the whole path.)
  std::string name;
  ObjectId object;                 // of a message's or file's content
  std::uint64_t size = 0;          // of that content
  std::uint32_t copy = 0;          // of messages: 0, 1 ... for equal ones in a folder
  std::uint8_t flags = 0;          // of a message
  std::vector<std::string> words;  // keywords of a message, or the lines; in order, none twice
  Timestamp time;                  // when a message came, which is not compared; of files the mtime, which is
  std::uint32_t mode = 0;          // permissions of files and directories; 0 for mail
  std::string target;              // of a symlink
};

inline bool bears_content(const Item& item) {
  return item.type == ItemType::message || item.type == ItemType::file;
}

using ItemId = std::array<std::uint8_t, 16>;  // ordered by its bytes
// Which item it is: the same for all its states.
ItemId item_id(const Item& item);

// The state that it is in, as 128 bits: replicas are the same if the sums of these are.
using StateHash = std::array<std::uint64_t, 2>;
StateHash state_hash(const Item& item);
bool same_state(const Item& a, const Item& b);

// An ObjectId without a repository: BLAKE2b-256 with no key.
ObjectId object_id(ByteView content);

void encode_item(const Item& item, WireWriter& out);
// Fails the reader for what check_item() refuses.
Item decode_item(WireReader& in);

// corrupt, unless its names are such that nothing outside the root can be meant: no "..", no NUL, no empty
// component, no "/" in a name (but of a mail folder's), lengths within bounds, words in order.
Result<void> check_item(const Item& item);

}  // namespace kin::sync

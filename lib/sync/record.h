// Record: what happened to an item, as one end tells the other. Many travel together, column by column: what
// is alike stands side by side and compresses to almost nothing, so that a changed flag takes some 6 bytes.
//
// An item that both ends have is named by the first bytes of its id, as many as make it the only one of those
// that both have.
#pragma once

#include "lib/sync/item.h"
#include "lib/sync/stamp.h"

#include <vector>

namespace kin::sync {

inline constexpr std::size_t kLeastReferenceBytes =
    5;  // a stranger is met by chance once in a million million

struct Record {
  // On the wire; never reused.
  enum class Kind : std::uint8_t {
    remove = 0,    // `reference` goes
    update = 1,    // the message `reference` has other flags and words: those of `item`
    move = 2,      // the message `reference` goes, and is in item.folder from now on
    place = 3,     // what the message `reference` contains is in item.folder as well
    full = 4,      // `item`, all of it; its content is there already, or it has none
    announce = 5,  // `item`, whose content would follow if this were no rehearsal
  };

  Kind kind = Kind::remove;
  Stamp stamp;
  Stamp replaces;  // a state of the receiver's own that was merged into this one; none if 0
  Stamp removed;   // move: the stamp of the item that goes
  Bytes reference;
  Item item;  // move, place: folder, copy, flags, words
};

// About what a record takes: batches are cut by it.
std::size_t record_bytes(const Record& record);

Bytes encode_records(const std::vector<Record>& records);
Result<std::vector<Record>> decode_records(ByteView bytes);

}  // namespace kin::sync

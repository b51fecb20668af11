// The rows of a replica's table, by the first byte of their keys:
//
//     M                          the head: id, identity, last sequence, what was seen, digest, count of items
//     P  replica(8)              a peer
//     I  item id(16)             an item: stamp, state, place, past states
//     J  replica(8) sequence(8)  which item a stamp is that of, as long as it is
//     O  object(32) item id(16)  live items by content
//     X  item id(16)             deleted items
//     D  folder                  a folder, and its fingerprint
//     F  folder 0 local          an entry as the last scan saw it
//     N  key                     notes; keys begin with d (disks that are mounted), l and m (bases), s (block
//                                signatures), t (trash), w (words that the store cannot have)
//
// Numbers in keys are big-endian, so that their order is that of the numbers.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>

namespace kin::sync::rows {

inline Bytes key_of(char table) { return {static_cast<std::uint8_t>(table)}; }

inline Bytes key_of(char table, ByteView rest) {
  Bytes out = key_of(table);
  append(out, rest);
  return out;
}

inline void append_number(Bytes& key, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<std::uint8_t>(number >> shift));
}

inline bool starts_with(ByteView key, ByteView prefix) {
  return key.size() >= prefix.size() && equal(key.first(prefix.size()), prefix);
}

}  // namespace kin::sync::rows

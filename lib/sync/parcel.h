// Parcel: new items with their contents, or pieces of a long one, compressed together against what the other
// end has.
//
// Mail resembles much other mail a little. So a parcel is compressed with a prefix: the end of what was sent
// before it, and the contents of some items that both ends have (bases), the likeliest last. Each content is
// compared with its hash before it is kept; a base that is not what it was is noticed by that.
#pragma once

#include "lib/container/container_format.h"
#include "lib/delta/codec.h"
#include "lib/sync/item.h"
#include "lib/sync/stamp.h"

#include <vector>

namespace kin::sync {

inline constexpr std::size_t kMostParcelBytes = 4 << 20;  // of content
inline constexpr std::size_t kMostBaseBytes = 8 << 20;    // of all bases together
inline constexpr std::size_t kMostBases = 255;
inline constexpr std::size_t kMostPieces = 4096;
inline constexpr std::size_t kWindowBytes = 512 << 10;  // of what was sent before

struct Piece {
  Stamp stamp, replaces;  // as of a Record
  Item item;
  std::uint64_t offset = 0;
  Bytes content;  // from there on; all of it, for most
  Bytes opened;   // a whole content as it travels, if that is another form

  bool is_whole() const { return content.size() == item.size; }
};

struct ParcelHead {
  std::vector<Bytes> bases;  // references to items, as in a Record
  std::size_t window_bytes = 0;
  std::size_t plain_bytes = 0;
  ByteView payload;
};

Result<Bytes> encode_parcel(const std::vector<Piece>& pieces, const std::vector<Bytes>& bases,
                            std::size_t window_bytes, ByteView prefix, Codec& codec);
Result<ParcelHead> decode_parcel_head(ByteView bytes);  // valid as long as the bytes
// wrong_base: a content does not come out as it was, so that the prefix is not what the sender had. `formats`
// may be null: then opened contents are refused so too.
Result<std::vector<Piece>> decode_parcel(const ParcelHead& head, ByteView prefix, Codec& codec,
                                         const Formats* formats);

// What was sent in one direction of one exchange, as far as it serves as a prefix.
class SentWindow {
 public:
  void add(const std::vector<Piece>& pieces);
  void clear() { bytes_.clear(); }
  std::size_t size() const { return bytes_.size(); }
  ByteView last(std::size_t bytes) const { return ByteView(bytes_).last(bytes); }  // at most size()

 private:
  Bytes bytes_;
};

}  // namespace kin::sync

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

// A content, or some of a long one, as it travels.
struct Piece {
  enum class Form : std::uint8_t {
    plain,       // as it is
    opened,      // a whole one, opened_content.h
    difference,  // from the file's former content, block_delta.h
  };

  Stamp stamp, replaces;  // as of a Record
  Item item;
  std::uint64_t offset = 0;
  std::size_t length = 0;  // of content, from there on; all of it, for most
  Form form = Form::plain;
  ObjectId former;  // of a difference; only its front travels
  Bytes travels;
  Bytes content;  // what came of it; of a difference only once it was played

  bool is_whole() const { return length == item.size; }
  bool is_last() const { return offset + length == item.size; }
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
// may be null: then opened contents are refused so too. Differences are left to be played.
Result<std::vector<Piece>> decode_parcel(const ParcelHead& head, ByteView prefix, Codec& codec,
                                         const Formats* formats);
// The content of a piece, which if it is whole gives its object's id. False: it is not what was sent.
bool take_content(Piece& piece, Bytes content);
// Whether this can be the content that a difference is meant for.
bool is_former(const Piece& piece, const ObjectId& object);

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

// Block: the stored unit. One or more objects, encoded together, against at most one base.
//
// Its content is its objects' bytes one after the other. The header says all that is needed to decode the
// payload and to rebuild the index and the feature store: docs/format.md draws it.
#pragma once

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/delta/codec.h"
#include "lib/delta/effort.h"
#include "lib/object/object_id.h"
#include "lib/object/object_store.h"
#include "lib/object/sketch.h"

#include <map>
#include <optional>
#include <vector>

namespace kin {

// No block's content is larger, so no decoder allocates more, whatever a header claims.
inline constexpr std::size_t kMostBlockBytes = 64 << 20;
inline constexpr std::size_t kMostBlockObjects = 1 << 20;

struct BlockObject {
  ObjectId id;
  ObjectKind kind = ObjectKind::data;
  std::uint64_t size = 0;
  Sketch features;  // may be empty

  bool operator==(const BlockObject&) const = default;
};

struct BlockHeader {
  std::uint8_t codec = 0;          // a CodecId, or one of a newer kin
  std::optional<ObjectId> base;    // the object that the payload is a delta against
  std::uint64_t content_size = 0;  // the sum of the objects' sizes
  std::vector<BlockObject> objects;

  bool operator==(const BlockHeader&) const = default;
};

Bytes encode_block_header(const BlockHeader& header);
Result<BlockHeader> decode_block_header(ByteView bytes);

// Content as a codec leaves it.
struct Encoding {
  CodecId codec = CodecId::plain;
  Bytes payload;
};

struct EncodedBlock {
  BlockHeader header;
  Bytes payload;
  bool refused = false;  // an encoding did not decode to the same bytes, so the content was kept plain: bad
                         // memory, or a bug
};

// One instance per thread.
class BlockEncoder {
 public:
  explicit BlockEncoder(const Effort& effort);
  ~BlockEncoder();

  // The smallest encoding: plain, if nothing is smaller than the content.
  // `is_long`: the backup is a long one (Effort::long_after_bytes).
  Encoding compress_group(ByteView content, bool is_long = false) {
    return compress(content, is_long ? effort_.long_group_level : effort_.group_level);
  }
  Encoding compress_whole(ByteView content, bool is_long = false);
  Encoding compress(ByteView content, int level);  // of zstd
  // The smallest against this base; nothing if none is smaller than the content. close: they have much in
  // common, so that a thorough search pays.
  std::optional<Encoding> compress_delta(ByteView base, ByteView content, bool close);
  // What one codec alone makes of it; the content's size if that is not smaller.
  std::size_t delta_bytes(CodecId id, ByteView base, ByteView content);
  // Decodes and compares; what does not give back the same bytes is replaced by the plain content.
  EncodedBlock keep(std::vector<BlockObject> objects, ByteView content, Encoding encoding,
                    const std::optional<ObjectId>& base = {}, ByteView base_content = {});

 private:
  bool is_dense(ByteView content);
  Codec& codec(CodecId id, int level);  // made when first needed

  const Effort effort_;
  std::map<CodecId, std::unique_ptr<Codec>> codecs_;
  Bytes decoded_;
};

// One instance per thread.
class BlockDecoder {
 public:
  // `base` is the content of header.base, if it has one.
  Result<Bytes> decode(const BlockHeader& header, ByteView base, ByteView payload);

 private:
  std::vector<std::unique_ptr<Codec>> codecs_;  // by wire id, made when first needed
};

}  // namespace kin

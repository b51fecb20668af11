// Index segment: an immutable, sorted list of what some packs hold. Segments may be merged in any order, and
// twice: they only say what is so.
#pragma once

#include "lib/delta/block.h"
#include "lib/object/object_id.h"
#include "store/pack.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kin::store {

struct IndexPack {
  ObjectId id;  // its file name
  std::uint64_t size = 0;
};

struct IndexBlock {
  std::uint32_t pack = 0;  // position in `packs`
  BlockRange range;
  std::uint64_t content_size = 0;
  std::uint8_t codec = 0;
  std::optional<ObjectId> base;
};

struct IndexObject {
  ObjectId id;
  ObjectKind kind = ObjectKind::data;
  std::uint32_t block = 0;  // position in `blocks`
  std::uint64_t size = 0;
};

struct IndexSegment {
  std::vector<IndexPack> packs;
  std::vector<IndexBlock> blocks;
  std::vector<IndexObject> objects;  // strictly ascending by id once sorted

  // The pack's blocks and objects are added; objects that are listed already stay where they were.
  void add_block(std::uint32_t pack, const BlockHeader& header, BlockRange range);
  // Adds the blocks that `other` lists in these packs at offsets that are not among those given, which it
  // then joins. Gives the number of objects added.
  std::size_t add_missing(const IndexSegment& other,
                          std::map<std::string, std::set<std::uint64_t>>& packs_and_offsets);
  // Adds all that `other` lists but what is in these packs.
  void add_others(const IndexSegment& other, const std::set<ObjectId>& without);
  void sort();  // of an object that is listed twice, the first place stays
  // Before sort(): a block with an object that an earlier block has goes into the segment that is given back,
  // which may have repeats of its own. Every block is in one of the two, with all its objects.
  IndexSegment take_repeats();
  // Time to write it. Packs without a segment are found again by Repository::begin_writing(), so this is
  // generous.
  bool fills_a_segment() const { return objects.size() >= 65536 || packs.size() >= 256; }
};

Bytes encode_index_segment(const IndexSegment& segment);  // must be sorted
Result<IndexSegment> decode_index_segment(ByteView bytes);

}  // namespace kin::store

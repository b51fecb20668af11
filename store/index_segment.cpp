#include "store/index_segment.h"

#include "lib/base/wire.h"

#include <algorithm>
#include <unordered_map>

namespace kin::store {
namespace {

constexpr std::uint8_t kIndexVersion = 1;
constexpr std::uint64_t kMost32 = 0xffff'ffff;
enum IndexBlockFlag : std::uint8_t { has_base = 1 };

}  // namespace

void IndexSegment::add_block(std::uint32_t pack, const BlockHeader& header, BlockRange range) {
  const auto block = static_cast<std::uint32_t>(blocks.size());
  blocks.push_back({pack, range, header.content_size, header.codec, header.base});
  for (const BlockObject& object : header.objects)
    objects.push_back({object.id, object.kind, block, object.size});
}

std::size_t IndexSegment::add_missing(const IndexSegment& other,
                                      std::map<std::string, std::set<std::uint64_t>>& packs_and_offsets) {
  std::map<std::uint32_t, std::uint32_t> new_numbers;  // of other's blocks
  for (std::uint32_t i = 0; i < other.blocks.size(); ++i) {
    IndexBlock block = other.blocks[i];
    const IndexPack& pack = other.packs[block.pack];
    const auto at = packs_and_offsets.find(pack.id.hex());
    if (at == packs_and_offsets.end() || !at->second.insert(block.range.offset).second) continue;
    const auto same =
        std::find_if(packs.begin(), packs.end(), [&](const IndexPack& known) { return known.id == pack.id; });
    block.pack = static_cast<std::uint32_t>(same - packs.begin());
    if (same == packs.end()) packs.push_back(pack);
    // The pack may be shorter by now than it was.
    const std::uint64_t size = packs[block.pack].size;
    if (block.range.offset > size || block.range.size > size - block.range.offset) continue;
    new_numbers[i] = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back(block);
  }
  std::size_t added = 0;
  for (IndexObject object : other.objects) {
    const auto number = new_numbers.find(object.block);
    if (number == new_numbers.end()) continue;
    object.block = number->second;
    objects.push_back(object);
    ++added;
  }
  return added;
}

void IndexSegment::add_others(const IndexSegment& other, const std::set<ObjectId>& without) {
  constexpr std::uint32_t kLeftOut = UINT32_MAX;
  std::vector<std::uint32_t> pack_numbers, block_numbers;  // of other's, here
  for (const IndexPack& pack : other.packs) {
    const bool is_left_out = without.contains(pack.id);
    pack_numbers.push_back(is_left_out ? kLeftOut : static_cast<std::uint32_t>(packs.size()));
    if (!is_left_out) packs.push_back(pack);
  }
  for (IndexBlock block : other.blocks) {
    block.pack = pack_numbers[block.pack];
    block_numbers.push_back(block.pack == kLeftOut ? kLeftOut : static_cast<std::uint32_t>(blocks.size()));
    if (block.pack != kLeftOut) blocks.push_back(block);
  }
  for (IndexObject object : other.objects) {
    object.block = block_numbers[object.block];
    if (object.block != kLeftOut) objects.push_back(object);
  }
}

IndexSegment IndexSegment::take_repeats() {
  std::stable_sort(objects.begin(), objects.end(),
                   [](const IndexObject& a, const IndexObject& b) { return a.block < b.block; });
  std::unordered_map<ObjectId, std::uint32_t, ObjectIdHash> first_blocks;  // of those that stay
  std::vector<bool> moves(blocks.size());
  for (auto begin = objects.begin(), end = begin; begin != objects.end(); begin = end) {
    const std::uint32_t block = begin->block;
    end =
        std::find_if(begin, objects.end(), [&](const IndexObject& object) { return object.block != block; });
    moves[block] =
        std::any_of(begin, end, [&](const IndexObject& object) { return first_blocks.contains(object.id); });
    if (moves[block]) continue;
    for (auto at = begin; at != end; ++at) first_blocks.emplace(at->id, block);
  }
  if (std::find(moves.begin(), moves.end(), true) == moves.end()) return {};

  const IndexSegment all = std::move(*this);
  IndexSegment repeats;
  packs = all.packs;  // those whose every block moves too: who reads this one alone knows all packs
  std::vector<std::uint32_t> numbers;                   // of blocks, in the segment where each is now
  std::map<std::uint32_t, std::uint32_t> pack_numbers;  // in `repeats`
  for (std::uint32_t i = 0; i < all.blocks.size(); ++i) {
    IndexBlock block = all.blocks[i];
    if (moves[i]) {
      const auto [at, is_new] =
          pack_numbers.emplace(block.pack, static_cast<std::uint32_t>(repeats.packs.size()));
      if (is_new) repeats.packs.push_back(all.packs[block.pack]);
      block.pack = at->second;
    }
    std::vector<IndexBlock>& into = moves[i] ? repeats.blocks : blocks;
    numbers.push_back(static_cast<std::uint32_t>(into.size()));
    into.push_back(block);
  }
  objects.clear();
  for (IndexObject object : all.objects) {
    std::vector<IndexObject>& into = moves[object.block] ? repeats.objects : objects;
    object.block = numbers[object.block];
    into.push_back(object);
  }
  return repeats;
}

void IndexSegment::sort() {
  std::stable_sort(objects.begin(), objects.end(),
                   [](const IndexObject& a, const IndexObject& b) { return a.id < b.id; });
  const auto end = std::unique(objects.begin(), objects.end(),
                               [](const IndexObject& a, const IndexObject& b) { return a.id == b.id; });
  objects.erase(end, objects.end());
}

Bytes encode_index_segment(const IndexSegment& segment) {
  WireWriter out;
  out.u8(kIndexVersion);
  out.varint(segment.packs.size());
  for (const IndexPack& pack : segment.packs) {
    out.raw(pack.id.bytes);
    out.varint(pack.size);
  }
  out.varint(segment.blocks.size());
  for (const IndexBlock& block : segment.blocks) {
    out.varint(block.pack);
    out.varint(block.range.offset);
    out.varint(block.range.size);
    out.varint(block.content_size);
    out.u8(block.codec);
    out.u8(block.base ? has_base : 0);
    if (block.base) out.raw(block.base->bytes);
  }
  out.varint(segment.objects.size());
  for (const IndexObject& object : segment.objects) {
    out.raw(object.id.bytes);
    out.u8(static_cast<std::uint8_t>(object.kind));
    out.varint(object.block);
    out.varint(object.size);
  }
  return out.take();
}

Result<IndexSegment> decode_index_segment(ByteView bytes) {
  WireReader in(bytes);
  if (!bytes.empty() && bytes[0] > kIndexVersion)
    return Error(ErrorCode::unsupported, "the index segment was made by a newer kin");
  if (in.u8() != kIndexVersion) in.fail();
  IndexSegment segment;
  segment.packs.resize(in.count(33));
  for (IndexPack& pack : segment.packs) {
    pack.id.bytes = in.array<32>();
    pack.size = in.varint();
  }
  segment.blocks.resize(in.count(6));
  for (IndexBlock& block : segment.blocks) {
    block.pack = static_cast<std::uint32_t>(in.varint_up_to(kMost32));
    block.range.offset = in.varint();
    block.range.size = static_cast<std::uint32_t>(in.varint_up_to(kMost32));
    block.content_size = in.varint();
    block.codec = in.u8();
    const std::uint8_t flags = in.u8();
    if ((flags & ~has_base) != 0) in.fail();
    if (flags & has_base) block.base = ObjectId{in.array<32>()};
    if (in.failed()) break;
    if (block.pack >= segment.packs.size() || block.content_size > kMostBlockBytes) {
      in.fail();
      break;
    }
    // A range outside the pack would make the reader ask for bytes that cannot be there.
    const std::uint64_t pack_size = segment.packs[block.pack].size;
    if (block.range.offset > pack_size || block.range.size > pack_size - block.range.offset) in.fail();
  }
  segment.objects.resize(in.count(35));
  const ObjectId* previous = nullptr;
  for (IndexObject& object : segment.objects) {
    object.id.bytes = in.array<32>();
    const std::uint8_t kind = in.u8();
    if (kind < 1 || kind > 5) in.fail();
    object.kind = static_cast<ObjectKind>(kind);
    object.block = static_cast<std::uint32_t>(in.varint_up_to(kMost32));
    object.size = in.varint();
    if (object.block >= segment.blocks.size() || (previous != nullptr && !(*previous < object.id))) {
      in.fail();
      break;
    }
    previous = &object.id;
  }
  KIN_TRY(in.finish("index segment"));
  return segment;
}

}  // namespace kin::store

// What BlockUse knows of bases, once places are chosen: what is kept for them alone, and how deep they lie.
#include "store/block_use.h"

#include <algorithm>
#include <cstring>

namespace kin::store {

// The block that counts for it; none if there are several, or none.
std::optional<std::uint32_t> BlockUse::only_place(std::uint64_t prefix) {
  const auto [begin, end] = find(prefix);
  std::optional<std::uint32_t> out;
  for (auto at = begin; at != end; ++at) {
    if ((at->roles & kHere) == 0) continue;
    if (out) return std::nullopt;
    out = at->block;
  }
  return out;
}

unsigned BlockUse::depth(std::uint32_t block) {
  unsigned out = 0;
  for (std::optional<std::uint32_t> at = block; at && blocks_[*at].has_base && out < kMostChain; ++out)
    at = only_place(blocks_[*at].base);
  return out;
}

std::optional<BlockUse::Standing> BlockUse::standing(const ObjectId& id) {
  std::uint64_t prefix;
  std::memcpy(&prefix, id.bytes.data(), sizeof prefix);
  const std::optional<std::uint32_t> block = only_place(prefix);
  if (!block) return std::nullopt;
  return Standing{ref(blocks_[*block]), depth(*block), blocks_[*block].is_named != 0};
}

std::vector<BlockUse::BaseOnly> BlockUse::bases_only() {
  std::map<std::uint32_t, BaseOnly> found;
  for (const Block& block : blocks_) {
    if (!block.is_needed || !block.has_base) continue;
    const std::optional<std::uint32_t> base = only_place(block.base);
    if (!base || blocks_[*base].is_named) continue;
    BaseOnly& own = found[*base];
    if (own.leaning.empty()) own.at = {ref(blocks_[*base]), depth(*base), false};
    own.leaning.push_back(ref(block));
  }
  std::vector<BaseOnly> out;
  for (auto& [number, base] : found) out.push_back(std::move(base));
  std::stable_sort(out.begin(), out.end(),
                   [](const BaseOnly& a, const BaseOnly& b) { return a.at.depth > b.at.depth; });
  return out;
}

std::set<ObjectId> BlockUse::packs_with_strays() {
  const auto is_here = [](const Object& place) { return (place.roles & kHere) != 0; };
  std::set<ObjectId> out;
  for (auto begin = objects_.begin(), end = begin; begin != objects_.end(); begin = end) {
    while (end != objects_.end() && end->prefix == begin->prefix) ++end;
    if (end - begin == 1 || std::none_of(begin, end, is_here)) continue;
    for (auto place = begin; place != end; ++place) {
      const Block& block = blocks_[place->block];
      if (block.is_needed || !block.has_base) continue;
      const auto [first, last] = find(block.base);
      if (std::none_of(first, last, is_here)) out.insert(packs_[block.pack].id);
    }
  }
  return out;
}

void BlockUse::forsake(const std::set<BlockRef>& blocks) {
  std::set<ObjectId> packs;
  for (const BlockRef& block : blocks) packs.insert(block.pack);
  for (Block& block : blocks_)
    if (packs.contains(packs_[block.pack].id) && blocks.contains(ref(block))) block.is_forsaken = 1;
}

}  // namespace kin::store

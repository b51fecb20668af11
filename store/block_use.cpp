#include "store/block_use.h"

#include "lib/container/content_source.h"
#include "lib/object/tree.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace kin::store {
namespace {

std::uint64_t prefix_of(const ObjectId& id) {
  std::uint64_t out;
  std::memcpy(&out, id.bytes.data(), sizeof out);
  return out;
}

// The least that an object takes in a segment; the seal adds to it.
constexpr std::uint64_t kLeastIndexedBytes = 35;
// Each time that a segment was replaced while they were read.
constexpr int kMostListings = 100;

Error base_missing() { return Error(ErrorCode::corrupt, "an object that others lean on is missing"); }

Result<void> check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  return {};
}

}  // namespace

Result<BlockUse> BlockUse::read(Repository& repository, const std::stop_token& stop) {
  BlockUse out(repository);
  KIN_TRY(out.refresh(stop));
  return out;
}

Result<void> BlockUse::refresh(const std::stop_token& stop) {
  // Who lists segments while others write misses none that was there; one that was merged away since was
  // replaced by one that is there now.
  KIN_TRY(repository_->refresh_index());
  bool read_any = false;
  for (int tries = kMostListings;; --tries) {
    KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository_->backend().list(FileKind::index));
    auto read = read_segments(files, stop, read_any);
    if (read) break;
    if (read.error().code() != ErrorCode::not_found || tries == 0) return read;
  }
  if (read_any) settle();
  return {};
}

Result<void> BlockUse::read_segments(const std::vector<FileInfo>& files, const std::stop_token& stop,
                                     bool& read_any) {
  std::uint64_t bytes = 0;
  for (const FileInfo& file : files)
    if (!segments_.contains(file.name)) bytes += file.size;
  // No more objects than that; the room is not touched before it is used, and never moved.
  objects_.reserve(objects_.size() + bytes / kLeastIndexedBytes);
  for (const FileInfo& file : files) {
    KIN_TRY(check_stop(stop));
    if (segments_.contains(file.name)) continue;
    KIN_TRY_ASSIGN(const IndexSegment segment, repository_->load_index_segment(file.name));
    KIN_TRY(add_segment(segment));
    segments_.insert(file.name);
    read_any = true;
  }
  return {};
}

Result<void> BlockUse::add_segment(const IndexSegment& segment) {
  if (blocks_.size() + segment.blocks.size() > UINT32_MAX)
    return Error(ErrorCode::unsupported, "the repository has more blocks than can be counted");
  std::vector<std::uint32_t> numbers;
  for (const IndexPack& pack : segment.packs) {
    const auto [at, is_new] = pack_numbers_.emplace(pack.id, static_cast<std::uint32_t>(packs_.size()));
    if (is_new) packs_.push_back(pack);
    numbers.push_back(at->second);
  }
  const auto first = static_cast<std::uint32_t>(blocks_.size());
  for (const IndexBlock& block : segment.blocks) {
    if (block.range.offset > UINT32_MAX || block.content_size > kMostBlockBytes)
      return Error(ErrorCode::corrupt,
                   "pack " + segment.packs[block.pack].id.short_hex() + " is larger than kin ever makes one");
    Block& own = blocks_.emplace_back();
    own.pack = numbers[block.pack];
    own.offset = static_cast<std::uint32_t>(block.range.offset);
    own.bytes = block.range.size;
    own.content_size = static_cast<std::uint32_t>(block.content_size) & 0x7ff'ffff;
    own.has_base = block.base.has_value();
    if (block.base) own.base = prefix_of(*block.base);
  }
  for (const IndexObject& object : segment.objects) {
    Object& own = objects_.emplace_back();
    own.prefix = prefix_of(object.id);
    own.block = first + object.block;
    own.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(object.size, 0xff'ffff)) & 0xff'ffff;
  }
  return {};
}

void BlockUse::settle() {
  join_equal_blocks();
  std::sort(objects_.begin(), objects_.end(), [](const Object& a, const Object& b) {
    return std::pair(a.prefix, a.block) < std::pair(b.prefix, b.block);
  });
  // What a block lists twice is there once; the entry with roles is the older one.
  std::size_t kept = 0;
  for (const Object& object : objects_) {
    const bool is_repeat =
        kept > 0 && objects_[kept - 1].prefix == object.prefix && objects_[kept - 1].block == object.block;
    if (is_repeat)
      objects_[kept - 1].roles |= object.roles;
    else
      objects_[kept++] = object;
  }
  objects_.resize(kept);
  // A place that is new to us is needed for what the others are.
  for (auto begin = objects_.begin(), end = begin; begin != objects_.end(); begin = end) {
    std::uint8_t roles = 0;
    for (; end != objects_.end() && end->prefix == begin->prefix; ++end) roles |= end->roles;
    for (auto at = begin; at != end; ++at) at->roles |= roles & (kTree | kList | kData);
  }
  all_ = {};
  for (const Block& block : blocks_) {
    if (block.bytes == 0) continue;  // joined
    ++all_.blocks;
    all_.bytes += block.bytes;
  }
}

// Segments may say the same twice, as they do when someone who replaces them is interrupted.
void BlockUse::join_equal_blocks() {
  std::vector<std::uint32_t> order(blocks_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto place = [&](std::uint32_t i) {
    return std::pair(std::uint32_t{blocks_[i].pack}, blocks_[i].offset);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(place(a), a) < std::pair(place(b), b);
  });
  std::vector<std::uint32_t> first;  // of those at the same place; made if there are such
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (place(order[i]) != place(order[i - 1])) continue;
    if (first.empty()) {
      first.resize(blocks_.size());
      for (std::uint32_t block = 0; block < first.size(); ++block) first[block] = block;
    }
    first[order[i]] = first[order[i - 1]];
    blocks_[order[i]].bytes = 0;
  }
  if (first.empty()) return;
  for (Object& object : objects_) object.block = first[object.block];
}

std::pair<BlockUse::Places, BlockUse::Places> BlockUse::find(std::uint64_t prefix) {
  const auto begin =
      std::lower_bound(objects_.begin(), objects_.end(), prefix,
                       [](const Object& object, std::uint64_t wanted) { return object.prefix < wanted; });
  auto end = begin;
  while (end != objects_.end() && end->prefix == prefix) ++end;
  return {begin, end};
}

Result<bool> BlockUse::need(const ObjectId& id, Role role) {
  const auto [begin, end] = find(prefix_of(id));
  if (begin == end) return Error(ErrorCode::corrupt, "object " + id.short_hex() + " is missing");
  if ((begin->roles & role) != 0) return false;
  const bool is_first = (begin->roles & (kTree | kList | kData)) == 0;
  for (auto at = begin; at != end; ++at) at->roles |= role;
  if (is_first) KIN_TRY(need_all_places(begin->prefix));
  return true;
}

void BlockUse::need_at(Object& place, std::vector<std::uint64_t>& left) {
  place.roles |= kHere;
  Block& block = blocks_[place.block];
  if (block.is_needed) return;
  block.is_needed = 1;
  ++needed_.blocks;
  needed_.bytes += block.bytes;
  if (block.has_base) left.push_back(block.base);
}

// And down the chain.
Result<void> BlockUse::need_all_places(std::uint64_t prefix) {
  std::vector<std::uint64_t> left{prefix};
  while (!left.empty()) {
    const auto [begin, end] = find(left.back());
    left.pop_back();
    if (begin == end) {
      drop_baseless();
      const auto [first, last] = find(prefix);
      if (first == last) return base_missing();
      continue;
    }
    for (auto at = begin; at != end; ++at) need_at(*at, left);
  }
  return {};
}

// A delta whose base is gone is no place of an object: it was needed nowhere when its base went, since the
// object has another.
void BlockUse::drop_baseless() {
  for (bool is_any = true; is_any;) {
    is_any = false;
    std::vector<bool> dead(blocks_.size());
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& block = blocks_[i];
      if (!block.has_base || block.bytes == 0 || block.is_baseless) continue;
      const auto [begin, end] = find(block.base);
      if (begin != end) continue;
      is_any = dead[i] = true;
      block.is_baseless = 1;
      if (!block.is_needed) continue;
      block.is_needed = 0;
      --needed_.blocks;
      needed_.bytes -= block.bytes;
    }
    std::erase_if(objects_, [&](const Object& object) { return dead[object.block]; });
  }
}

Result<void> BlockUse::choose_places(const std::function<bool(const ObjectId&)>& is_avoided,
                                     const std::stop_token& stop) {
  std::vector<bool> avoided;
  for (const IndexPack& pack : packs_) avoided.push_back(is_avoided(pack.id));
  for (Object& object : objects_) object.roles &= ~kHere & 0xff;
  for (Block& block : blocks_) block.is_needed = block.is_named = block.knows_header = 0;
  needed_ = {};
  // Those first that leave no choice, so that the others' is made with them in view.
  for (const bool has_choice : {false, true})
    for (auto begin = objects_.begin(), end = begin; begin != objects_.end(); begin = end) {
      while (end != objects_.end() && end->prefix == begin->prefix) ++end;
      if ((begin->roles & (kTree | kList | kData)) == 0 || (end - begin > 1) != has_choice) continue;
      KIN_TRY(check_stop(stop));
      KIN_TRY(choose_places_of(begin->prefix, avoided));
    }
  id_rests_ = {};
  for (const Object& object : objects_)
    if ((object.roles & kHere) != 0 && (object.roles & (kTree | kList | kData)) != 0)
      blocks_[object.block].is_named = 1;
  return {};
}

// And down the chain.
Result<void> BlockUse::choose_places_of(std::uint64_t prefix, const std::vector<bool>& avoided) {
  std::vector<std::uint64_t> left{prefix};
  while (!left.empty()) {
    const auto [begin, end] = find(left.back());
    left.pop_back();
    KIN_TRY(choose_place(begin, end, avoided, left));
  }
  return {};
}

// Two writers at once may each store one object whole and the other as a delta against it, the one this way
// and the other that way. Each place can be read as long as all are there. But the two deltas alone would
// lean on each other. So whoever leans on a base is no place for that.
bool BlockUse::leans_on(std::uint64_t prefix, std::uint64_t base) {
  std::vector<std::uint64_t> left{prefix};
  std::unordered_set<std::uint64_t> seen;
  while (!left.empty()) {
    const std::uint64_t at = left.back();
    left.pop_back();
    if (at == base) return true;
    if (!seen.insert(at).second) continue;
    const auto [begin, end] = find(at);
    for (auto place = begin; place != end; ++place)
      if (const Block& block = blocks_[place->block]; (place->roles & kHere) != 0 && block.has_base)
        left.push_back(block.base);
  }
  return false;
}

// All places of it, and of all that these lean on: as it was before there was a choice.
void BlockUse::need_all_below(std::uint64_t prefix) {
  std::vector<std::uint64_t> left{prefix}, bases;
  std::unordered_set<std::uint64_t> seen;
  while (!left.empty()) {
    const std::uint64_t at = left.back();
    left.pop_back();
    if (!seen.insert(at).second) continue;
    const auto [begin, end] = find(at);
    for (auto place = begin; place != end; ++place) {
      need_at(*place, bases);
      if (const Block& block = blocks_[place->block]; block.has_base) left.push_back(block.base);
    }
  }
}

Result<void> BlockUse::choose_place(Places begin, Places end, const std::vector<bool>& avoided,
                                    std::vector<std::uint64_t>& left) {
  if (begin == end) return base_missing();
  if (std::any_of(begin, end, [](const Object& place) { return (place.roles & kHere) != 0; })) return {};
  if (end - begin > 1) {
    KIN_TRY_ASSIGN(const bool is_same, is_same_object(begin, end));
    for (const bool avoid : {false, true})
      for (auto at = begin; is_same && at != end; ++at) {
        Block& block = blocks_[at->block];
        if ((avoided[block.pack] || block.is_forsaken) != avoid || !is_readable(block)) continue;
        if (block.has_base && leans_on(block.base, at->prefix)) continue;
        need_at(*at, left);
        return {};
      }
  }
  const auto is_in_a_loop = [&](const Object& place) {
    const Block& block = blocks_[place.block];
    return block.has_base && leans_on(block.base, place.prefix);
  };
  if (std::any_of(begin, end, is_in_a_loop)) {
    need_all_below(begin->prefix);
    return {};
  }
  for (auto at = begin; at != end; ++at) need_at(*at, left);
  return {};
}

// Not two that only begin the same. Each header is read once, whatever the order of the objects.
Result<bool> BlockUse::is_same_object(Places begin, Places end) {
  std::optional<std::uint64_t> first;
  for (auto at = begin; at != end; ++at) {
    KIN_TRY(read_header(at->block));
    const auto rest = id_rests_.find(rest_key(*at));
    if (rest == id_rests_.end()) continue;  // its header cannot be read, so that it is not chosen
    if (first && *first != rest->second) return false;
    first = rest->second;
  }
  return first.has_value();
}

// Two keys may be the same by chance: then the rests differ, and all places stay needed.
std::uint64_t BlockUse::rest_key(const Object& place) {
  return place.prefix ^ (std::uint64_t{place.block} + 1) * 0x9e37'79b9'7f4a'7c15;
}

Result<void> BlockUse::read_header(std::uint32_t number) {
  Block& block = blocks_[number];
  if (block.knows_header) return {};
  block.knows_header = 1;
  const auto header = repository_->block_header(ref(block));
  if (!header && is_damage(header.error())) return {};
  if (!header) return header.error();
  for (const BlockObject& object : header->objects) {
    Object place;
    place.prefix = prefix_of(object.id);
    place.block = number;
    std::uint64_t rest;
    std::memcpy(&rest, object.id.bytes.data() + sizeof place.prefix, sizeof rest);
    id_rests_.emplace(rest_key(place), rest);
  }
  return {};
}

bool BlockUse::is_readable(Block& block) {
  if (!block.was_read && repository_->load_block(ref(block))) block.was_read = 1;
  return block.was_read;
}

BlockRef BlockUse::ref(const Block& block) const {
  return {packs_[block.pack].id, block.offset, block.bytes, block.content_size};
}

std::vector<BlockUse::Pack> BlockUse::packs() const {
  std::vector<Pack> out;
  for (const IndexPack& pack : packs_) out.push_back({pack.id, pack.size});
  for (const Block& block : blocks_)
    if (block.is_needed) out[block.pack].is_needed = true;
  for (const Object& object : objects_) {
    if ((object.roles & kHere) == 0) continue;
    const Block& block = blocks_[object.block];
    const double share = block.content_size <= 0xff'ffff && block.content_size > 0
                             ? static_cast<double>(object.size) / static_cast<double>(block.content_size)
                             : 1.0;
    out[block.pack].used_bytes += share * block.bytes;
  }
  return out;
}

std::map<ObjectId, std::vector<BlockRef>> BlockUse::needed_blocks(const std::set<ObjectId>& packs) const {
  std::vector<bool> wanted;
  for (const IndexPack& pack : packs_) wanted.push_back(packs.contains(pack.id));
  std::map<ObjectId, std::vector<BlockRef>> out;
  for (const Block& block : blocks_)
    if (block.is_needed && wanted[block.pack]) out[packs_[block.pack].id].push_back(ref(block));
  for (auto& [id, blocks] : out) std::sort(blocks.begin(), blocks.end());
  return out;
}

bool BlockUse::is_needed(const ObjectId& id, const BlockRef& at) {
  const auto [begin, end] = find(prefix_of(id));
  return std::any_of(begin, end, [&](const Object& place) {
    return (place.roles & kHere) != 0 && ref(blocks_[place.block]) == at;
  });
}

bool BlockUse::is_content(const ObjectId& id) {
  const auto [begin, end] = find(prefix_of(id));
  return begin != end && (begin->roles & kData) != 0;
}

Result<void> BlockUse::add(const Snapshot& snapshot, const std::stop_token& stop) {
  return walk(snapshot.tree, 0, stop);
}

Result<void> BlockUse::walk(const ObjectId& tree, int depth, const std::stop_token& stop) {
  KIN_TRY(check_stop(stop));
  if (depth > kMostTreeDepth) return Error(ErrorCode::corrupt, "more directories deep than kin ever stores");
  TreeCursor cursor(*repository_, tree);
  std::optional<Error> missing;
  cursor.on_object([&](const ObjectId& id) {
    const auto is_new = need(id, kTree);
    if (!is_new) missing = is_new.error();
    return is_new && *is_new;
  });
  for (;;) {
    KIN_TRY_ASSIGN(const auto node, cursor.next());
    if (missing) return *missing;
    if (!node) return {};
    if (node->type == NodeType::file) {
      KIN_TRY(for_each_object(*repository_, node->content, [&](const Extent& extent) -> Result<bool> {
        return need(extent.id, extent.kind == Extent::Kind::data ? kData : kList);
      }));
    }
    if (node->type == NodeType::directory) KIN_TRY(walk(node->subtree, depth + 1, stop));
  }
}

}  // namespace kin::store

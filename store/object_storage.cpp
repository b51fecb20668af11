#include "store/object_storage.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace kin::store {

const char* name_of(BlockForm form) {
  switch (form) {
    case BlockForm::whole:
      return "whole";
    case BlockForm::delta:
      return "delta";
    case BlockForm::group:
      return "group";
  }
  return "?";
}

std::string codec_name(std::uint8_t codec) {
  const CodecEntry* const entry = find_codec(codec);
  return entry ? entry->name : fmt::format("codec {}", codec);
}

std::uint64_t share_of(std::uint64_t size, std::uint64_t stored_size, std::uint64_t content_size) {
  if (size >= content_size) return stored_size;
  return static_cast<std::uint64_t>(static_cast<double>(stored_size) * static_cast<double>(size) /
                                    static_cast<double>(content_size));
}

Result<Location> require_location(Repository& repository, const ObjectId& id) {
  KIN_TRY_ASSIGN(const std::optional<Location> location, repository.find_location(id));
  if (location) return *location;
  return Error(
      ErrorCode::corrupt,
      fmt::format("object {} is missing from the repository (kin check tells more)", id.short_hex()));
}

Result<const StorageChains::Header*> StorageChains::header_of(const BlockRef& block) {
  constexpr std::size_t kMostHeaders = 16;
  const auto found = std::find_if(headers_.begin(), headers_.end(),
                                  [&](const Header& header) { return header.block == block; });
  if (found != headers_.end()) {
    headers_.splice(headers_.begin(), headers_, found);
    return &headers_.front();
  }
  Header made;
  made.block = block;
  KIN_TRY_ASSIGN(made.header, repository_.block_header(block));
  for (std::size_t i = 0; i < made.header.objects.size(); ++i) {
    const BlockObject& object = made.header.objects[i];
    made.places.try_emplace(object.id, i);
    if (object.kind != ObjectKind::group) ++made.objects;
  }
  if (headers_.size() == kMostHeaders) headers_.pop_back();
  headers_.push_front(std::move(made));
  return &headers_.front();
}

Result<StoredObject> StorageChains::find(const ObjectId& id) {
  StoredObject out;
  out.id = id;
  KIN_TRY_ASSIGN(out.block, repository_.locate(id));
  KIN_TRY_ASSIGN(const Header* const in, header_of(out.block));
  const auto place = in->places.find(id);
  if (place == in->places.end())
    return Error(ErrorCode::corrupt, fmt::format("it is not in pack {} at byte {}, where the index says "
                                                 "(kin repair index makes a new one)",
                                                 out.block.pack.short_hex(), out.block.offset));
  const BlockObject& object = in->header.objects[place->second];
  out.size = object.size;
  out.features = object.features;
  out.codec = in->header.codec;
  out.base = in->header.base;
  out.block_objects = in->objects;
  return out;
}

Result<StorageChain> StorageChains::of(const ObjectId& id) {
  StorageChain chain;
  for (std::optional<ObjectId> next = id; next; next = chain.links.back().base) {
    auto stored = chain.links.size() <= kMostChain
                      ? find(*next)
                      : Error(ErrorCode::corrupt, "the chain of bases is too long or has a loop");
    if (!stored && stored.error().code() != ErrorCode::corrupt) return std::move(stored).error();
    if (!stored) {
      chain.damage =
          std::move(stored).error().context((chain.links.empty() ? "object " : "base ") + next->short_hex());
      break;
    }
    chain.links.push_back(*std::move(stored));
  }
  return chain;
}

std::size_t matching_features(const Sketch& a, const Sketch& b) {
  return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [&](Feature feature) {
    return std::find(b.begin(), b.end(), feature) != b.end();
  }));
}

Result<EncodingTable> count_encodings(Repository& repository) {
  EncodingTable out;
  // Two segments may list one pack: two processes found it at once, or there is damage in it and what lies
  // behind was added later.
  std::unordered_map<ObjectId, std::uint64_t, ObjectIdHash> packs;
  std::unordered_set<std::uint64_t> seen;  // a pack's number and an offset in it
  for (const std::string& name : repository.index().segments()) {
    auto segment = repository.load_index_segment(name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // replaced meanwhile
    if (!segment) return std::move(segment).error();
    struct Listed {
      std::uint64_t objects = 0, bytes = 0;
    };
    std::vector<Listed> listed(segment->blocks.size());
    for (const IndexObject& object : segment->objects) {
      if (object.kind == ObjectKind::group) continue;
      ++listed[object.block].objects;
      listed[object.block].bytes += object.size;
    }
    for (std::size_t i = 0; i < segment->blocks.size(); ++i) {
      const IndexBlock& block = segment->blocks[i];
      const std::uint64_t pack = packs.try_emplace(segment->packs[block.pack].id, packs.size()).first->second;
      if (!seen.insert(pack << 36 ^ block.range.offset).second) continue;
      // Of a group that repeats objects of others, a segment may list one, or none.
      const bool alone = listed[i].objects == 1 && listed[i].bytes == block.content_size;
      const BlockForm form = block.base ? BlockForm::delta : alone ? BlockForm::whole : BlockForm::group;
      EncodingTotals& totals = out[{block.codec, form}];
      ++totals.blocks;
      totals.objects += listed[i].objects;
      totals.content_bytes += block.content_size;
      totals.stored_bytes += block.range.size;
    }
  }
  return out;
}

}  // namespace kin::store

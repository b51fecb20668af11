// How Repository reads blocks: records, chains of bases, and what to do where one place of an object is
// damaged.
#include "store/repository.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace kin::store {
namespace {

// The first bytes of a record: the header of most blocks is shorter.
constexpr std::size_t kHeaderGuessBytes = 4096;
constexpr std::size_t kMostSoundBases = 1 << 18;

std::string pack_text(const ObjectId& pack) { return FileName{FileKind::pack, pack.hex()}.text(); }

Error too_long() { return Error(ErrorCode::corrupt, "the chain of bases is too long or has a loop"); }

Error other_bytes(const ObjectId& id) {
  return Error(ErrorCode::corrupt,
               fmt::format("object {} decodes to other bytes than were stored", id.short_hex()));
}

Error at_block(Error error, const BlockRef& block) {
  return std::move(error).context(fmt::format("{} at byte {}", pack_text(block.pack), block.offset));
}

// A disk that fails to read a place may be read at others, and written.
bool may_heal(const Error& error) { return is_damage(error) || error.code() == ErrorCode::io; }

BlockRef block_at(const Location& location) {
  return {location.pack, location.range.offset, location.range.size, location.content_size};
}

}  // namespace

Result<Bytes> Repository::read_pack(const ObjectId& id, std::uint64_t offset, std::size_t size, Salt& salt) {
  bool have_salt = false;
  ObjectId pack = id;
  {
    MutexLock lock(mutex_);
    for (const OpenPack& open : open_packs_) {
      if (!open.builder || open.id != pack) continue;
      salt = open.builder->salt();
      return open.builder->record({offset, static_cast<std::uint32_t>(size)});
    }
    if (const auto named = final_names_.find(pack); named != final_names_.end()) pack = named->second;
    if (const auto known = salts_.find(pack); known != salts_.end()) {
      salt = known->second;
      have_salt = true;
    }
  }
  if (const std::shared_ptr<const Bytes> healed = healed_pack(pack)) {
    KIN_TRY_ASSIGN(salt, read_pack_prefix(*healed));
    if (offset > healed->size() || size > healed->size() - offset)
      return Error(ErrorCode::corrupt, "the pack ends before the block does");
    const auto begin = healed->begin() + static_cast<std::ptrdiff_t>(offset);
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  const FileName name{FileKind::pack, pack.hex()};
  if (!have_salt) {
    KIN_TRY_ASSIGN(const Bytes prefix, backend_->get_range(name, 0, PackBuilder::kPrefixBytes));
    KIN_TRY_ASSIGN(salt, read_pack_prefix(prefix));
    MutexLock lock(mutex_);
    salts_.emplace(pack, salt);
  }
  return backend_->get_range(name, offset, size);
}

std::shared_ptr<const Bytes> Repository::healed_pack(const ObjectId& pack) const {
  MutexLock lock(mutex_);
  const auto healed = healed_.find(pack);
  return healed == healed_.end() ? nullptr : healed->second.bytes;
}

Result<BlockHeader> Repository::block_header(const BlockRef& block) {
  const auto read = [&]() -> Result<BlockHeader> {
    Salt salt;
    const std::size_t guess = std::min<std::size_t>(block.stored_size, kHeaderGuessBytes);
    KIN_TRY_ASSIGN(Bytes start, read_pack(block.pack, block.offset, guess, salt));
    KIN_TRY_ASSIGN(const std::size_t end, header_end(start, block.stored_size));
    if (end > start.size()) {
      KIN_TRY_ASSIGN(start, read_pack(block.pack, block.offset, end, salt));
    }
    return open_block_header(sealer_, salt, block.offset, start);
  };
  auto header = read();
  if (!header && may_heal(header.error()) && heal(block.pack) != Healed::no) header = read();
  if (header) return header;
  if (is_damage(header.error())) lose_damaged(block.pack);
  if (header.error().code() == ErrorCode::not_found)
    return Error(ErrorCode::corrupt, pack_text(block.pack) + " is missing");
  return at_block(std::move(header).error(), block);
}

void Repository::lose(const ObjectId& pack) {
  MutexLock lock(lost_mutex_);
  if (lost_packs_.insert(pack).second) sound_bases_.clear();
}

void Repository::lose_damaged(const ObjectId& pack) {
  lose(pack);
  index_->note_damaged(pack, true);
}

Result<std::shared_ptr<const Bytes>> Repository::load_base(const BlockHeader& header, Path& path) {
  if (!header.base) return std::shared_ptr<const Bytes>();
  if (path.deltas >= kMostChain ||
      std::find(path.ids.begin(), path.ids.end(), *header.base) != path.ids.end())
    return too_long();
  ++path.deltas;
  auto base = load_at(*header.base, path);
  --path.deltas;
  if (base) {
    path.names_base = false;
    return base;
  }
  if (std::exchange(path.names_base, true)) return std::move(base).error();
  return std::move(base).error().context("base " + header.base->short_hex());
}

Result<BlockContent> Repository::decode_block(const OpenedBlock& block, const Bytes* base, unsigned deltas) {
  std::unique_ptr<BlockDecoder> decoder;
  {
    MutexLock lock(mutex_);
    if (!idle_decoders_.empty()) {
      decoder = std::move(idle_decoders_.back());
      idle_decoders_.pop_back();
    }
  }
  if (!decoder) decoder = std::make_unique<BlockDecoder>();
  auto content = decoder->decode(block.header, base != nullptr ? ByteView(*base) : ByteView(), block.payload);
  {
    MutexLock lock(mutex_);
    idle_decoders_.push_back(std::move(decoder));
  }
  if (!content) return std::move(content).error();
  return BlockContent(block.header.objects, *std::move(content), deltas);
}

Result<void> Repository::verify(const BlockContent& content) const {
  const auto wrong = content.verify([this](ByteView object) { return id_of(object); });
  return wrong ? Result<void>(other_bytes(*wrong)) : Result<void>();
}

Result<BlockContent> Repository::decode_record(const Salt& salt, std::uint64_t offset, ByteView record) {
  KIN_TRY_ASSIGN(const OpenedBlock block,
                 open_block(sealer_, salt, offset, Bytes(record.begin(), record.end())));
  return decode(block);
}

Result<BlockContent> Repository::decode(const OpenedBlock& block) {
  Path path;
  KIN_TRY_ASSIGN(const auto base, load_base(block.header, path));
  KIN_TRY_ASSIGN(BlockContent content, decode_block(block, base.get(), base ? path.deltas_below + 1 : 0));
  KIN_TRY(verify(content));
  return content;
}

Result<OpenedBlock> Repository::open_block_at(const BlockRef& block) {
  const auto open = [&]() -> Result<OpenedBlock> {
    Salt salt;
    KIN_TRY_ASSIGN(Bytes record, read_pack(block.pack, block.offset, block.stored_size, salt));
    return open_block(sealer_, salt, block.offset, std::move(record));
  };
  auto opened = open();
  if (!opened && may_heal(opened.error()) && heal(block.pack) != Healed::no) opened = open();
  if (opened) return opened;
  if (is_damage(opened.error())) lose_damaged(block.pack);
  if (opened.error().code() == ErrorCode::not_found)
    return Error(ErrorCode::corrupt, pack_text(block.pack) + " is missing");
  return at_block(std::move(opened).error(), block);
}

Result<std::shared_ptr<const BlockContent>> Repository::load_block_at(const BlockRef& block, Path& path) {
  if (auto cached = cache_.find(block)) {
    // What is too long is so whatever was read before.
    if (path.deltas + cached->deltas() > kMostChain) return too_long();
    path.deltas_below = cached->deltas();
    return cached;
  }
  const auto in_pack = [&](Error error) { return at_block(std::move(error), block); };
  KIN_TRY_ASSIGN(const OpenedBlock opened, open_block_at(block));
  // If a base cannot be read, it is the base's pack that is damaged, not this one.
  auto base = load_base(opened.header, path);
  if (!base && path.deltas > 0) return std::move(base).error();
  if (!base) return in_pack(std::move(base).error());
  path.deltas_below = *base ? path.deltas_below + 1 : 0;
  auto content = decode_block(opened, base->get(), path.deltas_below);
  if (!content) {
    if (is_damage(content.error())) lose_damaged(block.pack);
    return in_pack(std::move(content).error());
  }
  auto shared = std::make_shared<const BlockContent>(*std::move(content));
  cache_.add(block, shared);
  return shared;
}

Result<std::shared_ptr<const BlockContent>> Repository::load_block(const BlockRef& block) {
  Path path;
  KIN_TRY_ASSIGN(auto content, load_block_at(block, path));
  if (auto verified = verify(*content); !verified) {
    lose_damaged(block.pack);
    return at_block(std::move(verified).error(), block);
  }
  return content;
}

Result<std::shared_ptr<const Bytes>> Repository::load_from(const BlockRef& block, const ObjectId& id,
                                                           Path& path) {
  path.ids.push_back(id);
  auto content = load_block_at(block, path);
  path.ids.pop_back();
  if (!content && path.names_base && path.deltas > 0) return std::move(content).error();
  if (!content) return std::move(content).error().context("object " + id.short_hex());
  const std::optional<ByteView> bytes = (*content)->find(id);
  if (!bytes)
    return Error(
        ErrorCode::corrupt,
        fmt::format(
            "object {} is not in {} at byte {}, where the index says (kin repair index makes a new one)",
            id.short_hex(), pack_text(block.pack), block.offset));
  if (!(*content)->is_verified() && id_of(*bytes) != id) {
    lose_damaged(block.pack);
    return at_block(other_bytes(id), block).context("object " + id.short_hex());
  }
  return std::make_shared<const Bytes>(bytes->begin(), bytes->end());
}

Result<std::shared_ptr<const Bytes>> Repository::load_at(const ObjectId& id, Path& path) {
  KIN_TRY_ASSIGN(const BlockRef block, locate(id));
  auto bytes = load_from(block, id, path);
  if (bytes || !is_damage(bytes.error())) return bytes;
  auto elsewhere = load_other(id, block, path);
  if (elsewhere) return elsewhere;
  KIN_TRY_ASSIGN(const bool may_have_moved, forget_old_places());
  if (may_have_moved) elsewhere = load_other(id, block, path);
  return elsewhere ? elsewhere : bytes;
}

Result<std::shared_ptr<const Bytes>> Repository::load_other(const ObjectId& id, const BlockRef& block,
                                                            Path& path) {
  KIN_TRY_ASSIGN(std::vector<Location> others, other_places(id));
  KIN_TRY_ASSIGN(const std::optional<Location> indexed, find_indexed(id));  // by now, at another place maybe
  if (indexed) others.push_back(*indexed);
  for (const Location& other : others) {
    if (block_at(other) == block || path.tries_left == 0) continue;
    --path.tries_left;
    if (auto there = load_from(block_at(other), id, path)) return there;
  }
  return Error(ErrorCode::not_found, "object " + id.short_hex() + " has no other place");
}

Result<std::shared_ptr<const Bytes>> Repository::load(const ObjectId& id) {
  Path path;
  return load_at(id, path);
}

Result<Chain> Repository::chain(const ObjectId& id) {
  Chain chain;
  std::optional<ObjectId> next = id;
  for (; next; ++chain.depth) {
    if (chain.depth > kMostChain) return too_long();
    const ObjectId at = *next;
    {
      MutexLock lock(mutex_);
      if (const auto found = pending_.find(at); found != pending_.end()) {
        chain.bytes += found->second.block.content_size;
        next = found->second.base;
        continue;
      }
    }
    KIN_TRY_ASSIGN(const std::optional<Location> location, find_indexed(at));
    if (!location) return Error(ErrorCode::not_found, "object " + at.short_hex() + " is not stored");
    if (is_lost(location->pack)) return Error(ErrorCode::corrupt, pack_text(location->pack) + " is lost");
    chain.bytes += location->content_size;
    next = location->base;
  }
  --chain.depth;  // blocks, less the one without a base
  return chain;
}

// An object that was stored again, since its pack was lost or by two writers at once, is in two segments; the
// index knows one place of each.
Result<std::vector<Location>> Repository::other_places(const ObjectId& id) {
  MutexLock lock(other_places_mutex_);
  if (!other_places_) {
    // It may have moved since: a prune that rewrites packs lists what is in them in new segments first.
    KIN_TRY_ASSIGN(other_places_files_, backend_->list(FileKind::index));
    KIN_TRY(refresh_index([](const Error&) {}));
    std::unordered_multimap<ObjectId, Location, ObjectIdHash> places;
    for (const std::string& name : index_->segments()) {
      const auto segment = load_index_segment(name);
      if (!segment && is_damage(segment.error())) continue;
      if (!segment) return segment.error();  // it may be read the next time
      for (const IndexObject& object : segment->objects) {
        KIN_TRY_ASSIGN(const std::optional<Location> known, find_indexed(object.id));
        const IndexBlock& block = segment->blocks[object.block];
        const Location here{segment->packs[block.pack].id,
                            block.range,
                            block.content_size,
                            object.kind,
                            object.size,
                            block.base};
        if (known && block_at(*known) == block_at(here)) continue;
        places.emplace(object.id, here);
      }
    }
    other_places_ = std::move(places);
  }
  std::vector<Location> out;
  const auto [begin, end] = other_places_->equal_range(id);
  for (auto at = begin; at != end; ++at) out.push_back(at->second);
  return out;
}

// A reader may live through any number of prunes, each of which moves things.
Result<bool> Repository::forget_old_places() {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::index));
  MutexLock lock(other_places_mutex_);
  const auto same_name = [](const FileInfo& a, const FileInfo& b) { return a.name == b.name; };
  if (std::equal(files.begin(), files.end(), other_places_files_.begin(), other_places_files_.end(),
                 same_name))
    return false;
  other_places_.reset();
  return true;
}

Result<bool> Repository::is_sound_at(const Location& location) {
  if (is_lost(location.pack)) return false;
  std::optional<ObjectId> base = location.base;
  std::vector<ObjectId> followed;
  for (unsigned depth = 0; base; ++depth) {
    if (depth > kMostChain) return false;
    {
      // What is on its way was made from what is sound.
      MutexLock lock(mutex_);
      if (pending_.contains(*base)) break;
    }
    {
      MutexLock lock(lost_mutex_);
      if (sound_bases_.contains(*base)) break;
    }
    KIN_TRY_ASSIGN(std::optional<Location> below, find_indexed(*base));
    if (!below) return false;
    if (is_lost(below->pack)) {
      KIN_TRY_ASSIGN(const std::vector<Location> others, other_places(*base));
      const auto other = std::find_if(others.begin(), others.end(),
                                      [this](const Location& place) { return !is_lost(place.pack); });
      if (other == others.end()) return false;
      below = *other;
    }
    followed.push_back(*base);
    base = below->base;
  }
  MutexLock lock(lost_mutex_);
  if (sound_bases_.size() > kMostSoundBases) sound_bases_.clear();
  if (lost_packs_.empty()) sound_bases_.insert(followed.begin(), followed.end());
  return true;
}

Result<bool> Repository::is_sound(const ObjectId& id, const Location& location) {
  KIN_TRY_ASSIGN(const bool sound, is_sound_at(location));
  if (sound) return true;
  KIN_TRY_ASSIGN(const std::vector<Location> others, other_places(id));
  for (const Location& other : others) {
    KIN_TRY_ASSIGN(const bool other_sound, is_sound_at(other));
    if (other_sound) return true;
  }
  return false;
}

}  // namespace kin::store

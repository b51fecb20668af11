// The repository's index: how segments are written, read into the local cache, and made again from packs.
#include "store/repository.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <shared_mutex>

namespace kin::store {
namespace {

constexpr std::string_view kIndexMagic = "KININDX1";

bool stays_so(const Error& error) { return is_damage(error) || error.code() == ErrorCode::unsupported; }

Error interrupted() { return Error(ErrorCode::cancelled, "interrupted"); }

}  // namespace

Result<IndexSegment> Repository::load_index_segment(const std::string& name) {
  const FileName file_name{FileKind::index, name};
  KIN_TRY_ASSIGN(const Bytes file, get_named(*backend_, file_name));
  auto plain = sealer_.open_file(kIndexMagic, file);
  if (!plain) return std::move(plain).error().context(file_name.text());
  auto segment = decode_index_segment(*plain);
  if (!segment) return std::move(segment).error().context(file_name.text());
  return segment;
}

Result<void> Repository::refresh_index(const std::function<void(const Error&)>& on_damage) {
  const std::unique_lock alone(recovery_mutex_);
  return fill_index(on_damage);
}

Result<void> Repository::fill_index(const std::function<void(const Error&)>& on_damage, int tries) {
  const std::uint64_t listings = snapshot_listings_;
  bool complete = true;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::index));
  std::set<std::string> listed;
  for (const FileInfo& file : files) listed.insert(file.name);
  std::set<std::string> known = index_->segments();
  if (!std::includes(listed.begin(), listed.end(), known.begin(), known.end())) {
    // A segment is gone: someone rebuilt or pruned, and what it said may no longer be so.
    if (auto cleared = index_->clear(); !cleared) KIN_TRY(retreat(cleared.error()));
    known.clear();
  }
  for (const std::string& name : listed) {
    if (known.contains(name)) continue;
    auto segment = load_index_segment(name);
    if (!segment && segment.error().code() == ErrorCode::not_found) {
      complete = false;  // removed since we listed it, and replaced by one that we may not have listed
      continue;
    }
    if (!segment && on_damage) {
      on_damage(segment.error());
      continue;
    }
    if (!segment && segment.error().code() == ErrorCode::corrupt)
      return Error(ErrorCode::corrupt,
                   segment.error().message() + " (kin repair index makes a new index from the packs)");
    if (!segment) return std::move(segment).error();
    if (auto added = index_->add(name, *segment); !added) {
      KIN_TRY(retreat(added.error()));
      return fill_index(on_damage, tries);  // from the start; there are only so many places to retreat to
    }
  }
  // A new segment may list what a prune has removed: who made a new index saw it before, and takes it out
  // again once it is done. A backup that is under way would take that for stored.
  if (knows_lost_packs_ && known != listed) KIN_TRY(find_lost_packs());
  if (!complete && tries > 0) return fill_index(on_damage, tries - 1);
  if (complete) indexed_listings_ = listings;
  return {};
}

// The cache is to blame, not the repository. Damage is mended on the spot; a place where a file cannot be
// read or written is given up.
Result<void> Repository::recover_index(const Error& why) {
  if (why.code() != ErrorCode::corrupt || !index_->clear()) KIN_TRY(retreat(why));
  return fill_index({});
}

Result<void> Repository::add_to_index(const std::string& segment_name, const IndexSegment& segment) {
  const auto add = [&] {
    const std::shared_lock filled(recovery_mutex_);  // who fills it has listed the segments by now
    return index_->add(segment_name, segment);
  };
  if (add()) return {};
  const std::unique_lock alone(recovery_mutex_);
  const auto added = index_->add(segment_name, segment);  // another thread may have mended it meanwhile
  if (added) return {};
  return recover_index(added.error());  // the segment is in the repository, and read from there
}

Result<std::optional<Location>> Repository::find_location(const ObjectId& id) {
  const bool behind = indexed_listings_ != snapshot_listings_;  // asked first: another thread may fill it
  auto location = find_indexed(id);
  if (!location || *location || !behind) return location;
  // The snapshot that names it may be younger than our index.
  const std::unique_lock alone(recovery_mutex_);
  if (indexed_listings_ != snapshot_listings_) KIN_TRY(fill_index({}));
  return index_->locate(id);
}

Result<std::optional<Location>> Repository::find_indexed(const ObjectId& id) {
  {
    // Nobody looks while the cache is being filled again: what is not in it yet is not missing.
    const std::shared_lock filled(recovery_mutex_);
    auto location = index_->locate(id);
    if (location) return location;
  }
  // Once, whoever notices first.
  const std::unique_lock alone(recovery_mutex_);
  auto location = index_->locate(id);
  if (location) return location;
  KIN_TRY(recover_index(location.error()));
  return index_->locate(id);
}

Result<std::string> Repository::put_index_segment(IndexSegment& segment) {
  segment.sort();
  const Bytes file = sealer_.seal_file(kIndexMagic, encode_index_segment(segment));
  const std::string name = hex(hash(file));
  KIN_TRY(backend_->put({FileKind::index, name}, file));
  KIN_TRY(backend_->sync());
  return name;
}

Result<void> Repository::put_index_segments(IndexSegment& segment) {
  // An object that was stored again is listed at every place: all but one of them may be damaged.
  while (!segment.packs.empty()) {
    IndexSegment repeats = segment.take_repeats();
    KIN_TRY(put_index_segment(segment));
    segment = std::move(repeats);
  }
  return {};
}

Result<void> Repository::drop_from_index(const std::set<ObjectId>& packs, const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::index));
  std::vector<std::string> replaced;
  IndexSegment left;
  for (const FileInfo& file : files) {
    if (stop.stop_requested()) return interrupted();
    auto segment = load_index_segment(file.name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // someone else replaced it
    if (!segment) return std::move(segment).error();
    const auto goes = [&](const IndexPack& pack) { return packs.contains(pack.id); };
    if (std::none_of(segment->packs.begin(), segment->packs.end(), goes)) continue;
    left.add_others(*segment, packs);
    replaced.push_back(file.name);
    if (left.fills_a_segment()) KIN_TRY(put_index_segments(left));
  }
  KIN_TRY(put_index_segments(left));
  for (const std::string& name : replaced) KIN_TRY(backend_->remove({FileKind::index, name}));
  return backend_->sync();
}

Result<std::size_t> Repository::adopt_packs(const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> packs, backend_->list(FileKind::pack));
  std::size_t adopted = 0;
  for (const FileInfo& pack : packs) {
    if (stop.stop_requested()) return interrupted();
    const ObjectId id = *ObjectId::from_hex(pack.name);
    if (index_->has_pack(id) || marks_.condemns(id)) continue;
    IndexSegment segment;
    segment.packs.push_back({id, pack.size});
    const auto scanned =
        scan_pack(sealer_, *backend_, pack, [&](const BlockHeader& header, BlockRange range) -> Result<void> {
          segment.add_block(0, header, range);
          return {};
        });
    // A damaged pack that nothing refers to is check's business, not a reason to refuse a backup. A delta
    // whose base is gone does no harm: it does not count as stored.
    if (!scanned || segment.objects.empty()) continue;
    KIN_TRY_ASSIGN(const std::string name, put_index_segment(segment));
    KIN_TRY(add_to_index(name, segment));
    ++adopted;
  }
  return adopted;
}

bool Repository::is_whole(const ObjectId& pack) const {
  return get_named(*backend_, {FileKind::pack, pack.hex()}).has_value();
}

Result<void> Repository::find_lost_packs() {
  knows_lost_packs_ = true;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend_->list(FileKind::pack));
  std::map<ObjectId, std::uint64_t> sizes;
  for (const FileInfo& file : files) sizes.emplace(*ObjectId::from_hex(file.name), file.size);
  for (const IndexPack& pack : index_->packs()) {
    const auto file = sizes.find(pack.id);
    if ((file != sizes.end() && file->second == pack.size) || is_known_lost(pack.id)) continue;
    // A segment that was made while the pack was cut short has a size that is wrong once the pack is mended.
    if (file == sizes.end() || !is_whole(pack.id)) lose(pack.id);
  }
  // Damage that someone met earlier does not show in a listing. But the pack may have been brought back, or
  // the disk had a bad moment.
  for (const ObjectId& pack : index_->damaged_packs()) {
    if (is_known_lost(pack)) continue;
    if (sizes.contains(pack) && !is_whole(pack)) {
      lose(pack);
    } else {
      index_->note_damaged(pack, false);
    }
  }
  return {};
}

Result<void> Repository::fill_features(const std::stop_token& stop) {
  std::set<std::string> known = features().segments();
  if (came_second_) return {};
  const std::set<std::string> listed = index_->segments();
  if (!std::includes(listed.begin(), listed.end(), known.begin(), known.end())) {
    // As with the index: some of what they name may be gone.
    features_->clear();
    known.clear();
  }
  for (const std::string& name : listed) {
    if (known.contains(name)) continue;
    const auto segment = load_index_segment(name);
    if (!segment) continue;  // told when the index was filled
    bool is_final = true;
    // A pack may be in two segments, and its blocks are in one of them.
    std::set<std::pair<ObjectId, std::uint64_t>> listed_blocks;
    for (const IndexBlock& block : segment->blocks)
      listed_blocks.emplace(segment->packs[block.pack].id, block.range.offset);
    for (const IndexPack& pack : segment->packs) {
      if (stop.stop_requested()) return interrupted();
      // Up to a damage; the rest are no bases then, and that is all.
      const auto scanned = scan_pack(sealer_, *backend_, {pack.id.hex(), pack.size},
                                     [&](const BlockHeader& header, BlockRange range) -> Result<void> {
                                       if (!listed_blocks.contains({pack.id, range.offset})) return {};
                                       for (const BlockObject& object : header.objects)
                                         if (!object.features.empty())
                                           KIN_TRY(features_->add(object.id, object.features));
                                       return {};
                                     });
      if (!scanned && !stays_so(scanned.error())) is_final = false;
      // Or the size is from when the pack was cut short.
      if (!scanned && scanned.error().code() == ErrorCode::corrupt && !is_whole(pack.id))
        lose_damaged(pack.id);
    }
    // What a failing disk or network kept from us is there the next time.
    if (is_final) features_->commit(name);
  }
  return {};
}

// Of those that a prune has removed since they were listed, it could not know that we would list them here.
Result<void> Repository::drop_removed_packs(const std::vector<FileInfo>& packs) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> left, backend_->list(FileKind::pack));
  std::set<ObjectId> gone;
  for (const FileInfo& pack : packs) gone.insert(*ObjectId::from_hex(pack.name));
  for (const FileInfo& pack : left) gone.erase(*ObjectId::from_hex(pack.name));
  return gone.empty() ? Result<void>() : drop_from_index(gone, {});
}

// What is not there when the packs are listed is in no index any more, and then nobody misses it: the next
// who makes parity would take it for pruned. So what these segments or parity name is healed first.
Result<void> Repository::heal_for_index(const std::vector<FileInfo>& segments) {
  std::map<ObjectId, std::uint64_t> named, there;
  for (const FileInfo& file : segments)
    if (const auto segment = load_index_segment(file.name))
      for (const IndexPack& pack : segment->packs) named[pack.id] = pack.size;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> parity, backend_->list(FileKind::parity));
  for (const FileInfo& file : parity)
    if (const auto opened = ParityFile::open(parity_place(), file))
      for (const ParityHeader::Pack& pack : opened->header().packs) named[pack.id] = pack.size;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> packs, backend_->list(FileKind::pack));
  for (const FileInfo& pack : packs) there.emplace(*ObjectId::from_hex(pack.name), pack.size);
  KIN_TRY_ASSIGN(const StoredMarks stored, read_marks(*backend_, sealer_, [](const Error&) {}));
  for (const auto& [id, size] : named) {
    const auto at = there.find(id);
    if ((at != there.end() && at->second == size) || stored.marks.condemns(id)) continue;
    if (at == there.end() || !is_whole(id)) KIN_TRY(heal_on_disk(id));
  }
  return {};
}

Result<Repository::RebuildStats> Repository::rebuild_index(
    const std::function<void(const Error&)>& on_damage,
    const std::function<void(std::size_t, std::size_t)>& on_progress) {
  KIN_TRY(require_writable());
  KIN_TRY_ASSIGN(const std::vector<FileInfo> old_segments, backend_->list(FileKind::index));
  KIN_TRY(heal_for_index(old_segments));
  KIN_TRY_ASSIGN(std::vector<FileInfo> packs, backend_->list(FileKind::pack));
  std::sort(packs.begin(), packs.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  RebuildStats stats;
  IndexSegment segment;
  std::map<std::string, std::set<std::uint64_t>> damaged;  // packs, and where the blocks are that were found
  for (const FileInfo& pack : packs) {
    const auto number = static_cast<std::uint32_t>(segment.packs.size());
    const ObjectId id = *ObjectId::from_hex(pack.name);
    segment.packs.push_back({id, pack.size});
    std::set<std::uint64_t> found;
    const auto scan = [&] {
      return scan_pack(sealer_, *backend_, pack,
                       [&](const BlockHeader& header, BlockRange range) -> Result<void> {
                         // What preceded the damage is there already.
                         if (!found.insert(range.offset).second) return {};
                         segment.add_block(number, header, range);
                         ++stats.blocks;
                         stats.objects += header.objects.size();
                         return {};
                       });
    };
    auto scanned = scan();
    if (!scanned && scanned.error().code() != ErrorCode::not_found) {
      KIN_TRY_ASSIGN(const bool is_healed, heal_on_disk(id));
      if (is_healed) scanned = scan();
    }
    if (!scanned && scanned.error().code() == ErrorCode::not_found) continue;  // removed since it was listed
    if (!scanned && scanned.error().code() != ErrorCode::corrupt) return scanned.error();
    if (!scanned) {
      ++stats.damaged_packs;
      damaged[pack.name] = found;
      lose_damaged(id);
      on_damage(scanned.error());
    }
    on_progress(++stats.packs, packs.size());
    if (segment.fills_a_segment()) KIN_TRY(put_index_segments(segment));
  }
  // Behind the damage there may be sound blocks, which only the old segments know the places of.
  for (const FileInfo& old : damaged.empty() ? std::vector<FileInfo>() : old_segments) {
    const auto known = load_index_segment(old.name);
    const std::size_t blocks = segment.blocks.size();
    if (known) stats.objects += segment.add_missing(*known, damaged);
    stats.blocks += segment.blocks.size() - blocks;
  }
  KIN_TRY(put_index_segments(segment));
  // None of them was written just now: a segment is sealed with a new nonce, and so has a new name.
  std::optional<Error> left;
  for (const FileInfo& old : old_segments)
    if (auto removed = backend_->remove({FileKind::index, old.name}); !removed && !left)
      left = std::move(removed).error().context("the new index is complete, but a part of the old one stays");
  KIN_TRY(drop_removed_packs(packs));
  // Where that part still is, it is no segment.
  KIN_TRY(refresh_index(left ? std::function<void(const Error&)>([](const Error&) {}) : nullptr));
  KIN_TRY(fill_features({}));
  if (left) return *std::move(left);
  return stats;
}

}  // namespace kin::store

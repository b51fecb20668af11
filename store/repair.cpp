#include "store/repair.h"

#include "lib/base/text.h"
#include "lib/container/content_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace kin::store {
namespace {

constexpr const char* kRepairedTag = "repaired";

Error repair_interrupted() { return Error(ErrorCode::cancelled, "interrupted"); }

struct ListedBlock {
  std::uint32_t size = 0;
  std::vector<ObjectId> objects;
};
using BlocksByPack = std::map<ObjectId, std::map<std::uint64_t, ListedBlock>>;  // by offset

Result<void> for_each_segment(Repository& repository,
                              const std::function<Result<void>(const IndexSegment&)>& visit) {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository.backend().list(FileKind::index));
  for (const FileInfo& file : files) {
    const auto segment = repository.load_index_segment(file.name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // replaced by another
    if (!segment) return segment.error();
    KIN_TRY(visit(*segment));
  }
  return {};
}

// Of these packs, as the segments list them. A pack that none lists is among them too.
Result<BlocksByPack> listed_blocks(Repository& repository, const std::set<ObjectId>& packs) {
  BlocksByPack out;
  for (const ObjectId& pack : packs) out.try_emplace(pack);
  KIN_TRY(for_each_segment(repository, [&](const IndexSegment& segment) -> Result<void> {
    // Two segments may list a block, each with some of its objects.
    std::unordered_map<std::uint32_t, ListedBlock*> here;
    for (std::uint32_t i = 0; i < segment.blocks.size(); ++i) {
      const IndexBlock& block = segment.blocks[i];
      const auto pack = out.find(segment.packs[block.pack].id);
      if (pack == out.end()) continue;
      here.emplace(
          i, &pack->second.emplace(block.range.offset, ListedBlock{block.range.size, {}}).first->second);
    }
    for (const IndexObject& object : segment.objects)
      if (const auto at = here.find(object.block); at != here.end()) at->second->objects.push_back(object.id);
    return {};
  }));
  return out;
}

// Which objects of damaged packs are in others as well, where they can be read: those need not be stored
// again, and are not lost. A pack that is marked to be removed is no place to rely on, for a prune may be
// about to; but what is nowhere else is not lost, and the next prune finds it needed.
class OtherPlaces {
 public:
  OtherPlaces(Repository& repository, const std::set<ObjectId>& bad, Marks marks)
      : repository_(repository), bad_(bad), marks_(std::move(marks)) {}

  Result<void> find(const BlocksByPack& damaged);
  Result<bool> have_all(const std::vector<ObjectId>& objects, bool also_marked = false);
  void add(const std::vector<BlockObject>& objects) {
    for (const BlockObject& object : objects) sound_.insert(object.id);
  }

 private:
  struct Place {
    BlockRef block;
    std::optional<ObjectId> base;
  };
  Result<bool> is_sound(const Place& place, bool also_marked);
  // Not by way of what may be dropped.
  Result<bool> leans_on_good_packs(std::optional<ObjectId> base, bool also_marked);
  bool is_good(const ObjectId& pack, bool also_marked) const {
    return !bad_.contains(pack) && !marks_.sweeping.contains(pack) &&
           (also_marked || !marks_.packs.contains(pack));
  }

  Repository& repository_;
  const std::set<ObjectId>& bad_;
  const Marks marks_;
  std::unordered_multimap<ObjectId, Place, ObjectIdHash> places_;
  std::unordered_set<ObjectId, ObjectIdHash> sound_;
};

Result<void> OtherPlaces::find(const BlocksByPack& damaged) {
  std::unordered_set<ObjectId, ObjectIdHash> wanted;
  for (const auto& [pack, blocks] : damaged)
    for (const auto& [offset, block] : blocks) wanted.insert(block.objects.begin(), block.objects.end());
  return for_each_segment(repository_, [&](const IndexSegment& segment) -> Result<void> {
    for (const IndexObject& object : segment.objects) {
      const IndexBlock& block = segment.blocks[object.block];
      const ObjectId& pack = segment.packs[block.pack].id;
      if (!is_good(pack, true) || !wanted.contains(object.id)) continue;
      places_.emplace(object.id,
                      Place{{pack, block.range.offset, block.range.size, block.content_size}, block.base});
    }
    return {};
  });
}

Result<bool> OtherPlaces::leans_on_good_packs(std::optional<ObjectId> base, bool also_marked) {
  for (unsigned depth = 0; base; ++depth) {
    if (depth == kMostChain) return false;
    KIN_TRY_ASSIGN(const std::optional<Location> location, repository_.find_location(*base));
    if (!location || !is_good(location->pack, also_marked)) return false;
    base = location->base;
  }
  return true;
}

Result<bool> OtherPlaces::is_sound(const Place& place, bool also_marked) {
  if (!is_good(place.block.pack, also_marked)) return false;
  KIN_TRY_ASSIGN(const bool leans_well, leans_on_good_packs(place.base, also_marked));
  if (!leans_well) return false;
  const auto content = repository_.load_block(place.block);
  if (!content && !is_damage(content.error())) return content.error();
  return content.has_value();
}

Result<bool> OtherPlaces::have_all(const std::vector<ObjectId>& objects, bool also_marked) {
  for (const ObjectId& id : objects) {
    if (sound_.contains(id)) continue;
    const auto [begin, end] = places_.equal_range(id);
    bool sound = false;
    for (auto at = begin; at != end && !sound; ++at) {
      KIN_TRY_ASSIGN(sound, is_sound(at->second, also_marked));
    }
    if (!sound) return false;
    if (!also_marked) sound_.insert(id);
  }
  return !objects.empty();
}

Result<OpenedBlock> open_sound_block(Repository& repository, ByteView pack, std::uint64_t offset,
                                     std::size_t size) {
  KIN_TRY_ASSIGN(const Salt salt, read_pack_prefix(pack));
  if (offset > pack.size() || size > pack.size() - offset)
    return Error(ErrorCode::corrupt, "the pack ends before the block does");
  const ByteView record = pack.subspan(offset, size);
  KIN_TRY_ASSIGN(OpenedBlock block,
                 open_block(repository.sealer(), salt, offset, Bytes(record.begin(), record.end())));
  KIN_TRY(repository.decode(block));
  return block;
}

Result<void> save_blocks(Repository& repository, ByteView pack, const BlocksByPack::mapped_type& blocks,
                         OtherPlaces& others, bool dry_run, PackRepair& out) {
  for (const auto& [offset, listed] : blocks) {
    KIN_TRY_ASSIGN(const bool is_elsewhere, others.have_all(listed.objects));
    if (is_elsewhere) {
      ++out.doubled_blocks;
      continue;
    }
    auto block = open_sound_block(repository, pack, offset, listed.size);
    if (!block && !is_damage(block.error())) return std::move(block).error();
    if (!block) {
      KIN_TRY_ASSIGN(const bool is_marked, others.have_all(listed.objects, true));
      ++(is_marked ? out.doubled_blocks : out.lost_blocks);
      continue;
    }
    ++out.saved_blocks;
    if (dry_run) continue;
    // One that leans on what is elsewhere, in a circle perhaps, is no place to rely on.
    if (!block->header.base) others.add(block->header.objects);
    KIN_TRY(repository.append({std::move(block->header), std::move(block->payload)}));
  }
  return {};
}

// Reads them all; those that are listed and not there are among them.
Result<std::set<ObjectId>> find_bad_packs(Repository& repository, bool dry_run,
                                          const RepairObserver& observer, const std::stop_token& stop,
                                          PackRepair& out) {
  Backend& backend = repository.backend();
  // What could be healed if there were room for it is not bad.
  const auto heal = [&](const ObjectId& pack) -> Result<bool> {
    if (!dry_run) return repository.heal_on_disk(pack, stop);
    const bool is_healed = repository.heal(pack, stop) != Repository::Healed::no;
    if (is_healed) ++out.healed;
    return is_healed;
  };
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::pack));
  std::set<ObjectId> there, bad;
  for (const FileInfo& file : files) {
    observer.on_progress("reading packs", out.packs, files.size());
    if (stop.stop_requested()) return repair_interrupted();
    const ObjectId id = *ObjectId::from_hex(file.name);
    there.insert(id);
    ++out.packs;
    out.bytes += file.size;
    const auto read = get_named(backend, {FileKind::pack, file.name});
    if (read || read.error().code() == ErrorCode::not_found) continue;  // removed since it was listed
    if (!is_damage(read.error()) && read.error().code() != ErrorCode::io) return read.error();
    KIN_TRY_ASSIGN(const bool is_healed, heal(id));
    if (is_healed) continue;
    if (!is_damage(read.error())) return read.error();
    observer.on_found(read.error().message());
    bad.insert(id);
    ++out.damaged;
  }
  for (const IndexPack& pack : repository.index().packs()) {
    if (there.contains(pack.id)) continue;
    KIN_TRY_ASSIGN(const bool is_healed, heal(pack.id));
    if (is_healed) continue;
    observer.on_found(FileName{FileKind::pack, pack.id.hex()}.text() + " is missing");
    bad.insert(pack.id);
    ++out.missing;
  }
  return bad;
}

// So that nobody adopts the packs, and the next prune but one removes it all. Counts as no prune, so that it
// is as if the next one had marked them.
Result<void> give_up(Repository& repository, const std::set<ObjectId>& packs,
                     const std::set<SnapshotId>& forgotten) {
  if (packs.empty() && forgotten.empty()) return {};
  Backend& backend = repository.backend();
  KIN_TRY_ASSIGN(StoredMarks stored, read_marks(backend, repository.sealer(), [](const Error&) {}));
  for (const ObjectId& pack : packs) stored.marks.packs.emplace(pack, stored.marks.generation + 1);
  for (const SnapshotId& id : forgotten) stored.marks.forgotten.emplace(id, stored.marks.generation + 1);
  KIN_TRY_ASSIGN(const std::string name, put_marks(backend, repository.sealer(), stored.marks));
  for (const std::string& older : stored.names)
    if (older != name) KIN_TRY(backend.remove({FileKind::mark, older}));
  return backend.sync();
}

// What is sound in them is stored again, and they are given up.
Result<void> replace_packs(Repository& repository, std::set<ObjectId> packs, bool dry_run,
                           const RepairObserver& observer, const std::stop_token& stop, PackRepair& out) {
  KIN_TRY_ASSIGN(const BlocksByPack blocks, listed_blocks(repository, packs));
  KIN_TRY_ASSIGN(StoredMarks stored,
                 read_marks(repository.backend(), repository.sealer(), [](const Error&) {}));
  OtherPlaces others(repository, packs, std::move(stored.marks));
  KIN_TRY(others.find(blocks));
  std::set<ObjectId> there;
  std::uint64_t done = 0;
  for (const auto& [pack, listed] : blocks) {
    observer.on_progress("saving what is sound", done++, blocks.size());
    if (stop.stop_requested()) return repair_interrupted();
    const auto file = repository.backend().get({FileKind::pack, pack.hex()});
    if (!file && !is_damage(file.error())) return file.error();
    // One that is missing may be put back; then it is adopted.
    if (file || file.error().code() != ErrorCode::not_found) there.insert(pack);
    KIN_TRY(save_blocks(repository, file ? *file : Bytes(), listed, others, dry_run, out));
  }
  if (dry_run) return {};
  KIN_TRY(repository.flush());
  // Of a plain repository's pack that had damage between its blocks, the new one is the old one as it was.
  for (const ObjectId& healed : repository.written_packs()) {
    packs.erase(healed);
    there.erase(healed);
  }
  KIN_TRY(give_up(repository, there, {}));
  KIN_TRY(repository.drop_from_index(packs, stop));
  return repository.refresh_index();
}

// Those with a delta whose base is nowhere.
Result<std::set<ObjectId>> packs_without_bases(Repository& repository, const RepairObserver& observer,
                                               const std::stop_token& stop) {
  std::set<ObjectId> out;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository.backend().list(FileKind::index));
  // Who writes meanwhile lists a base before, or with, what leans on it: so what is listed by now has its
  // bases.
  KIN_TRY(repository.refresh_index());
  for (std::size_t done = 0; const FileInfo& file : files) {
    observer.on_progress("looking for bases", done++, files.size());
    if (stop.stop_requested()) return repair_interrupted();
    const auto segment = repository.load_index_segment(file.name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // replaced by another
    if (!segment) return segment.error();
    for (const IndexBlock& block : segment->blocks) {
      const ObjectId& pack = segment->packs[block.pack].id;
      if (!block.base || out.contains(pack)) continue;
      KIN_TRY_ASSIGN(const auto base, repository.find_location(*block.base));
      if (!base) out.insert(pack);
    }
  }
  return out;
}

}  // namespace

Result<PackRepair> repair_packs(Repository& repository, bool dry_run, const RepairObserver& observer,
                                const std::stop_token& stop) {
  PackRepair out;
  if (!dry_run) KIN_TRY(repository.require_removable());
  KIN_TRY(repository.refresh_index());  // a prune may have removed packs since
  KIN_TRY_ASSIGN(std::set<ObjectId> bad, find_bad_packs(repository, dry_run, observer, stop, out));
  if (!dry_run) out.healed = repository.healed_packs().size();  // also before, and with others
  KIN_TRY_ASSIGN(std::set<ObjectId> baseless, packs_without_bases(repository, observer, stop));
  bad.merge(baseless);
  // Without them, blocks of others may lack their base; and so on, up the chains.
  for (unsigned round = 0; !bad.empty() && round < kMostChain; ++round) {
    KIN_TRY(replace_packs(repository, bad, dry_run, observer, stop, out));
    if (dry_run) break;
    KIN_TRY_ASSIGN(bad, packs_without_bases(repository, observer, stop));
  }
  return out;
}

Result<ObjectId> TreeRepair::mend(const ObjectId& tree, const std::string& where) {
  return mend(tree, where, 0);
}

Result<void> TreeRepair::flush() {
  KIN_TRY(groups_.flush());
  return repository_.flush();
}

void TreeRepair::lose(const std::string& what, const Error& why) {
  ++lost_.things;
  observer_.on_found(what + ": " + why.message());
}

Result<ObjectId> TreeRepair::store(ObjectKind kind, const Bytes& bytes) {
  const ObjectId id = repository_.id_of(bytes);
  if (dry_run_) return id;
  KIN_TRY_ASSIGN(const bool is_new, repository_.claim(id));
  if (is_new) KIN_TRY(groups_.add({id, kind, bytes.size(), {}}, bytes));
  return id;
}

Result<std::optional<Error>> TreeRepair::fault_of(const Extent& extent) {
  if (sound_content_.contains(ShortId(extent.id))) return std::optional<Error>();
  if (const auto known = faults_.find(extent.id); known != faults_.end()) return std::optional(known->second);
  const auto loaded = repository_.load(extent.id);
  if (!loaded && !is_damage(loaded.error())) return loaded.error();
  if (!loaded) {
    faults_.emplace(extent.id, loaded.error());
    return std::optional(loaded.error());
  }
  // Another file may name it with the size that it has.
  if (extent.kind == Extent::Kind::data && (*loaded)->size() != extent.size)
    return std::optional(Error(ErrorCode::corrupt, "object " + extent.id.short_hex() + " has another size"));
  if (extent.kind == Extent::Kind::data) sound_content_.insert(ShortId(extent.id));
  return std::optional<Error>();
}

Result<std::optional<Error>> TreeRepair::fault_of(const Node& file) {
  std::optional<Error> fault;
  const auto read = for_each_object(repository_, file.content, [&](const Extent& extent) -> Result<bool> {
    if (stop_.stop_requested()) return repair_interrupted();
    KIN_TRY_ASSIGN(auto here, fault_of(extent));
    if (!here) return true;
    fault = std::move(here);
    return false;  // what lies below cannot be looked at
  });
  if (!read && !is_damage(read.error())) return read.error();
  if (!read && !fault) fault = read.error();
  return fault;
}

Result<ObjectId> TreeRepair::mend(const ObjectId& tree, const std::string& where, int depth) {
  if (sound_trees_.contains(ShortId(tree))) return tree;
  const std::uint64_t lost_before = lost_.things;
  TreeCursor cursor(repository_, tree);
  TreeWriter writer([this](ObjectKind kind, Bytes bytes) { return store(kind, bytes); });
  for (;;) {
    if (stop_.stop_requested()) return repair_interrupted();
    auto node = cursor.next();
    if (!node && !is_damage(node.error())) return std::move(node).error();
    if (!node) {  // and goes on with what follows
      lose(where + "/ in part", node.error());
      continue;
    }
    if (!*node) break;
    const std::string path = where + "/" + printable((*node)->name);
    if ((*node)->type == NodeType::file) {
      KIN_TRY_ASSIGN(const std::optional<Error> fault, fault_of(**node));
      if (fault) {
        lose(path, *fault);
        ++lost_.files;
        lost_.bytes += (*node)->size;
        continue;
      }
    }
    if ((*node)->type == NodeType::directory) {
      if (depth == kMostTreeDepth) {
        lose(path, Error(ErrorCode::corrupt, "is deeper than kin ever stores"));
        continue;
      }
      KIN_TRY_ASSIGN((*node)->subtree, mend((*node)->subtree, path, depth + 1));
    }
    KIN_TRY(writer.add(**node));
  }
  if (lost_.things != lost_before) return writer.finish();
  sound_trees_.insert(ShortId(tree));
  return tree;
}

namespace {

// As it was, but for what is lost.
Snapshot mended(const SnapshotId& id, Snapshot snapshot, const ObjectId& tree, const TreeRepair::Lost& before,
                const TreeRepair::Lost& after) {
  const auto less = [](std::uint64_t& count, std::uint64_t by) { count -= std::min(count, by); };
  snapshot.tree = tree;
  if (!snapshot.original) snapshot.original = id;
  snapshot.summary.skipped += after.things - before.things;
  less(snapshot.summary.files, after.files - before.files);
  less(snapshot.summary.bytes, after.bytes - before.bytes);
  if (!std::binary_search(snapshot.tags.begin(), snapshot.tags.end(), kRepairedTag)) {
    snapshot.tags.push_back(kRepairedTag);
    std::sort(snapshot.tags.begin(), snapshot.tags.end());
  }
  return snapshot;
}

}  // namespace

Result<SnapshotRepair> repair_snapshots(Repository& repository, bool dry_run, const RepairObserver& observer,
                                        const std::stop_token& stop) {
  SnapshotRepair out;
  if (!dry_run) KIN_TRY(repository.require_removable());
  TreeRepair trees(repository, dry_run, observer, stop);
  std::set<SnapshotId> set_aside;
  std::vector<StoredSnapshot> snapshots;
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> ids, repository.list_snapshots());
  for (const SnapshotId& id : ids) {
    auto snapshot = repository.load_snapshot(id);
    if (!snapshot && snapshot.error().code() == ErrorCode::not_found) continue;  // forgotten since
    if (!snapshot && !is_damage(snapshot.error())) return std::move(snapshot).error();
    ++out.snapshots;
    if (snapshot) {
      snapshots.push_back({id, *std::move(snapshot)});
      continue;
    }
    observer.on_found(snapshot.error().message());
    ++out.unreadable;
    set_aside.insert(id);
  }
  for (std::size_t done = 0; const auto& [id, snapshot] : snapshots) {
    observer.on_progress("reading snapshots", done++, snapshots.size());
    const TreeRepair::Lost before = trees.lost();
    KIN_TRY_ASSIGN(const ObjectId tree, trees.mend(snapshot.tree, id.short_hex() + ":"));
    if (trees.lost().things == before.things) continue;
    ++out.repaired;
    out.lost += trees.lost().things - before.things;
    if (dry_run) continue;
    const Snapshot without = mended(id, snapshot, tree, before, trees.lost());
    // An interrupted repair may have left it beside the old one.
    const bool is_there = std::any_of(snapshots.begin(), snapshots.end(), [&](const StoredSnapshot& other) {
      return encode_snapshot(other.snapshot) == encode_snapshot(without);
    });
    KIN_TRY(trees.flush());
    if (!is_there) KIN_TRY(repository.save_snapshot(without));
    KIN_TRY(repository.forget_snapshot(id));
  }
  if (dry_run) return out;
  for (const SnapshotId& id : set_aside) KIN_TRY(repository.set_aside_snapshot(id));
  KIN_TRY(give_up(repository, {}, set_aside));
  return out;
}

}  // namespace kin::store

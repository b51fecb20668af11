#include "store/parity.h"

#include <algorithm>
#include <map>

namespace kin::store {
namespace {

// What a set's parity may take, for it is in memory while it is made, and twice while packs are healed.
constexpr std::uint64_t kParityBytes = 24 << 20;
constexpr std::uint64_t kMostSetBytes = std::uint64_t{2} << 30;  // for the sake of the checksums
// To read so much again is cheap, whatever it is for.
constexpr std::uint64_t kCheapBytes = 64 << 20;

std::uint64_t most_set_bytes(unsigned percent) {
  return std::min(kMostSetBytes, kParityBytes * 100 / percent);
}

struct ParitySet {
  ParityFile file;
  bool is_stale = false;   // to be removed, once its packs are in others
  bool is_needed = false;  // one of its packs is damaged: perhaps it can be healed another day
};

struct ParitySets {
  std::vector<ParitySet> sets;
  std::set<std::string> damaged;  // files; some are of use all the same, and are in `sets` too
  std::set<std::string> unread;   // perhaps they can be read another day, or by a newer kin
};

Result<ParitySets> read_sets(Repository& repository, bool check_all,
                             const std::function<void(const Error&)>& on_damage,
                             const std::stop_token& stop) {
  ParitySets out;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository.backend().list(FileKind::parity));
  for (const FileInfo& file : files) {
    if (stop.stop_requested()) return interrupted();
    std::optional<Error> damage;
    auto opened = ParityFile::open(repository.parity_place(), file);
    if (!opened && opened.error().code() == ErrorCode::not_found) continue;  // replaced by another
    if (!opened && opened.error().code() != ErrorCode::corrupt) {
      on_damage(opened.error());
      out.unread.insert(file.name);
      continue;
    }
    if (!opened) {
      damage = opened.error();
    } else if (opened->shift() != 0) {
      damage =
          Error(ErrorCode::corrupt, FileName{FileKind::parity, file.name}.text() + " has another length");
    } else if (check_all) {
      const auto whole = get_named(repository.backend(), {FileKind::parity, file.name});
      if (!whole) damage = whole.error();
    }
    if (damage) {
      on_damage(*damage);
      out.damaged.insert(file.name);
    }
    if (opened) out.sets.push_back({*std::move(opened)});
  }
  return out;
}

class Update {
 public:
  Update(Repository& repository, const ParityOptions& options, const ParityObserver& observer,
         std::stop_token stop)
      : repository_(repository), options_(options), observer_(observer), stop_(std::move(stop)) {}

  Result<ParityUpdate> run();

 private:
  Result<void> look();
  Result<void> judge(ParitySet& set, const Marks& marks);
  void absorb();
  Result<void> put_most_needed_first();
  Result<void> write_all();
  Result<void> write(std::vector<ParityHeader::Pack> packs);
  Result<std::set<ObjectId>> pruned(const std::vector<ParityHeader::Pack>& packs);
  Result<void> remove_old();

  Repository& repository_;
  const ParityOptions& options_;
  const ParityObserver& observer_;
  const std::stop_token stop_;
  ParitySets known_;
  std::map<ObjectId, std::uint64_t> packs_;  // that are there to stay, with their sizes
  std::vector<ParityHeader::Pack> todo_;
  std::set<ObjectId> covered_;
  ParityUpdate out_;
};

Result<void> Update::look() {
  Backend& backend = repository_.backend();
  KIN_TRY_ASSIGN(known_, read_sets(
                             repository_, options_.check_all,
                             [&](const Error& error) { observer_.on_found(error.message()); }, stop_));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::pack));
  for (const FileInfo& file : files) packs_.emplace(*ObjectId::from_hex(file.name), file.size);
  KIN_TRY_ASSIGN(const StoredMarks stored, read_marks(backend, repository_.sealer(), [](const Error&) {}));
  for (ParitySet& set : known_.sets) KIN_TRY(judge(set, stored.marks));
  for (const ObjectId& pack : options_.leaving) packs_.erase(pack);
  if (options_.percent == 0) return {};
  std::set<ObjectId> known;
  for (const ParitySet& set : known_.sets) {
    for (const ParityHeader::Pack& pack : set.file.header().packs) {
      known.insert(pack.id);
      if (!set.is_stale) covered_.insert(pack.id);
    }
  }
  // What a prune will remove need not get any; what it has, it keeps until then.
  for (const auto& [id, size] : packs_)
    if (!covered_.contains(id) && size > 0 && (known.contains(id) || !stored.marks.condemns(id)))
      todo_.push_back({id, size});
  return {};
}

// Is the set as it was made? What is missing, and not by a prune, is damage: then now is the time to heal it.
// That no segment lists it does not tell: who made a new index while it was missing could not.
Result<void> Update::judge(ParitySet& set, const Marks& marks) {
  for (const ParityHeader::Pack& pack : set.file.header().packs) {
    if (options_.leaving.contains(pack.id)) {
      set.is_stale = true;
      continue;
    }
    const auto there = packs_.find(pack.id);
    if (there != packs_.end() && there->second == pack.size) continue;
    const bool is_missed = there != packs_.end() || repository_.index().has_pack(pack.id);
    if (marks.sweeping.contains(pack.id) || (!is_missed && marks.condemns(pack.id))) {
      set.is_stale = true;
      continue;
    }
    const Repository::Healed healed = repository_.heal(pack.id, stop_);
    if (stop_.stop_requested()) return interrupted();
    if (healed == Repository::Healed::on_disk)
      packs_[pack.id] = pack.size;
    else if (is_missed || healed == Repository::Healed::in_memory)
      set.is_needed = true;
    else
      set.is_stale = true;
  }
  if (options_.check_all &&
      (known_.damaged.contains(set.file.name()) || set.file.header().percent != options_.percent))
    set.is_stale = true;
  return {};
}

// The smallest first, as long as they are no larger than what there is by then, or all of it is little. Sets
// may have packs in common: two made them at once, or one was made anew and the old one did not go.
void Update::absorb() {
  std::vector<ParitySet*> sets;
  for (ParitySet& set : known_.sets)
    if (!set.is_stale && !set.is_needed && !known_.damaged.contains(set.file.name())) sets.push_back(&set);
  std::sort(sets.begin(), sets.end(), [](const ParitySet* a, const ParitySet* b) {
    return a->file.header().data_bytes() < b->file.header().data_bytes();
  });
  std::uint64_t bytes = 0;
  for (const ParityHeader::Pack& pack : todo_) bytes += pack.size;
  for (ParitySet* const set : sets) {
    const auto& packs = set->file.header().packs;
    std::uint64_t more = 0;
    for (const ParityHeader::Pack& pack : packs) more += covered_.contains(pack.id) ? pack.size : 0;
    if (bytes + more > most_set_bytes(options_.percent) || (more > bytes && bytes + more > kCheapBytes))
      break;
    bytes += more;
    set->is_stale = true;
    for (const ParityHeader::Pack& pack : packs)
      if (covered_.erase(pack.id) > 0) todo_.push_back(pack);
  }
}

Result<void> Update::put_most_needed_first() {
  std::map<ObjectId, std::uint64_t> dependents;
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository_.backend().list(FileKind::index));
  for (const FileInfo& file : files) {
    if (stop_.stop_requested()) return interrupted();
    const auto segment = repository_.load_index_segment(file.name);
    if (!segment && segment.error().code() == ErrorCode::not_found) continue;  // replaced by another
    if (!segment) return segment.error();
    for (const IndexBlock& block : segment->blocks) {
      if (!block.base) continue;
      KIN_TRY_ASSIGN(const std::optional<Location> base, repository_.find_location(*block.base));
      if (base) ++dependents[base->pack];
    }
  }
  std::stable_sort(todo_.begin(), todo_.end(),
                   [&](const auto& a, const auto& b) { return dependents[a.id] > dependents[b.id]; });
  return {};
}

Result<void> Update::write_all() {
  std::vector<ParityHeader::Pack> set;
  std::uint64_t bytes = 0;
  for (const ParityHeader::Pack& pack : todo_) {
    if (!set.empty() && bytes + pack.size > most_set_bytes(options_.percent)) {
      KIN_TRY(write(std::exchange(set, {})));
      bytes = 0;
    }
    set.push_back(pack);
    bytes += pack.size;
  }
  return set.empty() ? Result<void>() : write(std::move(set));
}

// Those that a prune removes or has removed since they were listed. It says so before it looks which parity
// there is, and we look after ours is there; so one sees the other.
Result<std::set<ObjectId>> Update::pruned(const std::vector<ParityHeader::Pack>& packs) {
  Backend& backend = repository_.backend();
  KIN_TRY_ASSIGN(const StoredMarks stored, read_marks(backend, repository_.sealer(), [](const Error&) {}));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, backend.list(FileKind::pack));
  std::set<std::string> there;
  for (const FileInfo& file : files) there.insert(file.name);
  const auto is_gone = [&](const ParityHeader::Pack& pack) { return !there.contains(pack.id.hex()); };
  // What is gone and is still listed is damage, which the new set can heal.
  if (std::any_of(packs.begin(), packs.end(), is_gone))
    KIN_TRY(repository_.refresh_index([](const Error&) {}));
  std::set<ObjectId> out;
  for (const ParityHeader::Pack& pack : packs) {
    const bool is_listed = repository_.index().has_pack(pack.id);
    if (!stored.marks.sweeping.contains(pack.id) && (!is_gone(pack) || is_listed)) continue;
    out.insert(pack.id);
    // As long as it is there, a set that has it stays: that prune may give up.
    if (is_gone(pack)) packs_.erase(pack.id);
  }
  return out;
}

Result<void> Update::write(std::vector<ParityHeader::Pack> packs) {
  const auto on_pack = [&] {
    observer_.on_progress("reading packs for parity", out_.packs + out_.unprotected.size(), todo_.size());
  };
  std::set<ObjectId> retried;
  while (!packs.empty()) {
    const ParityHeader header = plan_parity(packs, options_.percent);
    KIN_TRY_ASSIGN(const WrittenParity written,
                   write_parity(repository_.parity_place(), header, on_pack, stop_));
    if (written.file) {
      KIN_TRY(repository_.backend().sync());
      // Others go on the strength of this one.
      KIN_TRY_ASSIGN(const ParityFile made, ParityFile::open(repository_.parity_place(), *written.file));
      if (!(made.header() == header))
        return Error(ErrorCode::corrupt, FileName{FileKind::parity, made.name()}.text() +
                                             " is not what was written; the older parity stays");
      // They would take of the parity that the others may need.
      KIN_TRY_ASSIGN(const std::set<ObjectId> leaving, pruned(packs));
      if (!leaving.empty()) {
        KIN_TRY(repository_.backend().remove({FileKind::parity, made.name()}));
        std::erase_if(packs, [&](const ParityHeader::Pack& pack) { return leaving.contains(pack.id); });
        continue;
      }
      ++out_.files;
      out_.file_bytes += written.file->size;
      for (const ParityHeader::Pack& pack : packs) {
        covered_.insert(pack.id);
        ++out_.packs;
        out_.pack_bytes += pack.size;
      }
      return {};
    }
    std::vector<ParityHeader::Pack> left;
    for (ParityHeader::Pack& pack : packs) {
      if (written.unreadable.contains(pack.id)) {
        // Once: if it is healed and still cannot be read, it is not for us to find out why.
        const bool is_healed =
            retried.insert(pack.id).second && repository_.heal(pack.id, stop_) == Repository::Healed::on_disk;
        const auto whole = is_healed ? get_named(repository_.backend(), {FileKind::pack, pack.id.hex()})
                                     : Result<Bytes>(Bytes());
        if (stop_.stop_requested()) return interrupted();
        if (!whole || whole->empty()) {
          out_.unprotected.insert(pack.id);
          continue;
        }
        pack.size = whole->size();  // it may have been listed when it was cut short
      }
      left.push_back(pack);
    }
    packs = std::move(left);
  }
  return {};
}

// A file with a pack that has no other parity stays, for what it can still do.
Result<void> Update::remove_old() {
  std::set<std::string> useless = known_.damaged;
  if (options_.percent == 0) useless.insert(known_.unread.begin(), known_.unread.end());
  if (!out_.unprotected.empty()) useless.clear();
  for (const ParitySet& set : known_.sets) {
    const auto is_cared_for = [&](const ParityHeader::Pack& pack) {
      return covered_.contains(pack.id) || !packs_.contains(pack.id);
    };
    const auto& packs = set.file.header().packs;
    const bool may_go = options_.percent == 0 || (set.is_stale && !set.is_needed &&
                                                  std::all_of(packs.begin(), packs.end(), is_cared_for));
    if (may_go) useless.insert(set.file.name());
    if (!may_go) useless.erase(set.file.name());
  }
  for (const std::string& name : useless) {
    KIN_TRY(repository_.backend().remove({FileKind::parity, name}));
    ++out_.removed;
  }
  return {};
}

Result<ParityUpdate> Update::run() {
  // Parity that takes the place of older parity removes nothing.
  KIN_TRY(options_.percent == 0 ? repository_.require_removable() : repository_.require_writable());
  KIN_TRY(look());
  if (!todo_.empty()) {
    absorb();
    if (options_.most_needed_first) KIN_TRY(put_most_needed_first());
    KIN_TRY(write_all());
  }
  KIN_TRY(remove_old());
  return out_;
}

}  // namespace

Result<ParityUpdate> update_parity(Repository& repository, const ParityOptions& options,
                                   const ParityObserver& observer, const std::stop_token& stop) {
  return Update(repository, options, observer, stop).run();
}

Result<ParityStatus> parity_status(Repository& repository, bool check_all,
                                   const std::function<void(const Error&)>& on_damage,
                                   const std::stop_token& stop) {
  ParityStatus out;
  KIN_TRY_ASSIGN(const ParitySets known, read_sets(repository, check_all, on_damage, stop));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository.backend().list(FileKind::parity));
  for (const FileInfo& file : files) out.file_bytes += file.size;
  out.files = files.size();
  out.damaged_files = known.damaged.size() + known.unread.size();
  std::set<ObjectId> covered;
  for (const ParitySet& set : known.sets)
    for (const ParityHeader::Pack& pack : set.file.header().packs) covered.insert(pack.id);
  KIN_TRY_ASSIGN(const StoredMarks stored,
                 read_marks(repository.backend(), repository.sealer(), [](const Error&) {}));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> packs, repository.backend().list(FileKind::pack));
  for (const FileInfo& pack : packs) {
    const ObjectId id = *ObjectId::from_hex(pack.name);
    if (covered.contains(id)) {
      ++out.packs;
      out.pack_bytes += pack.size;
    } else if (!stored.marks.condemns(id)) {
      ++out.bare_packs;
      out.bare_bytes += pack.size;
    }
  }
  return out;
}

}  // namespace kin::store

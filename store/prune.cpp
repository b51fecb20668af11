#include "store/prune.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::store {
namespace {

// To write a pack anew for less than this is to write the same again, run after run.
constexpr double kLeastShareToRewrite = 0.01;

double unused_bytes(const BlockUse::Pack& pack) {
  return std::max(0.0, static_cast<double>(pack.size) - PackBuilder::kPrefixBytes - pack.used_bytes);
}

}  // namespace

Prune::Prune(Repository& repository, const PruneOptions& options,
             std::function<void(std::string_view, std::uint64_t, std::uint64_t)> on_progress)
    : repository_(repository), options_(options), on_progress_(std::move(on_progress)), groups_(repository) {}

Result<PruneReport> Prune::run(const std::stop_token& stop) {
  if (!options_.dry_run) KIN_TRY(repository_.require_removable());
  if (auto done = do_it(stop); !done) return explain(std::move(done).error());
  return report_;
}

Error Prune::explain(Error error) const {
  if (began_to_remove_) return error;
  const auto names = list_marks(repository_.backend());
  // What cannot be found may have been removed, by right.
  if (is_damage(error) && names && *names != before_.names)
    return Error(ErrorCode::busy, "another prune is at work; nothing was removed");
  return std::move(error).context("nothing was removed");
}

Result<void> Prune::do_it(const std::stop_token& stop) {
  KIN_TRY(look(stop));
  KIN_TRY(find_needless(stop));
  KIN_TRY(rebase(stop));
  std::set<ObjectId> sparse = choose_sparse();
  // Whoever found an old place of a delta, when its base is gone, would take it for damaged. And to free a
  // base whose pack stays as it is would free nothing.
  freed_packs_.merge(use_->packs_with_strays());
  for (const BlockUse::Pack& pack : use_->packs())
    if (pack.is_needed && freed_packs_.contains(pack.id)) sparse.insert(pack.id);
  // What another prune has said that it removes goes at any moment, if that prune still lives: nothing may be
  // left there, and it is we who end its work.
  for (const BlockUse::Pack& pack : use_->packs())
    if (pack.is_needed && before_.marks.sweeping.contains(pack.id)) sparse.insert(pack.id);
  report_.rewritten = part_of(sparse);
  if (!sparse.empty() && !options_.dry_run) {
    KIN_TRY(rewrite(sparse, stop));
    KIN_TRY(find_needless(stop));
  }
  plan();
  if (options_.dry_run) return {};
  if (!marks_.packs.empty() || !marks_.sweeping.empty() || !marks_.forgotten.empty() ||
      !before_.names.empty()) {
    KIN_TRY(say_it());
    KIN_TRY(spare_what_is_new(stop));
    KIN_TRY(renew_parity(stop));
    KIN_TRY(sweep(stop));
  }
  return {};
}

Result<void> Prune::look(const std::stop_token& stop) {
  Backend& backend = repository_.backend();
  // A mark that cannot be read permits nothing, and goes with this prune.
  KIN_TRY_ASSIGN(before_, read_marks(backend, repository_.sealer(), [](const Error&) {}));
  // In this order: of a snapshot that is listed, all segments are; of a segment, all packs.
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> snapshots, repository_.list_snapshots());
  snapshots_.insert(snapshots.begin(), snapshots.end());
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> forgotten, repository_.list_forgotten());
  for (const SnapshotId& id : forgotten)
    if (!snapshots_.contains(id)) forgotten_.insert(id);
  KIN_TRY_ASSIGN(use_, BlockUse::read(repository_, stop));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> packs, backend.list(FileKind::pack));
  for (const FileInfo& pack : packs) packs_.emplace(*ObjectId::from_hex(pack.name), pack.size);
  report_.before = {packs_.size(), 0};
  for (const auto& [id, size] : packs_) report_.before.bytes += size;
  report_.snapshots = snapshots.size();
  std::size_t done = 0;
  for (const SnapshotId& id : snapshots) {
    on_progress_("looking at snapshots", done++, snapshots.size());
    auto snapshot = repository_.load_snapshot(id);
    if (!snapshot && snapshot.error().code() == ErrorCode::not_found) continue;  // forgotten since
    if (!snapshot) return std::move(snapshot).error();
    if (auto added = use_->add(*snapshot, stop); !added)
      return std::move(added).error().context("snapshot " + id.short_hex());
  }
  return {};
}

Result<void> Prune::find_needless(const std::stop_token& stop) {
  const auto is_avoided = [&](const ObjectId& pack) {
    return before_.marks.condemns(pack) || rewritten_.contains(pack);
  };
  KIN_TRY(use_->choose_places(is_avoided, stop));
  needless_.clear();
  unindexed_.clear();
  std::set<ObjectId> indexed;
  for (const BlockUse::Pack& pack : use_->packs()) {
    indexed.insert(pack.id);
    bool is_there = packs_.contains(pack.id);
    if (pack.is_needed && !is_there) {
      KIN_TRY_ASSIGN(is_there, heal(pack.id, stop));
      if (is_there) packs_.emplace(pack.id, pack.size);
    }
    if (pack.is_needed && !is_there)
      return Error(ErrorCode::corrupt, fmt::format("pack {} is missing, and snapshots need it (kin check "
                                                   "tells which)",
                                                   pack.id.short_hex()));
    if (!pack.is_needed) needless_.insert(pack.id);
  }
  for (const auto& [id, size] : packs_)
    if (!indexed.contains(id)) {
      unindexed_.insert(id);
      needless_.insert(id);
    }
  return {};
}

Result<void> Prune::rebase(const std::stop_token& stop) {
  if (options_.rebase) {
    Rebase rebase(repository_, *use_, on_progress_);
    KIN_TRY(rebase.plan(stop));
    if (!options_.dry_run && rebase.report().written > 0) {
      if (!before_.names.empty()) repository_.name_packs_anew();
      KIN_TRY(rebase.carry_out(stop));
      KIN_TRY(take_in_written(stop));
      KIN_TRY(find_needless(stop));
    }
    report_.rebase = rebase.report();
    freed_packs_ = rebase.freed_packs();
    return {};
  }
  for (const BlockUse::BaseOnly& base : use_->bases_only()) {
    ++report_.rebase.kept;
    report_.rebase.kept_bytes += base.at.block.stored_size;
  }
  return {};
}

// Those with the largest needless part first, until what is left is little enough.
std::set<ObjectId> Prune::choose_sparse() const {
  std::vector<std::pair<double, BlockUse::Pack>> packs;
  double used = 0, unused = 0;
  for (const BlockUse::Pack& pack : use_->packs()) {
    if (!pack.is_needed) continue;
    const double here = unused_bytes(pack);
    used += pack.used_bytes;
    unused += here;
    packs.emplace_back(here / static_cast<double>(std::max<std::uint64_t>(pack.size, 1)), pack);
  }
  std::optional<double> most;
  if (options_.most_unused_bytes) most = static_cast<double>(*options_.most_unused_bytes);
  if (options_.most_unused_share && !most) most = *options_.most_unused_share * used;
  std::sort(packs.begin(), packs.end(), [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second.id) < std::pair(a.first, b.second.id);
  });
  std::set<ObjectId> out;
  for (const auto& [share, pack] : packs) {
    if (!most || unused <= *most || share < kLeastShareToRewrite) break;
    unused -= share * static_cast<double>(pack.size);
    out.insert(pack.id);
  }
  return out;
}

Result<void> Prune::rewrite(const std::set<ObjectId>& packs, const std::stop_token& stop) {
  if (!before_.names.empty()) repository_.name_packs_anew();
  std::uint64_t done = 0;
  for (const auto& [id, blocks] : use_->needed_blocks(packs)) {
    on_progress_("rewriting packs", done++, packs.size());
    if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    KIN_TRY(rewrite_pack(id, blocks, stop));
  }
  KIN_TRY(groups_.flush());
  report_.moved_bytes += groups_.stored_bytes();
  KIN_TRY(repository_.flush());
  rewritten_ = packs;
  // Where nothing is encrypted, equal blocks make equal packs: what was written may be one of these.
  for (const ObjectId& id : repository_.written_packs()) rewritten_.erase(id);
  return take_in_written(stop);
}

// What was written is listed now, and there.
Result<void> Prune::take_in_written(const std::stop_token& stop) {
  KIN_TRY(use_->refresh(stop));
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository_.backend().list(FileKind::pack));
  for (const FileInfo& file : files) packs_.emplace(*ObjectId::from_hex(file.name), file.size);
  return {};
}

// What could be healed if there were room for it is a reason to remove nothing.
Result<bool> Prune::heal(const ObjectId& pack, const std::stop_token& stop) {
  if (options_.dry_run) return repository_.heal(pack, stop) != Repository::Healed::no;
  return repository_.heal_on_disk(pack, stop);
}

Result<void> Prune::rewrite_pack(const ObjectId& id, const std::vector<BlockRef>& blocks,
                                 const std::stop_token& stop) {
  const FileName name{FileKind::pack, id.hex()};
  // Where it is damaged beyond that, its needed blocks may be sound.
  if (!get_named(repository_.backend(), name)) KIN_TRY(heal(id, stop));
  KIN_TRY_ASSIGN(const Bytes file, repository_.backend().get(name));
  KIN_TRY_ASSIGN(const Salt salt, read_pack_prefix(file));
  for (const BlockRef& at : blocks) {
    if (at.offset > file.size() || at.stored_size > file.size() - at.offset)
      return Error(ErrorCode::corrupt, "pack " + id.short_hex() + " ends too soon");
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at.offset);
    const auto copy_it = [&]() -> Result<void> {
      KIN_TRY_ASSIGN(OpenedBlock block,
                     open_block(repository_.sealer(), salt, at.offset, Bytes(begin, begin + at.stored_size)));
      KIN_TRY_ASSIGN(const BlockContent content, repository_.decode(block));
      const bool is_whole = std::all_of(block.header.objects.begin(), block.header.objects.end(),
                                        [&](const auto& object) { return use_->is_needed(object.id, at); });
      // A delta's objects would need their base no less if they were fewer.
      if (!is_whole && !block.header.base) return regroup(at, block, content);
      KIN_TRY_ASSIGN(const std::uint64_t bytes,
                     repository_.append({std::move(block.header), std::move(block.payload)}));
      report_.moved_bytes += bytes;
      return {};
    };
    if (auto copied = copy_it(); !copied)
      return std::move(copied).error().context(fmt::format("pack {} at byte {}", id.short_hex(), at.offset));
  }
  return {};
}

Result<void> Prune::regroup(const BlockRef& at, const OpenedBlock& block, const BlockContent& content) {
  for (const BlockObject& object : block.header.objects) {
    if (!use_->is_needed(object.id, at)) continue;
    const std::optional<ByteView> bytes = content.find(object.id);
    if (!bytes) return Error(ErrorCode::corrupt, "object " + object.id.short_hex() + " is not in its block");
    KIN_TRY(groups_.add(object, *bytes));
  }
  return {};
}

void Prune::plan() {
  const Marks& old = before_.marks;
  marks_ = {};
  marks_.generation = old.generation + 1;
  marks_.last_sweep = old.last_sweep;
  const auto since = [&](const auto& entries, const ObjectId& id) {
    const auto at = entries.find(id);
    // A generation that is yet to come was never ours.
    return at == entries.end() ? marks_.generation : std::min(at->second, marks_.generation);
  };
  for (const ObjectId& pack : needless_) {
    const std::uint64_t marked = since(old.packs, pack);
    // A pack that no segment lists may be one that someone is about to list.
    const std::uint64_t grace =
        unindexed_.contains(pack) ? std::max<std::uint64_t>(options_.grace, 1) : options_.grace;
    if (marks_.generation - marked >= grace || !packs_.contains(pack) || old.sweeping.contains(pack))
      marks_.sweeping.insert(pack);
    marks_.packs.emplace(pack, marked);
  }
  for (const SnapshotId& id : forgotten_) marks_.forgotten.emplace(id, since(old.forgotten, id));
  if (!marks_.sweeping.empty()) marks_.last_sweep = marks_.generation;

  report_.generation = marks_.generation;
  report_.removed = part_of(marks_.sweeping);
  const PruneReport::Part needless = part_of(needless_);
  report_.marked = {needless.packs - report_.removed.packs, needless.bytes - report_.removed.bytes};
  for (const auto& [id, marked] : marks_.forgotten)
    ++(marks_.generation - marked >= options_.grace ? report_.forgotten_removed : report_.forgotten_kept);
  report_.unused_bytes = 0;
  double unused = 0;
  for (const BlockUse::Pack& pack : use_->packs())
    if (pack.is_needed) unused += unused_bytes(pack);
  report_.unused_bytes = static_cast<std::uint64_t>(unused);
  PruneReport::Part all{packs_.size(), 0};
  for (const auto& [id, size] : packs_) all.bytes += size;
  report_.after = {all.packs - report_.removed.packs, all.bytes - report_.removed.bytes};
}

// From here on, who puts a snapshot sees what we mean to remove.
Result<void> Prune::say_it() {
  Backend& backend = repository_.backend();
  KIN_TRY_ASSIGN(mark_name_, put_marks(backend, repository_.sealer(), marks_));
  KIN_TRY_ASSIGN(std::set<std::string> names, list_marks(backend));
  names.erase(mark_name_);
  if (names == before_.names) return {};
  // Another has said what it will do since we looked, and each may have chosen to keep what the other
  // removes.
  return give_up();
}

Result<void> Prune::give_up() {
  KIN_TRY(repository_.backend().remove({FileKind::mark, mark_name_}));
  return Error(ErrorCode::busy, "another prune is at work");
}

Result<void> Prune::spare_what_is_new(const std::stop_token& stop) {
  KIN_TRY_ASSIGN(const std::vector<SnapshotId> snapshots, repository_.list_snapshots());
  bool any = false;
  for (const SnapshotId& id : snapshots) {
    if (!snapshots_.insert(id).second) continue;
    if (!std::exchange(any, true)) KIN_TRY(use_->refresh(stop));
    forgotten_.erase(id);
    auto snapshot = repository_.load_snapshot(id);
    if (!snapshot && snapshot.error().code() == ErrorCode::not_found) continue;
    if (!snapshot) return std::move(snapshot).error();
    if (auto added = use_->add(*snapshot, stop); !added)
      return std::move(added).error().context("snapshot " + id.short_hex());
  }
  if (!any) return {};
  for (const BlockUse::Pack& pack : use_->packs()) {
    if (!pack.is_needed || !needless_.contains(pack.id)) continue;
    // The other one may not spare it.
    if (before_.marks.sweeping.contains(pack.id)) return give_up();
    needless_.erase(pack.id);
    marks_.sweeping.erase(pack.id);
    marks_.packs.erase(pack.id);
  }
  return {};
}

// Before anything goes: a pack that is missing from its set takes of the parity that the others may need. One
// that is only marked keeps its parity: its snapshot may come back.
Result<void> Prune::renew_parity(const std::stop_token& stop) {
  ParityOptions options;
  options.percent = repository_.config().parity_percent;
  if (options.percent == 0) return {};
  options.leaving = marks_.sweeping;
  auto renewed = update_parity(repository_, options, {[](const std::string&) {}, on_progress_}, stop);
  if (renewed)
    report_.parity = *std::move(renewed);
  else if (renewed.error().code() == ErrorCode::cancelled)
    return std::move(renewed).error();
  else
    report_.parity_failed = std::move(renewed).error();
  return {};
}

Result<void> Prune::sweep(const std::stop_token& stop) {
  began_to_remove_ = true;
  Backend& backend = repository_.backend();
  const std::set<ObjectId> gone = marks_.sweeping;
  report_.removed = part_of(gone);
  report_.forgotten_removed = 0;
  // A forgotten snapshot goes before what it needs does: while it is there, it can be brought back.
  for (const auto& [id, marked] : std::map(marks_.forgotten)) {
    if (forgotten_.contains(id) && marks_.generation - marked < options_.grace) continue;
    marks_.forgotten.erase(id);
    if (!forgotten_.contains(id)) continue;
    KIN_TRY(backend.remove({FileKind::forgotten, id.hex()}));
    ++report_.forgotten_removed;
  }
  if (!gone.empty()) {
    KIN_TRY(repository_.drop_from_index(gone, stop));
    KIN_TRY_ASSIGN(const std::set<std::string> segments, segment_names());
    std::uint64_t done = 0;
    for (const ObjectId& pack : gone) {
      on_progress_("removing packs", done++, gone.size());
      if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
      // Another prune that ends this one's work takes its mark away; then nobody is warned any more.
      KIN_TRY_ASSIGN(const std::set<std::string> marks, list_marks(backend));
      if (!marks.contains(mark_name_)) return Error(ErrorCode::busy, "another prune has taken over");
      if (packs_.contains(pack)) KIN_TRY(backend.remove({FileKind::pack, pack.hex()}));
      marks_.packs.erase(pack);
    }
    KIN_TRY(backend.sync());
    // Who made a new index, or adopted packs, may have listed them while they were still there.
    KIN_TRY_ASSIGN(const std::set<std::string> segments_now, segment_names());
    if (!std::includes(segments.begin(), segments.end(), segments_now.begin(), segments_now.end()))
      KIN_TRY(repository_.drop_from_index(gone, stop));
  }
  // Where they still are in parity, who next makes it anew has to know that they are gone by right.
  if (!report_.parity_failed) marks_.sweeping.clear();
  KIN_TRY(put_marks(backend, repository_.sealer(), marks_));
  for (const std::string& name : before_.names) KIN_TRY(backend.remove({FileKind::mark, name}));
  return backend.remove({FileKind::mark, mark_name_});
}

Result<std::set<std::string>> Prune::segment_names() {
  KIN_TRY_ASSIGN(const std::vector<FileInfo> files, repository_.backend().list(FileKind::index));
  std::set<std::string> out;
  for (const FileInfo& file : files) out.insert(file.name);
  return out;
}

PruneReport::Part Prune::part_of(const std::set<ObjectId>& packs) const {
  PruneReport::Part out;
  for (const ObjectId& pack : packs) {
    const auto at = packs_.find(pack);
    if (at == packs_.end()) continue;
    ++out.packs;
    out.bytes += at->second;
  }
  return out;
}

}  // namespace kin::store

#include "tests/stress/client.h"

#include "store/block_use.h"
#include "store/check.h"
#include "store/parity.h"
#include "store/prune.h"
#include "store/snapshots.h"
#include "tests/stress/small_backup.h"
#include "tests/support/edits.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace kin::testing {
namespace {

using store::Repository;

constexpr std::uint64_t kCommandsPerKill = 10;
constexpr std::uint64_t kMostCallsOfTheKilled = 80;
constexpr std::size_t kMostSnapshots = 12;
constexpr std::uint64_t kCommandsPerClockJump = 8;

}  // namespace

Result<std::unique_ptr<Repository>> open_for_stress(std::unique_ptr<store::Backend> backend,
                                                    const std::string& cache_directory) {
  store::OpenOptions options;
  options.password = []() -> Result<std::string> { return std::string(kStressPassword); };
  options.cache_directory = cache_directory;
  options.use_cache = !cache_directory.empty();
  options.block_cache_bytes = 1 << 20;
  return Repository::open(std::move(backend), options);
}

// To be joined by: copy to another repository.
const Client::Command Client::kCommands[] = {
    {"backup", 30, &Client::back_up}, {"restore", 12, &Client::restore},
    {"forget", 10, &Client::forget},  {"forget by rules", 2, &Client::forget_by_rules},
    {"prune", 12, &Client::prune},    {"undelete", 6, &Client::undelete},
    {"check", 3, &Client::check},     {"repair index", 1, &Client::repair_index},
    {"tag", 4, &Client::tag},         {"meet damage", 4, &Client::meet_damage},
};

Client::Client(Company& company, std::size_t number, std::uint64_t seed, std::string cache_directory)
    : company_(company), number_(number), random_(seed), cache_directory_(std::move(cache_directory)) {
  life_.client = number;
}

const Client::Command& Client::choose_command() {
  if (company_.model.count(Model::Where::listed) > kMostSnapshots && random_.below(2) == 0)
    return *std::find_if(std::begin(kCommands), std::end(kCommands),
                         [](const Command& command) { return command.run == &Client::forget; });
  std::uint64_t all = 0;
  for (const Command& command : kCommands) all += command.weight;
  std::uint64_t at = random_.below(all);
  const Command* chosen = kCommands;
  for (; at >= chosen->weight; ++chosen) at -= chosen->weight;
  return *chosen;
}

void Client::step() {
  const Command& command = choose_command();
  life_.dead = false;
  life_.calls_left.reset();
  if (random_.below(kCommandsPerKill) == 0) life_.calls_left = random_.below(kMostCallsOfTheKilled);
  life_.troubles_before = company_.world.troubles();
  if (random_.below(kCommandsPerClockJump) == 0) company_.world.set_clock(life_.clock);
  ++company_.commands_begun;
  ++company_.at_work;
  const std::uint64_t begun = company_.commands_begun;
  if (company_.tell) company_.tell(fmt::format("client {} begins {} {}", number_, begun, command.name));
  const auto run = [&]() -> Result<void> {
    KIN_TRY_ASSIGN(const auto repository, open_for_stress(company_.world.open(life_), cache_directory_));
    return (this->*command.run)(*repository);
  };
  const Result<void> done = run();
  --company_.at_work;
  ++company_.counts[command.name][done ? 0 : 1];
  if (company_.tell)
    company_.tell(fmt::format("client {} ends {}: {}", number_, begun,
                              done ? "done" : done.error().message() + (is_excused() ? " (excused)" : "")));
  // Who is in the way of another is told so.
  if (!done && !is_excused() && done.error().code() != ErrorCode::busy)
    complain(fmt::format("{}: {}", command.name, done.error().message()));
}

void Client::complain(const std::string& what) {
  company_.wrong.push_back(fmt::format("client {}: {}", number_, what));
}

std::string Client::next_label() { return fmt::format("{}.{}", number_, ++labels_); }

void Client::change_files() {
  if (!files_.empty()) {
    former_.push_back(files_);
    if (former_.size() > 4) former_.erase(former_.begin());
  }
  if (!former_.empty() && random_.below(6) == 0) {
    files_ = former_[random_.below(former_.size())];
    return;
  }
  for (std::uint64_t changes = 1 + random_.below(4); changes > 0; --changes) {
    const std::string path = fmt::format("{}/{}", random_.below(3), random_.below(5));
    const auto at = files_.find(path);
    switch (random_.below(6)) {
      case 0:
        files_.erase(path);
        break;
      case 1:
        files_[path] = company_.common[random_.below(company_.common.size())];
        break;
      case 2:
        files_[path] = text_like(random_.next(), 500 + random_.below(6'000));
        break;
      default:
        files_[path] = at == files_.end()
                           ? edit(company_.common[random_.below(company_.common.size())], random_, 2)
                           : edit(at->second, random_, 1 + static_cast<int>(random_.below(3)));
    }
  }
}

Result<void> Client::back_up(Repository& repository) {
  change_files();
  Snapshot snapshot;
  snapshot.time = now();
  snapshot.host = next_label();
  company_.model.expect(snapshot.host, hashes_of(files_));
  KIN_TRY(repository.list_snapshots());
  KIN_TRY(repository.refresh_index());
  KIN_TRY(repository.begin_writing());
  auto committed = testing::back_up(repository, files_, previous_, snapshot, random_);
  if (!committed) {
    company_.may_be_broken |= is_excused();
    return std::move(committed).error();
  }
  company_.model.snapshots()[*committed] = {snapshot.host};
  return make_parity(repository);
}

// As long as nobody forgets it, whoever else is at work.
Result<void> Client::restore(Repository& repository) {
  std::vector<SnapshotId> ids;
  for (const auto& [id, known] : company_.model.snapshots())
    if (known.where == Model::Where::listed && !known.is_taken) ids.push_back(id);
  if (ids.empty()) return {};
  const SnapshotId id = ids[random_.below(ids.size())];
  const std::string label = company_.model.snapshots()[id].label;
  const auto read = [&]() -> Result<ContentHashes> {
    KIN_TRY(repository.list_snapshots());
    KIN_TRY_ASSIGN(const Snapshot snapshot, repository.load_snapshot(id));
    return restore_all(repository, snapshot.tree);
  };
  const auto restored = read();
  const auto known = company_.model.snapshots().find(id);
  const bool stayed = known != company_.model.snapshots().end() &&
                      known->second.where == Model::Where::listed && !known->second.is_taken;
  if (!restored) return stayed ? restored.error() : Result<void>();
  if (*restored != *company_.model.content(label))
    complain("snapshot of " + label + " restores to other content");
  return {};
}

Result<void> Client::forget_one(Repository& repository, const SnapshotId& id) {
  const auto forgotten = repository.forget_snapshot(id);
  Model::Known& known = company_.model.snapshots()[id];
  known.is_taken = false;
  known.where = forgotten ? Model::Where::forgotten : Model::Where::unsure;
  known.prunes_before = company_.model.prunes_ended;
  return forgotten;
}

Result<void> Client::forget(Repository& repository) {
  std::uint64_t left = 1 + random_.below(4);
  while (left-- > 0 && company_.model.count(Model::Where::listed) > 1) {
    const auto id = company_.model.take(random_, Model::Where::listed);
    if (!id) break;
    KIN_TRY(forget_one(repository, *id));
  }
  return {};
}

Result<void> Client::forget_by_rules(Repository& repository) {
  if (std::exchange(company_.somebody_applies_rules, true)) return {};
  auto done = apply_rules(repository);
  company_.somebody_applies_rules = false;
  return done;
}

Result<void> Client::apply_rules(Repository& repository) {
  RetentionPolicy policy;
  const std::uint64_t kind = random_.below(3);
  if (kind == 0) policy.last = 2 + static_cast<std::uint32_t>(random_.below(8));
  if (kind == 1) policy.daily = 2 + static_cast<std::uint32_t>(random_.below(8));
  if (kind == 2) policy.within.days = 1 + static_cast<unsigned>(random_.below(60));
  KIN_TRY_ASSIGN(const std::vector<store::StoredSnapshot> stored, store::load_snapshots(repository, {}));
  std::vector<const Snapshot*> newest_first;
  for (auto at = stored.rbegin(); at != stored.rend(); ++at) newest_first.push_back(&at->snapshot);
  const auto reasons = apply_policy(newest_first, policy, now());
  require_kept(policy, newest_first, reasons);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const SnapshotId& id = stored[stored.size() - 1 - i].id;
    const auto known = company_.model.snapshots().find(id);
    if (!reasons[i].empty() || known == company_.model.snapshots().end()) continue;
    if (known->second.is_taken || known->second.where != Model::Where::listed) continue;
    known->second.is_taken = true;
    KIN_TRY(forget_one(repository, id));
  }
  return {};
}

// Whatever the clocks said when they were made, and say now.
void Client::require_kept(const RetentionPolicy& policy, const std::vector<const Snapshot*>& newest_first,
                          const std::vector<std::vector<std::string>>& reasons) {
  constexpr std::int64_t kDay = 86'400;
  std::uint64_t newer = 0;
  std::optional<std::int64_t> newest;
  std::set<std::int64_t> days;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const std::int64_t seconds = newest_first[i]->time.seconds;
    const bool is_to_come = seconds > now().seconds + kDay;
    if (!is_to_come && !newest) newest = seconds;
    if (!is_to_come) days.insert(seconds / kDay);
    const bool goes = reasons[i].empty();
    if (goes && is_to_come) complain("rules forget what is yet to come");
    if (goes && newer < policy.last) complain("rules forget one of the last");
    if (goes && days.size() <= policy.daily && !is_to_come && newer == 0) complain("rules forget the newest");
    if (goes && newest && policy.within.days > 0 && seconds > *newest - kDay * policy.within.days)
      complain("rules forget what is within that time");
    newer += !is_to_come;
  }
}

Result<void> Client::undelete(Repository& repository) {
  const auto id = company_.model.take(random_, Model::Where::forgotten);
  if (!id) return {};
  const auto recall = [&]() -> Result<void> {
    KIN_TRY_ASSIGN(const Snapshot snapshot, repository.load_forgotten(*id));
    KIN_TRY_ASSIGN(store::BlockUse use, store::BlockUse::read(repository, {}));
    KIN_TRY(use.add(snapshot, {}));
    return repository.recall_snapshot(*id);
  };
  const auto recalled = recall();
  Model::Known& known = company_.model.snapshots()[*id];
  known.is_taken = false;
  known.where = recalled ? Model::Where::listed : Model::Where::unsure;
  known.may_be_broken = !recalled && is_excused();
  company_.may_be_broken |= known.may_be_broken;
  // A prune may have taken what it needs, by right.
  const bool was_pruned = company_.model.prunes_begun != known.prunes_before;
  if (recalled || was_pruned) return {};
  return recalled;
}

Result<void> Client::prune(Repository& repository) {
  store::PruneOptions options;
  options.grace = random_.below(3);
  options.most_unused_share = random_.below(2) == 0 ? 0 : 0.05;
  if (random_.below(4) == 0) options.most_unused_share.reset();
  options.rebase = random_.below(3) == 0;
  ++company_.model.prunes_begun;
  const auto pruned =
      store::Prune(repository, options, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({});
  ++company_.model.prunes_ended;
  // It removes nothing while a snapshot is listed that needs what is gone: one that is about to be taken
  // back, or that a killed client has left.
  const bool is_alone = company_.at_work == 1 && !company_.may_be_broken;
  if (!pruned && !is_alone && store::is_damage(pruned.error())) return {};
  if (!pruned) return pruned.error();
  return {};
}

Result<void> Client::check(Repository& repository) { return look_through(repository, random_.below(2) == 0); }

Result<void> Client::look_through(Repository& repository, bool read_all) {
  const std::uint64_t begun = company_.commands_begun;
  std::vector<std::string> problems;
  store::CheckObserver observer;
  observer.on_problem = [&](const std::string& problem) { problems.push_back(problem); };
  observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
  store::ReadSubset subset;
  if (read_all) subset.kind = store::ReadSubset::Kind::all;
  KIN_TRY(store::check(repository, {}, subset, observer, {}));
  // What comes and goes while it looks may look wrong.
  const bool was_alone = company_.commands_begun == begun && company_.at_work == 1;
  if (was_alone && !company_.may_be_broken && !is_excused())
    for (const std::string& problem : problems)
      if (!problem.starts_with("pack ") || !problem.ends_with(" is missing")) complain("check: " + problem);
  return {};
}

Result<void> Client::tag(Repository& repository) {
  const auto id = company_.model.take(random_, Model::Where::listed);
  if (!id) return {};
  const auto replace = [&]() -> Result<SnapshotId> {
    KIN_TRY_ASSIGN(Snapshot copy, repository.load_snapshot(*id));
    copy.tags = {next_label()};
    if (!copy.original) copy.original = *id;
    KIN_TRY_ASSIGN(const SnapshotId tagged, repository.save_snapshot(copy));
    company_.model.snapshots()[tagged] = {copy.host};
    KIN_TRY(repository.remove_snapshot(*id));
    return tagged;
  };
  const auto tagged = replace();
  Model::Known& known = company_.model.snapshots()[*id];
  known.is_taken = false;
  known.where = Model::Where::unsure;
  if (!tagged) return tagged.error();
  company_.model.snapshots().erase(*id);
  return {};
}

// As the program does after a backup: that it fails is no reason to say that the backup has.
Result<void> Client::make_parity(Repository& repository) {
  if (company_.parity_percent == 0) return {};
  store::ParityOptions options;
  options.percent = company_.parity_percent;
  const store::ParityObserver observer{[](const std::string&) {},
                                       [](std::string_view, std::uint64_t, std::uint64_t) {}};
  const auto made = store::update_parity(repository, options, observer, {});
  // What a prune removes meanwhile is missing, by right.
  if (!made && store::is_damage(made.error()) && company_.at_work > 1) return {};
  return made ? Result<void>() : made.error();
}

// A byte of a pack that has parity is another; a check puts it right, whoever else is at work.
Result<void> Client::meet_damage(Repository& repository) {
  FaultyDisk& disk = company_.world.disk();
  const auto direct = disk.open();
  const store::ParityPlace by_repository = repository.parity_place();
  const store::ParityPlace place{*direct, by_repository.sealer, by_repository.key};
  std::vector<FileName> packs;
  for (const FileName& name : disk.names(FileKind::parity)) {
    const auto file = store::ParityFile::open(place, {name.name, disk.file(name).size()});
    if (!file) return file.error();
    std::vector<FileName> here;
    for (const store::ParityHeader::Pack& pack : file->header().packs)
      if (disk.has({FileKind::pack, pack.id.hex()})) here.push_back({FileKind::pack, pack.id.hex()});
    // Those that a prune has removed without making it anew take of the others' parity.
    if (here.size() == file->header().packs.size()) packs.insert(packs.end(), here.begin(), here.end());
  }
  if (packs.empty() || company_.is_damaged) return {};
  const FileName pack = packs[random_.below(packs.size())];
  const Bytes whole = disk.file(pack);
  Bytes damaged = whole;
  damaged[random_.below(damaged.size())] ^= static_cast<std::uint8_t>(1 + random_.below(255));
  disk.write(pack, damaged);
  company_.is_damaged = true;
  ++company_.damages;
  auto checked = look_through(repository, true);
  company_.is_damaged = false;
  if (disk.has(pack) && disk.file(pack) == whole) ++company_.healed;
  if (!disk.has(pack) || disk.file(pack) == whole) return checked;
  disk.write(pack, whole);
  const auto stored = store::read_marks(*direct, repository.sealer(), [](const Error&) {});
  const bool is_given_up = stored && stored->marks.condemns(*ObjectId::from_hex(pack.name));
  if (!is_excused() && !is_given_up) complain(pack.text() + " was not healed");
  return checked;
}

Result<void> Client::repair_index(Repository& repository) {
  const auto rebuilt = repository.rebuild_index(
      [&](const Error& error) {
        if (!company_.is_damaged) complain("repair index: " + error.message());
      },
      [](std::size_t, std::size_t) {});
  if (!rebuilt) return rebuilt.error();
  return {};
}

}  // namespace kin::testing

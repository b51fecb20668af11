#include "tests/stress/crash_points.h"

#include "store/block_use.h"
#include "store/check.h"
#include "store/parity.h"
#include "store/prune.h"
#include "store/repair.h"
#include "tests/stress/model.h"
#include "tests/stress/small_backup.h"
#include "tests/support/edits.h"
#include "tests/support/encryption.h"
#include "tests/support/faulty_backend.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>

namespace kin::testing {
namespace {

using store::Repository;
using Unsynced = FaultyDisk::Unsynced;

constexpr const char* kPasswords[] = {"correct horse", "battery staple"};

struct Quiet {
  void operator()(const std::string&) const {}
  void operator()(const Error&) const {}
  void operator()(std::size_t, std::size_t) const {}
  void operator()(std::string_view, std::uint64_t, std::uint64_t) const {}
};

class StoppedProgram {
 public:
  StoppedProgram(std::uint64_t seed, std::uint64_t stride, CrashPoints& out)
      : random_(seed),
        stride_(stride),
        out_(out),
        is_encrypted_(seed % 2 == 1),
        percent_(seed % 3 == 0 ? 20 : 0) {}

  void run(std::uint64_t commands) {
    FaultyDisk disk;
    const auto password = is_encrypted_ ? std::optional<std::string>(kPasswords[0]) : std::nullopt;
    if (!Repository::create(*disk.open(), password, kCheapPassword, Scanner::kDefaultFeatures, percent_))
      return complain("cannot be made");
    files_ = disk.files();
    for (std::uint64_t i = 0; i < commands && out_.wrong.empty(); ++i) {
      const Command command = i < 3 ? back_up() : choose();
      if (command.run) stop_at_each_step(command);
    }
  }

 private:
  struct Command {
    std::string name = {};
    // Whether or not it, or a part of it, was done before.
    std::function<Result<void>(Repository&)> run = {};
    std::set<SnapshotId> goes = {};  // snapshots that it is to forget
    std::string makes = {};          // the label of the snapshot that it is to make
    bool is_harmed = false;          // before it, so that nothing is promised until it was done
    bool may_lose = false;           // files
  };

  Command choose() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return back_up();
      case 2:
        return forget();
      case 3:
        return undelete();
      case 4:
      case 5:
        return prune();
      case 6:
        return tag();
      case 7:
        return random_.below(2) == 0 ? repair_index() : change_key();
      case 8:
        return repair();
      default:
        return percent_ > 0 && random_.below(2) == 0 ? heal() : change_parity();
    }
  }

  Command back_up() {
    FileContents files = files_of_user_;
    for (std::uint64_t changes = 2 + random_.below(3); changes > 0; --changes) {
      const std::string path = fmt::format("{}/{}", random_.below(2), random_.below(3));
      const auto at = files.find(path);
      files[path] = at == files.end() || random_.below(4) == 0
                        ? text_like(random_.next(), 500 + random_.below(3'000))
                        : edit(at->second, random_, 2);
    }
    if (files.size() > 4 && random_.below(3) == 0) files.erase(files.begin());
    files_of_user_ = files;
    const std::string label = fmt::format("{}", ++labels_);
    contents_[label] = hashes_of(files);
    const std::uint64_t seed = random_.next();
    return {"backup",
            [=, this](Repository& repository) -> Result<void> {
              Snapshot snapshot;
              snapshot.time = {1'700'000'000 + static_cast<std::int64_t>(labels_), 0};
              snapshot.host = label;
              std::map<std::string, ObjectId> previous;
              Random random(seed);
              KIN_TRY(repository.begin_writing());
              KIN_TRY(testing::back_up(repository, files, previous, snapshot, random));
              return make_parity(repository, percent_, false);
            },
            {},
            label};
  }

  Command forget() {
    if (listed_.size() < 2) return {};
    const SnapshotId id = one_of(listed_);
    return {"forget",
            [=](Repository& repository) -> Result<void> {
              KIN_TRY_ASSIGN(const auto ids, repository.list_snapshots());
              if (std::find(ids.begin(), ids.end(), id) == ids.end()) return {};
              return repository.forget_snapshot(id);
            },
            {id}};
  }

  Command undelete() {
    if (forgotten_.empty()) return {};
    const SnapshotId id = one_of(forgotten_);
    return {"undelete", [=](Repository& repository) -> Result<void> {
              KIN_TRY_ASSIGN(const auto ids, repository.list_snapshots());
              if (std::find(ids.begin(), ids.end(), id) != ids.end()) return {};
              KIN_TRY_ASSIGN(const Snapshot snapshot, repository.load_forgotten(id));
              KIN_TRY_ASSIGN(store::BlockUse use, store::BlockUse::read(repository, {}));
              if (!use.add(snapshot, {})) return {};  // it was pruned, or lost
              const auto recalled = repository.recall_snapshot(id);
              return recalled || recalled.error().code() == ErrorCode::busy ? Result<void>()
                                                                            : recalled.error();
            }};
  }

  Command prune() {
    store::PruneOptions options;
    options.grace = random_.below(3);
    options.most_unused_share = 0;
    options.rebase = random_.below(2) == 0;
    return {"prune", [=](Repository& repository) -> Result<void> {
              KIN_TRY(store::Prune(repository, options, Quiet()).run({}));
              return {};
            }};
  }

  Command tag() {
    if (listed_.empty()) return {};
    const SnapshotId id = one_of(listed_);
    return {"tag",
            [=](Repository& repository) -> Result<void> {
              KIN_TRY_ASSIGN(const auto ids, repository.list_snapshots());
              if (std::find(ids.begin(), ids.end(), id) == ids.end()) return {};
              KIN_TRY_ASSIGN(Snapshot copy, repository.load_snapshot(id));
              copy.tags = {"tagged"};
              if (!copy.original) copy.original = id;
              KIN_TRY(repository.save_snapshot(copy));
              return repository.remove_snapshot(id);
            },
            {id},
            known_[id].label};
  }

  // After one segment is lost, sometimes.
  Command repair_index() {
    Command command{"repair index", [](Repository& repository) -> Result<void> {
                      KIN_TRY(repository.rebuild_index(Quiet(), Quiet()));
                      return {};
                    }};
    command.is_harmed = random_.below(2) == 0;
    if (command.is_harmed) files_.erase(one_of(names(store::FileKind::index)));
    return command;
  }

  Command change_key() {
    if (!is_encrypted_) return {};
    return {"key passwd", [this](Repository& repository) -> Result<void> {
              const bool is_first = opened_with_ == 0;
              KIN_TRY(store::add_key(repository.backend(), repository.master_key(), kPasswords[is_first],
                                     kCheapPassword));
              return repository.backend().remove({store::FileKind::key, repository.key_name()});
            }};
  }

  // A byte of a pack is another; where there is parity, of one that has it.
  void harm() {
    std::vector<FileName> packs = names(store::FileKind::pack);
    if (percent_ > 0) packs = protected_packs();
    if (packs.empty()) return;
    Bytes& pack = files_[one_of(packs)];
    pack[random_.below(pack.size())] ^= static_cast<std::uint8_t>(1U << random_.below(8));
  }

  std::vector<FileName> protected_packs() {
    FaultyDisk disk;
    for (const auto& [name, bytes] : files_) disk.write(name, bytes);
    const auto repository = open(disk);
    std::vector<FileName> out;
    for (const FileName& name : names(store::FileKind::parity)) {
      if (!repository) break;
      const auto set =
          store::ParityFile::open((*repository)->parity_place(), {name.name, files_[name].size()});
      if (!set) continue;
      for (const store::ParityHeader::Pack& pack : set->header().packs)
        if (const FileName one{store::FileKind::pack, pack.id.hex()}; files_.contains(one))
          out.push_back(one);
    }
    return out;
  }

  Command repair() {
    if (random_.below(2) == 0) harm();
    Command command{"repair", [this](Repository& repository) -> Result<void> {
                      KIN_TRY(repository.rebuild_index(Quiet(), Quiet()));
                      const store::RepairObserver observer{Quiet(), Quiet()};
                      KIN_TRY(repository.begin_writing());
                      KIN_TRY(store::repair_packs(repository, false, observer, {}));
                      KIN_TRY(store::repair_snapshots(repository, false, observer, {}));
                      return make_parity(repository, percent_, false);
                    }};
    command.is_harmed = true;
    command.may_lose = percent_ == 0;
    if (command.may_lose) command.goes.insert(listed_.begin(), listed_.end());
    return command;
  }

  Command heal() {
    harm();
    Command command{"heal", [this](Repository& repository) -> Result<void> {
                      const auto problems = problems_of(repository);
                      if (problems.empty()) return {};
                      return Error(ErrorCode::corrupt, problems.front());
                    }};
    return command;
  }

  Command change_parity() {
    const unsigned percent = percent_ > 0 ? 0 : 20;
    percent_ = percent;
    return {"parity", [=, this](Repository& repository) -> Result<void> {
              KIN_TRY(repository.set_parity_percent(percent));
              return make_parity(repository, percent, true);
            }};
  }

  Result<void> make_parity(Repository& repository, unsigned percent, bool always) {
    if (percent == 0 && !always) return {};
    store::ParityOptions options;
    options.percent = percent;
    options.check_all = always;
    KIN_TRY(store::update_parity(repository, options, {Quiet(), Quiet()}, {}));
    return {};
  }

  template <class Many>
  typename Many::value_type one_of(const Many& many) {
    return *std::next(many.begin(), static_cast<std::ptrdiff_t>(random_.below(many.size())));
  }

  std::vector<FileName> names(store::FileKind kind) const {
    std::vector<FileName> out;
    for (const auto& [name, bytes] : files_)
      if (name.kind == kind) out.push_back(name);
    return out;
  }

  Result<std::unique_ptr<Repository>> open(FaultyDisk& disk) {
    Result<std::unique_ptr<Repository>> out = Error(ErrorCode::wrong_password, "");
    for (opened_with_ = 0; opened_with_ < 2; ++opened_with_) {
      store::OpenOptions options;
      options.password = [&]() -> Result<std::string> { return std::string(kPasswords[opened_with_]); };
      options.use_cache = false;
      options.block_cache_bytes = 1 << 20;
      out = Repository::open(disk.open(), options);
      if (out || out.error().code() != ErrorCode::wrong_password) break;
    }
    return out;
  }

  Result<void> give(const Command& command, FaultyDisk& disk) {
    KIN_TRY_ASSIGN(const auto repository, open(disk));
    KIN_TRY(repository->refresh_index([](const Error&) {}));
    return command.run(*repository);
  }

  void stop_at_each_step(const Command& command) {
    for (const Unsynced unsynced : {Unsynced::lost, Unsynced::kept, Unsynced::every_other})
      for (std::uint64_t steps = 1 + random_.below(stride_); out_.wrong.empty(); steps += stride_) {
        FaultyDisk disk;
        for (const auto& [name, bytes] : files_) disk.write(name, bytes);
        disk.leave(unsynced);
        disk.crash_after(steps);
        static_cast<void>(give(command, disk));
        if (!disk.crashed()) break;
        disk.restart();
        ++out_.stopped[command.name];
        ++out_.all;
        where_ = fmt::format("{} that was stopped after step {} ({})", command.name, steps,
                             unsynced == Unsynced::lost   ? "what was not synced is lost"
                             : unsynced == Unsynced::kept ? "what was not synced is kept"
                                                          : "some of what was not synced is kept");
        if (!command.is_harmed) look(disk, command, false);
        if (const auto again = give(command, disk); !again)
          complain("given again: " + again.error().message());
        look(disk, command, true);
      }
    FaultyDisk disk;
    for (const auto& [name, bytes] : files_) disk.write(name, bytes);
    where_ = command.name;
    if (const auto done = give(command, disk); !done) return complain(done.error().message());
    look(disk, command, true);
    learn(disk);
  }

  static std::vector<std::string> problems_of(Repository& repository) {
    std::vector<std::string> out;
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { out.push_back(problem); };
    observer.on_progress = Quiet();
    const auto checked = store::check(repository, {}, {store::ReadSubset::Kind::all}, observer, {});
    if (!checked) out.push_back(checked.error().message());
    return out;
  }

  // By one who has only what is on the disk.
  void look(FaultyDisk& disk, const Command& command, bool is_done) {
    const auto opened = open(disk);
    if (!opened) return complain("cannot be opened: " + opened.error().message());
    Repository& repository = **opened;
    const auto ids = repository.list_snapshots();
    if (!ids) return complain("cannot list snapshots");
    const std::set<SnapshotId> there(ids->begin(), ids->end());
    for (const SnapshotId& id : listed_)
      if (!there.contains(id) && !command.goes.contains(id))
        complain("snapshot " + id.short_hex() + " is gone");
    bool is_made = command.makes.empty() || !is_done;
    for (const SnapshotId& id : there) {
      const auto snapshot = repository.load_snapshot(id);
      if (!snapshot) {
        complain(snapshot.error().message());
        continue;
      }
      is_made |= snapshot->host == command.makes;
      const auto restored = restore_all(repository, snapshot->tree);
      if (!restored) {
        complain("snapshot of " + snapshot->host + ": " + restored.error().message());
        continue;
      }
      const auto known = known_.find(id);
      const ContentHashes& wanted = known == known_.end() ? contents_[snapshot->host] : known->second.content;
      const bool is_right =
          command.may_lose || (known == known_.end() && lossy_.contains(snapshot->host))
              ? std::includes(wanted.begin(), wanted.end(), restored->begin(), restored->end())
              : *restored == wanted;
      if (!is_right) complain("snapshot of " + snapshot->host + " has other content");
      if (command.may_lose && is_done && *restored != wanted) lost_now_.insert(snapshot->host);
    }
    if (!is_made) complain("its snapshot is not there");
    for (const std::string& problem : problems_of(repository)) complain("check: " + problem);
  }

  void learn(FaultyDisk& disk) {
    const auto repository = open(disk);
    if (!repository) return;
    files_ = disk.files();
    const auto listed = (*repository)->list_snapshots(), forgotten = (*repository)->list_forgotten();
    listed_ = {listed->begin(), listed->end()};
    forgotten_ = {forgotten->begin(), forgotten->end()};
    lossy_.insert(lost_now_.begin(), lost_now_.end());
    for (const SnapshotId& id : listed_) {
      const auto snapshot = (*repository)->load_snapshot(id);
      if (known_.contains(id) || !snapshot) continue;
      if (auto restored = restore_all(**repository, snapshot->tree))
        known_[id] = {snapshot->host, *std::move(restored)};
    }
  }

  void complain(const std::string& what) { out_.wrong.push_back(where_ + ": " + what); }

  struct Known {
    std::string label;
    ContentHashes content;
  };

  Random random_;
  const std::uint64_t stride_;
  CrashPoints& out_;
  const bool is_encrypted_;
  unsigned percent_;
  std::map<FileName, Bytes> files_;  // on the disk, between commands
  FileContents files_of_user_;
  std::map<std::string, ContentHashes> contents_;  // by label: what was backed up
  std::set<std::string> lossy_, lost_now_;         // labels of what a repair has mended
  std::set<SnapshotId> listed_, forgotten_;
  std::map<SnapshotId, Known> known_;
  std::uint64_t labels_ = 0;
  std::size_t opened_with_ = 0;
  std::string where_;
};

}  // namespace

void stop_everywhere(std::uint64_t seed, std::uint64_t commands, std::uint64_t stride, CrashPoints& out) {
  StoppedProgram(seed, stride, out).run(commands);
}

}  // namespace kin::testing

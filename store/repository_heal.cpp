// How Repository heals packs that are damaged or missing, if it has parity for them.
#include "store/parity_heal.h"
#include "store/repository.h"

#include <algorithm>

namespace kin::store {
namespace {

// Of healed packs that cannot be written back, as on a medium that is read-only.
constexpr std::size_t kMostHealedBytes = 64 << 20;

bool is_of(const ParityFile& file, const ObjectId& pack) {
  const auto& packs = file.header().packs;
  return std::any_of(packs.begin(), packs.end(), [&](const auto& one) { return one.id == pack; });
}

}  // namespace

ParityPlace Repository::parity_place() { return {*backend_, sealer_, parity_key_}; }

Repository::Healed Repository::heal(const ObjectId& pack) {
  if (!heals_) return Healed::no;
  MutexLock alone(heal_mutex_);
  {
    MutexLock lock(mutex_);
    if (healed_.contains(pack)) return Healed::in_memory;
    if (beyond_healing_.contains(pack)) return Healed::no;
  }
  if (healed_on_disk_.contains(pack) && is_whole(pack)) return Healed::on_disk;  // by another thread
  Healed out = Healed::no;
  const auto take = [&](const ObjectId& id, Bytes bytes) KIN_REQUIRES(heal_mutex_) -> Result<void> {
    const Healed how = keep_healed(id, std::move(bytes));
    if (id == pack) out = how;
    return {};
  };
  const auto is_wanted = [&](const ObjectId& id) { return id == pack || index_->has_pack(id); };
  bool has_parity = false;
  const auto files = backend_->list(FileKind::parity);
  for (const FileInfo& file : files ? *files : std::vector<FileInfo>()) {
    const auto opened = ParityFile::open(parity_place(), file);
    if (!opened || !is_of(*opened, pack)) continue;
    has_parity = true;
    // What fails here is no worse than it was; another file may have the pack as well.
    static_cast<void>(heal_from_parity(parity_place(), *opened, is_wanted, take, {}));
    if (out != Healed::no) return out;
  }
  if (has_parity && is_whole(pack)) return Healed::on_disk;  // the disk had a bad moment
  MutexLock lock(mutex_);
  beyond_healing_.insert(pack);
  return Healed::no;
}

// Where it was, if it can be put there.
Repository::Healed Repository::keep_healed(const ObjectId& pack, Bytes bytes) {
  const auto put = [&]() -> Result<void> {
    KIN_TRY(require_writable());
    KIN_TRY(backend_->put({FileKind::pack, pack.hex()}, bytes));
    return backend_->sync();
  };
  const auto done = put();
  if (done) healed_on_disk_.insert(pack);
  {
    MutexLock lock(mutex_);
    salts_.erase(pack);
    lost_packs_.erase(pack);
    if (!done) {
      std::size_t all = bytes.size();
      for (const auto& [id, other] : healed_) all += other->size();
      if (all > kMostHealedBytes) healed_.clear();
      healed_[pack] = std::make_shared<const Bytes>(std::move(bytes));
    }
  }
  if (done) index_->note_damaged(pack, false);
  if (on_healed_) on_healed_(pack, done);
  return done ? Healed::on_disk : Healed::in_memory;
}

std::set<ObjectId> Repository::healed_packs() {
  MutexLock lock(heal_mutex_);
  return healed_on_disk_;
}

void Repository::heal_lost_packs() {
  for (const ObjectId& pack : lost_packs()) heal(pack);
}

Result<void> Repository::set_parity_percent(unsigned percent) {
  KIN_TRY(require_writable());
  Config config = config_;
  config.parity_percent = percent;
  KIN_TRY(backend_->put(config_name(), encode_config(config, master_key_)));
  return backend_->sync();
}

}  // namespace kin::store

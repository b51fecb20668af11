// How Repository heals packs that are damaged or missing, if it has parity for them.
#include "store/parity_heal.h"
#include "store/repository.h"

#include <algorithm>

namespace kin::store {
namespace {

bool is_of(const ParityFile& file, const ObjectId& pack) {
  const auto& packs = file.header().packs;
  return std::any_of(packs.begin(), packs.end(), [&](const auto& one) { return one.id == pack; });
}

}  // namespace

ParityPlace Repository::parity_place() { return {*backend_, sealer_, parity_key_}; }

Repository::Healed Repository::heal(const ObjectId& pack, const std::stop_token& stop) {
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
    const Healed how = keep_healed(id, std::move(bytes), pack);
    if (id == pack) out = how;
    return {};
  };
  const auto is_wanted = [&](const ObjectId& id) KIN_REQUIRES(heal_mutex_) {
    if (id == pack) return true;
    if (!index_->has_pack(id)) return false;
    MutexLock lock(mutex_);
    return puts_back_ || (!healed_.contains(id) && healed_bytes() < most_healed_bytes_ / 2);
  };
  bool has_parity = false, is_replaced = true;
  for (int tries = kMostListings; is_replaced && tries > 0; --tries) {
    is_replaced = false;
    const auto files = backend_->list(FileKind::parity);
    for (const FileInfo& file : files ? *files : std::vector<FileInfo>()) {
      const auto opened = ParityFile::open(parity_place(), file);
      // By a set that was not listed yet.
      is_replaced |= !opened && opened.error().code() == ErrorCode::not_found;
      if (!opened || !is_of(*opened, pack)) continue;
      has_parity = true;
      // All damaged packs of a set are tried at once, which takes reading all of it.
      if (const auto tried = tried_in_vain_.find(file.name);
          tried != tried_in_vain_.end() && tried->second.contains(pack))
        continue;
      // What fails here is no worse than it was; another file may have the pack as well.
      const auto in_vain = heal_from_parity(parity_place(), *opened, is_wanted, take, stop);
      if (in_vain) tried_in_vain_[file.name].insert(in_vain->begin(), in_vain->end());
      is_replaced |= !in_vain && in_vain.error().code() == ErrorCode::not_found;
      if (out != Healed::no) return out;
      if (stop.stop_requested()) return Healed::no;  // and nothing is known of it
    }
  }
  if (has_parity && is_whole(pack)) return Healed::on_disk;  // the disk had a bad moment
  MutexLock lock(mutex_);
  beyond_healing_.insert(pack);
  return Healed::no;
}

Result<bool> Repository::heal_on_disk(const ObjectId& pack, const std::stop_token& stop) {
  const Healed healed = heal(pack, stop);
  if (healed == Healed::no && stop.stop_requested()) return interrupted();
  if (healed != Healed::in_memory) return healed == Healed::on_disk;
  MutexLock alone(heal_mutex_);
  const std::shared_ptr<const Bytes> bytes = healed_pack(pack);
  if (!bytes && is_whole(pack)) return true;  // by another thread
  const auto done = bytes ? put_back(pack, *bytes) : Error(ErrorCode::busy, "too many are healed at once");
  if (!done)
    return Error(done.error())
        .context(FileName{FileKind::pack, pack.hex()}.text() +
                 " can be healed from parity, but cannot be put back");
  MutexLock lock(mutex_);
  healed_.erase(pack);
  healed_on_disk_.insert(pack);
  return true;
}

Result<void> Repository::put_back(const ObjectId& pack, ByteView bytes) {
  KIN_TRY(require_writable());
  if (!may_put_back_) return Error(ErrorCode::unsupported, "nothing is to be written");
  return backend_->put_durably({FileKind::pack, pack.hex()}, bytes);
}

// Where it was, if it can be put there.
Repository::Healed Repository::keep_healed(const ObjectId& pack, Bytes bytes, const ObjectId& asked_for) {
  const auto done = put_back(pack, bytes);
  puts_back_ = done.has_value();
  if (done) healed_on_disk_.insert(pack);
  {
    MutexLock lost(lost_mutex_);
    lost_packs_.erase(pack);
  }
  {
    MutexLock lock(mutex_);
    salts_.erase(pack);
    if (!done) keep_in_memory(pack, std::move(bytes), asked_for);
  }
  if (done) index_->note_damaged(pack, false);
  if (on_healed_) on_healed_(pack, done);
  return done ? Healed::on_disk : Healed::in_memory;
}

std::size_t Repository::healed_bytes() const {
  std::size_t out = 0;
  for (const auto& [id, pack] : healed_) out += pack.bytes->size();
  return out;
}

void Repository::keep_in_memory(const ObjectId& pack, Bytes bytes, const ObjectId& asked_for) {
  healed_[pack] = {std::make_shared<const Bytes>(std::move(bytes)), next_healed_++};
  while (healed_bytes() > most_healed_bytes_) {
    auto oldest = healed_.end();
    for (auto at = healed_.begin(); at != healed_.end(); ++at)
      if (at->first != pack && at->first != asked_for &&
          (oldest == healed_.end() || at->second.number < oldest->second.number))
        oldest = at;
    if (oldest == healed_.end()) return;
    healed_.erase(oldest);
  }
}

std::set<ObjectId> Repository::healed_packs() {
  MutexLock lock(heal_mutex_);
  return healed_on_disk_;
}

void Repository::heal_lost_packs(const std::stop_token& stop) {
  for (const ObjectId& pack : lost_packs())
    if (!stop.stop_requested()) heal(pack, stop);
}

Result<void> Repository::set_parity_percent(unsigned percent) {
  // Less is made in place of more.
  KIN_TRY(percent < config_.parity_percent ? require_removable() : require_writable());
  Config config = config_;
  config.parity_percent = percent;
  return replace_config(config);
}

}  // namespace kin::store

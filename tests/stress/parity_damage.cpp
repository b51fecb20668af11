#include "tests/stress/parity_damage.h"

#include "store/check.h"
#include "store/damage.h"
#include "store/parity.h"
#include "tests/stress/model.h"
#include "tests/stress/small_backup.h"
#include "tests/support/faulty_backend.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::testing {
namespace {

using store::DamageKind;
using store::Repository;

constexpr unsigned kPercent = 5;
constexpr double kMostDamage = 0.02;
constexpr int kBackups = 120;
constexpr std::size_t kFileBytes = 96 << 10;

Result<std::unique_ptr<Repository>> open_plain(FaultyDisk& disk) {
  store::OpenOptions options;
  options.use_cache = false;
  return Repository::open(disk.open(), options);
}

class Damages {
 public:
  explicit Damages(ParityDamage& out) : out_(out) {}

  Result<void> make() {
    KIN_TRY(Repository::create(*disk_.open(), std::nullopt, {}, Scanner::kDefaultFeatures, kPercent));
    Random random(1);
    KIN_TRY_ASSIGN(const auto repository, open_plain(disk_));
    KIN_TRY(repository->begin_writing());
    for (int i = 0; i < kBackups; ++i) {
      Snapshot snapshot;
      snapshot.time.seconds = i;
      std::map<std::string, ObjectId> previous;
      const std::size_t size = kFileBytes / 2 + random.below(kFileBytes);
      KIN_TRY(back_up(*repository, {{"d/f", random_bytes(random.next(), size)}}, previous, snapshot, random));
    }
    store::ParityOptions options;
    options.percent = kPercent;
    KIN_TRY(store::update_parity(
        *repository, options,
        {[](const std::string&) {}, [](std::string_view, std::uint64_t, std::uint64_t) {}}, {}));
    for (const auto& [name, bytes] : disk_.files())
      if (name.kind == store::FileKind::pack) {
        whole_[name] = bytes;
        out_.pack_bytes += bytes.size();
      }
    out_.packs = whole_.size();
    return {};
  }

  void harm_and_heal(std::uint64_t seed) {
    Random random(seed);
    const double share = kMostDamage * static_cast<double>(1 + random.below(20)) / 20;
    left_ = static_cast<std::uint64_t>(share * static_cast<double>(out_.pack_bytes));
    stretches_ = bytes_ = 0;
    const std::string shape = harm(seed, random);
    ParityDamage::Count& count = out_.counts[shape];
    ++count.all;
    count.stretches += stretches_;
    count.bytes += bytes_;
    const std::vector<std::string> problems = check();
    bool is_whole = problems.empty();
    for (const auto& [name, bytes] : whole_) {
      if (disk_.has(name) && disk_.file(name) == bytes) continue;
      is_whole = false;
      disk_.write(name, bytes);
    }
    count.healed += is_whole;
    if (!is_whole)
      out_.wrong.push_back(fmt::format("seed {}: {}, {} bytes in {} places: {}", seed, shape, bytes_,
                                       stretches_, problems.empty() ? "" : problems.front()));
  }

 private:
  std::string harm(std::uint64_t seed, Random& random) {
    switch (seed % 4) {
      case 0:
        harm_stretches(random, 4 << 10);
        return "stretches of up to 4 KiB";
      case 1:
        harm_stretches(random, 64 << 10);
        return "stretches of up to 64 KiB";
      case 2:
        drop_packs(random);
        return "packs that are gone";
      default:
        harm_as_kin_damage(seed, random);
        return "kin damage, all kinds";
    }
  }

  FileName any_pack(Random& random) {
    std::uint64_t at = random.below(out_.pack_bytes);
    for (const auto& [name, bytes] : whole_) {
      if (at < bytes.size()) return name;
      at -= bytes.size();
    }
    return whole_.begin()->first;
  }

  bool take(std::uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    bytes_ += bytes;
    ++stretches_;
    return true;
  }

  void harm_stretches(Random& random, std::uint64_t most) {
    for (;;) {
      const FileName name = any_pack(random);
      Bytes bytes = disk_.file(name);
      const std::size_t from = random.below(bytes.size());
      const std::size_t size = std::min<std::size_t>(1 + random.below(most), bytes.size() - from);
      if (!take(size)) return;
      const Bytes others = random.below(2) == 0 ? Bytes(size) : random_bytes(random.next(), size);
      std::copy(others.begin(), others.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from));
      disk_.write(name, bytes);
    }
  }

  void drop_packs(Random& random) {
    for (int tries = 0; tries < 20; ++tries) {
      const FileName name = any_pack(random);
      if (disk_.has(name) && take(whole_[name].size())) disk_.erase(name);
    }
  }

  void harm_as_kin_damage(std::uint64_t seed, Random& random) {
    const auto backend = disk_.open();
    store::Damager damager(*backend, seed);
    constexpr DamageKind kKinds[] = {DamageKind::flip, DamageKind::zero,     DamageKind::swap,
                                     DamageKind::cut,  DamageKind::truncate, DamageKind::drop};
    for (int i = 0; i < 6; ++i) {
      const DamageKind kind = kKinds[random.below(6)];
      const auto damaged = damager.harm({store::FileKind::pack}, kind);
      if (!damaged) return;
      const std::uint64_t bytes = damaged->bytes * (kind == DamageKind::swap ? 2 : 1);
      if (!take(bytes)) disk_.write(damaged->file, whole_[damaged->file]);
    }
  }

  std::vector<std::string> check() {
    std::vector<std::string> out;
    const auto repository = open_plain(disk_);
    if (!repository) return {repository.error().message()};
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { out.push_back(problem); };
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    const auto checked = store::check(**repository, {}, {store::ReadSubset::Kind::all}, observer, {});
    if (!checked) out.push_back(checked.error().message());
    return out;
  }

  ParityDamage& out_;
  FaultyDisk disk_;
  std::map<FileName, Bytes> whole_;
  std::uint64_t left_ = 0, stretches_ = 0, bytes_ = 0;
};

}  // namespace

void damage_and_heal(std::uint64_t seeds, ParityDamage& out) {
  Damages damages(out);
  if (const auto made = damages.make(); !made) return out.wrong.push_back(made.error().message());
  for (std::uint64_t seed = 0; seed < seeds; ++seed) damages.harm_and_heal(seed);
}

}  // namespace kin::testing

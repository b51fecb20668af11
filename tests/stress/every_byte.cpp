#include "tests/stress/every_byte.h"

#include "store/check.h"
#include "store/parity.h"
#include "store/prune.h"
#include "tests/stress/model.h"
#include "tests/stress/small_backup.h"
#include "tests/support/encryption.h"
#include "tests/support/faulty_backend.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::testing {
namespace {

using store::Repository;

constexpr const char* kPassword = "correct horse";

Result<std::unique_ptr<Repository>> open_sample(FaultyDisk& disk) {
  store::OpenOptions options;
  options.password = []() -> Result<std::string> { return std::string(kPassword); };
  options.use_cache = false;
  options.block_cache_bytes = 0;
  return Repository::open(disk.open(), options);
}

class Sample {
 public:
  // Two generations, of which the first is forgotten and marked.
  Result<void> make(bool is_encrypted, unsigned percent) {
    FaultyDisk disk;
    const auto password = is_encrypted ? std::optional<std::string>(kPassword) : std::nullopt;
    KIN_TRY(Repository::create(*disk.open(), password, kCheapPassword, Scanner::kDefaultFeatures, percent));
    const FileContents generations[] = {{{"d/a", text_like(1, 300)}, {"d/b", random_bytes(2, 120)}},
                                        {{"d/a", text_like(3, 300)}, {"e/c", random_bytes(4, 90)}}};
    Random random(5);
    std::optional<SnapshotId> first;
    for (const FileContents& files : generations) {
      KIN_TRY_ASSIGN(const auto repository, open_sample(disk));
      KIN_TRY(repository->begin_writing());
      Snapshot snapshot;
      snapshot.host = fmt::format("{}", contents_.size());
      contents_[snapshot.host] = hashes_of(files);
      std::map<std::string, ObjectId> previous;
      KIN_TRY_ASSIGN(const SnapshotId id, back_up(*repository, files, previous, snapshot, random));
      if (!first) first = id;
    }
    KIN_TRY_ASSIGN(const auto repository, open_sample(disk));
    KIN_TRY(repository->forget_snapshot(*first));
    KIN_TRY(store::Prune(*repository, {}, [](std::string_view, std::uint64_t, std::uint64_t) {}).run({}));
    if (percent > 0) {
      store::ParityOptions options;
      options.percent = percent;
      KIN_TRY(store::update_parity(
          *repository, options,
          {[](const std::string&) {}, [](std::string_view, std::uint64_t, std::uint64_t) {}}, {}));
    }
    files_ = disk.files();
    return {};
  }

  void flip_each(std::uint64_t stride, ByteFlips& out) {
    std::uint64_t at = 0;
    for (const auto& [name, bytes] : files_)
      for (std::size_t byte = 0; byte < bytes.size(); ++byte)
        for (const std::uint8_t mask : {static_cast<std::uint8_t>(1U << byte % 8), std::uint8_t{0xff}})
          if (at++ % stride == 0) flip(name, byte, mask, out);
  }

 private:
  void flip(const FileName& name, std::size_t byte, std::uint8_t mask, ByteFlips& out) {
    const std::string where = fmt::format("{}, byte {} ^ {:#x}: ", name.text(), byte, mask);
    FaultyDisk disk;
    for (const auto& [one, bytes] : files_) disk.write(one, bytes);
    Bytes damaged = files_[name];
    damaged[byte] ^= mask;
    const auto put_damage = [&] { disk.write(name, damaged); };
    put_damage();
    std::vector<std::string> told;
    restore(disk, where, told, out);
    put_damage();
    check(disk, told);
    ByteFlips::Count& count = out.counts[std::string(store::name_of(name.kind))];
    if (disk.has(name) && disk.file(name) == files_[name])
      ++count.healed;
    else if (told.empty())
      ++count.unused;
    else if (std::any_of(told.begin(), told.end(), [&](const std::string& text) {
               return text.find(name.text()) != std::string::npos;
             }))
      ++count.told;
    else
      out.wrong.push_back(where + "is not named by: " + told.front());
  }

  void restore(FaultyDisk& disk, const std::string& where, std::vector<std::string>& told, ByteFlips& out) {
    const auto read = [&]() -> Result<void> {
      KIN_TRY_ASSIGN(const auto repository, open_sample(disk));
      KIN_TRY(repository->refresh_index());
      KIN_TRY_ASSIGN(const auto ids, repository->list_snapshots());
      if (ids.size() != 1) out.wrong.push_back(where + "other snapshots");
      for (const SnapshotId& id : ids) {
        KIN_TRY_ASSIGN(const Snapshot snapshot, repository->load_snapshot(id));
        KIN_TRY_ASSIGN(const ContentHashes restored, restore_all(*repository, snapshot.tree));
        if (restored != contents_[snapshot.host]) out.wrong.push_back(where + "restores other bytes");
      }
      return {};
    };
    if (const auto done = read(); !done) told.push_back(done.error().message());
  }

  static void check(FaultyDisk& disk, std::vector<std::string>& told) {
    const auto repository = open_sample(disk);
    if (!repository) return told.push_back(repository.error().message());
    store::CheckObserver observer;
    observer.on_problem = [&](const std::string& problem) { told.push_back(problem); };
    observer.on_note = observer.on_problem;
    observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
    const auto checked = store::check(**repository, {}, {store::ReadSubset::Kind::all}, observer, {});
    if (!checked) told.push_back(checked.error().message());
  }

  std::map<FileName, Bytes> files_;
  std::map<std::string, ContentHashes> contents_;
};

}  // namespace

void flip_every_byte(bool is_encrypted, bool has_parity, std::uint64_t stride, ByteFlips& out) {
  Sample sample;
  if (const auto made = sample.make(is_encrypted, has_parity ? 20 : 0); !made)
    return out.wrong.push_back(made.error().message());
  sample.flip_each(stride, out);
}

}  // namespace kin::testing

// Deltas need their bases: whenever a backup dies, neither may be left without the other.
#include "lib/engine/backup.h"
#include "lib/engine/restore.h"
#include "store/check.h"
#include "tests/support/backup_request.h"
#include "tests/support/edits.h"
#include "tests/support/memory_resume_log.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>

namespace kin::testing {
namespace {

using store::Repository;

constexpr int kGenerations = 3;

struct Quiet : BackupObserver, RestoreObserver {};

// Small files, which are grouped, and large ones, which are not; each generation resembles the one before it.
std::vector<std::map<std::string, Bytes>> write_generations(const TempDir& dir) {
  Random random(1);
  std::map<std::string, Bytes> files;
  for (std::uint64_t i = 0; i < 8; ++i) files["small" + std::to_string(i)] = text_like(i, 5'000);
  for (std::uint64_t i = 0; i < 2; ++i) files["large" + std::to_string(i)] = text_like(100 + i, 300'000);
  std::vector<std::map<std::string, Bytes>> out;
  for (int generation = 0; generation < kGenerations; ++generation) {
    const std::string directory = dir / std::to_string(generation);
    std::filesystem::create_directories(directory);
    for (auto& [name, bytes] : files) {
      std::ofstream(directory + "/" + name, std::ios::binary) << as_text(bytes);
    }
    out.push_back(files);
    for (auto& [name, bytes] : files) bytes = edit(std::move(bytes), random, 2);
  }
  return out;
}

Result<ObjectId> store_tree(Repository& repository, const std::string& path) {
  KIN_TRY(repository.begin_writing());
  MemoryResumeLog log;
  Quiet observer;
  KIN_TRY_ASSIGN(const BackupResult result, backup(repository, log, request_for(path), observer, {}));
  return result.tree;
}

std::vector<std::string> problems_of(Repository& repository) {
  std::vector<std::string> out;
  store::CheckObserver observer;
  observer.on_problem = [&](const std::string& problem) { out.push_back(problem); };
  observer.on_progress = [](const std::string&, std::uint64_t, std::uint64_t) {};
  value_of(store::check(repository, {}, {store::ReadSubset::Kind::all}, observer, {}));
  return out;
}

}  // namespace

TEST_CASE("after a crash at any step of backups of similar files, no delta is without its base",
          "[engine][crash]") {
  const TempDir dir;
  const auto generations = write_generations(dir);
  bool finished = false;
  int crashes = 0;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    INFO("crash after step " << steps);
    FaultyDisk disk;
    create_repository(disk);
    {
      const auto repository = reopen(disk);
      value_of(store_tree(*repository, dir / "0"));
      disk.crash_after(steps);
      finished = store_tree(*repository, dir / "1") && store_tree(*repository, dir / "2");
      crashes += disk.crashed();
    }
    disk.restart();
    CHECK(problems_of(*reopen(disk)).empty());

    const auto repository = reopen(disk);
    value_of(store_tree(*repository, dir / "1"));
    const ObjectId tree = value_of(store_tree(*repository, dir / "2"));
    CHECK(problems_of(*reopen(disk)).empty());
    // By one that has only what is on the disk.
    const std::string target = dir / ("out" + std::to_string(steps));
    RestoreRequest request;
    request.tree = tree;
    request.target = target;
    Quiet observer;
    CHECK(value_of(restore(*reopen(disk), request, observer, {})).failed == 0);
    for (const auto& [name, bytes] : generations.back())
      CHECK(value_of(read_file(target + "/tree/" + name, 1 << 20)) == bytes);
  }
  CHECK(crashes >= 8);
}

}  // namespace kin::testing

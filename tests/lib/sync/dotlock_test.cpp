#include "lib/sync/dotlock.h"

#include "tests/support/expect.h"
#include "tests/support/temp_dir.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kin::sync {
namespace dotlock_test {
namespace {

using testing::TempDir;
using testing::value_of;
namespace fs = std::filesystem;

struct Place {
  DotlockPlace at() const { return {fd.get(), "box.lock", "box"}; }

  TempDir directory;
  std::string file = directory / "box.lock";
  Fd fd{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY)};
};

// What a kin that was killed has left.
std::string text_of_dead() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return fmt::format("{}\nkin {} {}\n", child, boot, fs::read_symlink("/proc/self/ns/pid").string());
}

TEST_CASE("a dotlock keeps others away as long as it is there", "[sync]") {
  const Place place;
  CHECK_FALSE(is_dotlocked(place.at()));
  {
    auto lock = value_of(Dotlock::try_take(place.at(), false));
    REQUIRE(lock);
    CHECK(is_dotlocked(place.at()));
    CHECK_FALSE(value_of(Dotlock::try_take(place.at(), false)));
    const Dotlock moved = *std::move(lock);
    lock.reset();
    CHECK(is_dotlocked(place.at()));
  }
  CHECK(testing::entries_in(place.directory.path()) == 0);
}

TEST_CASE("a dotlock that somebody else has put in the place of ours is not removed", "[sync]") {
  const Place place;
  {
    const auto lock = value_of(Dotlock::try_take(place.at(), false));
    fs::rename(place.file, place.directory / "was");
    std::ofstream(place.file) << "1\n";
  }
  CHECK(fs::exists(place.file));
  CHECK(is_dotlocked(place.at()));
}

TEST_CASE("a dotlock that is old, by the clock of the file system, or of a kin that was killed is none",
          "[sync]") {
  const Place place;
  const bool is_dead = GENERATE(false, true);
  std::ofstream(place.file) << (is_dead ? text_of_dead() : "1\n");
  CHECK(is_dotlocked(place.at()) == !is_dead);
  const auto age = [&](std::chrono::seconds time) {
    fs::last_write_time(place.file, fs::file_time_type::clock::now() - time);
  };
  if (!is_dead) {
    age(std::chrono::seconds(290));
    CHECK_FALSE(value_of(Dotlock::try_take(place.at(), false)));
    age(std::chrono::hours(-1));
    CHECK_FALSE(value_of(Dotlock::try_take(place.at(), false)));
    age(std::chrono::seconds(310));
  }
  CHECK(value_of(Dotlock::try_take(place.at(), false)));
  CHECK(testing::entries_in(place.directory.path()) == 0);
}

TEST_CASE("of many that find the same dead dotlock one gets it", "[sync]") {
  const Place place;
  const std::string dead = text_of_dead();
  std::atomic<int> holders = 0, taken = 0;
  std::atomic<bool> is_shared = false;
  for (int round = 0; round < 100; ++round) {
    std::ofstream(place.file) << dead;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 10; ++turn) {
          const auto lock = Dotlock::try_take(place.at(), false);
          if (!lock || !*lock) continue;
          ++taken;
          if (++holders > 1) is_shared = true;
          std::this_thread::yield();
          --holders;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK_FALSE(is_shared);
    CHECK(testing::entries_in(place.directory.path()) == 0);
  }
  CHECK(taken >= 100);
}

}  // namespace
}  // namespace dotlock_test
}  // namespace kin::sync

// Migrations are run in the order of the table, once, and are finished by whoever comes after an
// interruption.
#include "store/migration.h"

#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

namespace kin::store {
namespace {

using namespace kin::testing;

// A repository's parity stands for its form: 10 is old, 20 is newer, 30 is new. So it is on the disk what a
// migration has done.
unsigned form_of(Repository& repository) {
  const Bytes file = value_of(repository.backend().get(config_name()));
  Config config = value_of(decode_config(file));
  require_ok(verify_config(file, repository.master_key(), config));
  return config.parity_percent;
}

std::vector<std::string> begun;

Result<void> to_twenty(Repository& repository, const MigrationObserver& observer, const std::stop_token&) {
  observer.on_progress("changing", 1, 1);
  return repository.set_parity_percent(20);
}

// In two steps, of which the first may be all that is done: 25.
Result<void> to_thirty(Repository& repository, const MigrationObserver&, const std::stop_token& stop) {
  if (form_of(repository) == 20) KIN_TRY(repository.set_parity_percent(25));
  if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  return repository.set_parity_percent(30);
}

constexpr Migration kTwenty{
    "twenty", "makes it twenty",
    [](Repository& repository, const std::stop_token&) -> Result<bool> { return form_of(repository) == 10; },
    to_twenty};
constexpr Migration kThirty{"thirty", "makes it thirty",
                            [](Repository& repository, const std::stop_token&) -> Result<bool> {
                              return form_of(repository) == 20 || form_of(repository) == 25;
                            },
                            to_thirty};
constexpr Migration kBoth[] = {kTwenty, kThirty};

MigrationObserver observer() {
  begun.clear();
  return {[](std::string_view name) { begun.emplace_back(name); }, [](auto...) {}};
}

FaultyDisk& make(FaultyDisk& disk, Access access = Access::read_write) {
  require_ok(Repository::create(*disk.open(), std::nullopt, {}, 16, 10, access));
  return disk;
}

std::vector<std::string> names_of(const std::vector<const Migration*>& migrations) {
  std::vector<std::string> out;
  for (const Migration* const migration : migrations) out.emplace_back(migration->name);
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a repository of today needs no migration", "[migration]") {
  FaultyDisk disk;
  const auto repository = reopen(make(disk));
  CHECK(value_of(needed_migrations(*repository, all_migrations(), {})).empty());
  const auto before = disk.files();
  CHECK(value_of(migrate(*repository, all_migrations(), observer(), {})).empty());
  CHECK(disk.files() == before);
}

TEST_CASE("migrations are run in the order of the table, each after the one before has made it needed",
          "[migration]") {
  FaultyDisk disk;
  const auto repository = reopen(make(disk));
  CHECK(names_of(value_of(needed_migrations(*repository, kBoth, {}))) == Names{"twenty"});
  CHECK(names_of(value_of(migrate(*repository, kBoth, observer(), {}))) == Names{"twenty", "thirty"});
  CHECK(begun == Names{"twenty", "thirty"});
  CHECK(form_of(*reopen(disk)) == 30);
  // Once.
  const auto before = disk.files();
  CHECK(value_of(migrate(*reopen(disk), kBoth, observer(), {})).empty());
  CHECK(begun.empty());
  CHECK(disk.files() == before);
}

TEST_CASE("a migration that was interrupted is run again, and the one before it is not", "[migration]") {
  FaultyDisk disk;
  make(disk);
  std::stop_source stop;
  MigrationObserver stopping = observer();
  stopping.on_begin = [&](std::string_view name) {
    begun.emplace_back(name);
    if (name == "thirty") stop.request_stop();
  };
  CHECK(code_of(migrate(*reopen(disk), kBoth, stopping, stop.get_token())) == ErrorCode::cancelled);
  CHECK(begun == Names{"twenty", "thirty"});
  CHECK(form_of(*reopen(disk)) == 25);
  CHECK(names_of(value_of(needed_migrations(*reopen(disk), kBoth, {}))) == Names{"thirty"});
  CHECK(names_of(value_of(migrate(*reopen(disk), kBoth, observer(), {}))) == Names{"thirty"});
  CHECK(form_of(*reopen(disk)) == 30);
}

TEST_CASE("wherever a migration crashes, the next run finishes it", "[migration][crash]") {
  const auto unsynced = GENERATE(FaultyDisk::Unsynced::lost, FaultyDisk::Unsynced::kept);
  bool finished = false;
  for (std::uint64_t steps = 1; !finished; ++steps) {
    REQUIRE(steps < 50);
    FaultyDisk disk;
    make(disk);
    disk.leave(unsynced);
    disk.crash_after(steps);
    finished = migrate(*reopen(disk), kBoth, observer(), {}).has_value() && !disk.crashed();
    if (!finished) disk.restart();
    value_of(migrate(*reopen(disk), kBoth, observer(), {}));
    CHECK(form_of(*reopen(disk)) == 30);
  }
}

TEST_CASE("a repository that is not read-write is not migrated, and is as it was", "[migration]") {
  for (const Access access : {Access::append_only, Access::read_only}) {
    FaultyDisk disk;
    make(disk, access);
    const auto before = disk.files();
    CHECK(code_of(migrate(*reopen(disk), kBoth, observer(), {})) == ErrorCode::refused);
    CHECK(begun.empty());
    CHECK(disk.files() == before);
    // To tell what there would be to do is permitted; so is to do nothing.
    CHECK(names_of(value_of(needed_migrations(*reopen(disk), kBoth, {}))) == Names{"twenty"});
    CHECK(value_of(migrate(*reopen(disk), all_migrations(), observer(), {})).empty());
  }
}

TEST_CASE("a migration that does not do what it is for is an error, and those after it are not run",
          "[migration]") {
  FaultyDisk disk;
  make(disk);
  const Migration idle{
      "idle", "does nothing", kTwenty.is_needed,
      [](Repository&, const MigrationObserver&, const std::stop_token&) -> Result<void> { return {}; }};
  const Migration table[] = {idle, kTwenty};
  const Error error = error_of(migrate(*reopen(disk), table, observer(), {}));
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), Catch::Contains("migration idle"));
  CHECK(begun == Names{"idle"});
}

}  // namespace kin::store

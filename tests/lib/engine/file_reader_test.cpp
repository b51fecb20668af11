#include "lib/engine/file_reader.h"

#include "tests/support/test_repository.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

namespace kin {
namespace {

using testing::code_of;

std::stop_source stop;
volatile sig_atomic_t signals = 0;

void on_alarm(int) {
  signals = signals + 1;
  stop.request_stop();
}

}  // namespace

TEST_CASE("a signal that asks to stop ends the reading of an idle pipe", "[file_reader]") {
  testing::FaultyDisk disk;
  testing::create_repository(disk);
  const auto repository = testing::reopen(disk);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd output(ends[0]), input(ends[1]);
  stop = std::stop_source();
  signals = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = on_alarm;
  REQUIRE(::sigaction(SIGALRM, &action, &before) == 0);
  // The second ends a read that goes on after the first.
  const itimerval soon{{3, 0}, {0, 50'000}}, never{};
  REQUIRE(::setitimer(ITIMER_REAL, &soon, nullptr) == 0);
  FileReader reader(*repository, Formats(), stop.get_token());
  const auto read = reader.read_stream(output.get(), "pipe", [](const FilePart&) { return true; });
  REQUIRE(::setitimer(ITIMER_REAL, &never, nullptr) == 0);
  REQUIRE(::sigaction(SIGALRM, &before, nullptr) == 0);
  CHECK(code_of(read) == ErrorCode::cancelled);
  CHECK(signals == 1);
}

}  // namespace kin

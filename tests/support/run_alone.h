// A test that may kill its process runs in one of its own: hidden by its tag [.], and started by a visible
// one through run_alone().
#pragma once

#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace kin::testing {

// Runs one test case of this program, by name; true if it passes. A crash is as good as a failure.
inline bool run_alone(const std::string& test_name) {
  std::string program = "/proc/self/exe", name, warn = "--warn", no_tests = "NoTests";
  for (const char c : test_name)
    name += c == ',' ? std::string("\\,") : std::string(1, c);  // a comma would mean "or"
  char* arguments[] = {program.data(), name.data(), warn.data(), no_tests.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kin::testing

#include "cmd/child_process.h"

#include "lib/base/text.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace kin::cmd {
namespace {

constexpr int kMostMillisecondsToEnd = 5000, kStepMilliseconds = 20;

}  // namespace

Result<int> spawn(const std::vector<std::string>& command, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // We ignore SIGPIPE and SIGXFSZ, and what is ignored stays so in a child: `yes | head` in a script would
  // not end.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error("cannot run", command.front(), failed);
  return pid;
}

int wait_or_kill(int pid) {
  int status = 0;
  for (int waited = 0; waited < kMostMillisecondsToEnd; waited += kStepMilliseconds) {
    if (::waitpid(pid, &status, WNOHANG) != 0) return status;
    ::poll(nullptr, 0, kStepMilliseconds);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return status;
}

ChildProcess::ChildProcess(std::string name, int pid, Fd output)
    : name_(std::move(name)), pid_(pid), output_(std::move(output)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, -1)), output_(std::move(other.output_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  output_ = Fd();  // or it might wait for a reader while we wait for it
  ::kill(pid_, SIGTERM);
  ::kill(pid_, SIGCONT);  // one that is stopped hears of it only when it goes on
  wait_or_kill(pid_);     // it may ignore that, and never write, and so never learn that nobody reads
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for", command.front());
  Fd output(ends[0]);
  const Fd input(ends[1]);
  KIN_TRY_ASSIGN(const int pid, spawn(command, -1, input.get()));
  return ChildProcess(command.front(), pid, std::move(output));
}

Result<void> ChildProcess::wait(const std::stop_token& stop) {
  output_ = Fd();
  // It may have closed its output and go on for hours. Where the kernel has no pidfd we wait all the same.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  for (pollfd ended{process.get(), POLLIN, 0}; process && ::poll(&ended, 1, 100) <= 0;)
    if (stop.stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status));
  return Error(ErrorCode::io,
               fmt::format("the command {} failed ({}); no snapshot was made", printable(name_), how));
}

}  // namespace kin::cmd

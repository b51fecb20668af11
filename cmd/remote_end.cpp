#include "cmd/remote_end.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kin::cmd {
namespace {

constexpr int kMostMillisecondsToEnd = 5000, kStepMilliseconds = 20;

}  // namespace

Result<RemoteEnd> RemoteEnd::start(const std::vector<std::string>& command) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for", command.front());
  Fd their_input(to[0]), our_output(to[1]);
  if (::pipe2(from, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for", command.front());
  Fd our_input(from[0]), their_output(from[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, their_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, their_output.get(), STDOUT_FILENO);
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
  return RemoteEnd(pid, std::move(our_output), std::move(our_input));
}

RemoteEnd::RemoteEnd(RemoteEnd&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)) {}

RemoteEnd::~RemoteEnd() {
  if (pid_ > 0) wait();
}

int RemoteEnd::wait() {
  input_ = Fd();
  output_ = Fd();
  int status = 0;
  for (int waited = 0; waited < kMostMillisecondsToEnd; waited += kStepMilliseconds) {
    if (::waitpid(pid_, &status, WNOHANG) != 0) break;
    ::poll(nullptr, 0, kStepMilliseconds);
    if (waited + kStepMilliseconds < kMostMillisecondsToEnd) continue;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

SyncPlace parse_sync_place(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace kin::cmd

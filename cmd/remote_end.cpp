#include "cmd/remote_end.h"

#include "cmd/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace kin::cmd {

Result<RemoteEnd> RemoteEnd::start(const std::vector<std::string>& command) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for", command.front());
  Fd their_input(to[0]), our_output(to[1]);
  if (::pipe2(from, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for", command.front());
  Fd our_input(from[0]), their_output(from[1]);
  KIN_TRY_ASSIGN(const int pid, spawn(command, their_input.get(), their_output.get()));
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
  const int status = wait_or_kill(std::exchange(pid_, -1));
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

// Commands that kin runs: one whose output is read to its end, and what all of them have in common.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"

#include <stop_token>
#include <string>
#include <vector>

namespace kin::cmd {

// Starts a command, which PATH tells where it is, and returns its process id. Its stdin and stdout are these
// descriptors, and ours where one is -1; stderr is ours.
Result<int> spawn(const std::vector<std::string>& command, int input, int output);
// For its end; one that does not end within some seconds is killed. Its status, as waitpid() says it.
int wait_or_kill(int pid);

class ChildProcess {
 public:
  // Its stdout is read from fd(); stdin and stderr are ours.
  static Result<ChildProcess> start(const std::vector<std::string>& command);
  ChildProcess(ChildProcess&& other) noexcept;
  ~ChildProcess();  // ends it, if wait() has not seen its end: asks it to, and kills it after some seconds

  int fd() const { return output_.get(); }
  // For its end; reads nothing more. An error if it failed; cancelled if asked to stop meanwhile.
  Result<void> wait(const std::stop_token& stop);

 private:
  ChildProcess(std::string name, int pid, Fd output);

  std::string name_;
  int pid_;
  Fd output_;
};

}  // namespace kin::cmd

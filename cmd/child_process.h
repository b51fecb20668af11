// A command whose output is backed up.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"

#include <string>
#include <vector>

namespace kin::cmd {

class ChildProcess {
 public:
  // Its stdout is read from fd(); stdin and stderr are ours.
  static Result<ChildProcess> start(const std::vector<std::string>& command);
  ChildProcess(ChildProcess&& other) noexcept;
  ~ChildProcess();  // ends it, if wait() was not called

  int fd() const { return output_.get(); }
  // An error if it failed.
  Result<void> wait();

 private:
  ChildProcess(std::string name, int pid, Fd output);

  std::string name_;
  int pid_;
  Fd output_;
};

}  // namespace kin::cmd

// A command that is spoken with by its stdin and stdout: ssh and the kin that it starts there, or a kin here.
#pragma once

#include "lib/base/file.h"
#include "lib/base/result.h"

#include <string>
#include <vector>

namespace kin::cmd {

class RemoteEnd {
 public:
  static Result<RemoteEnd> start(const std::vector<std::string>& command);
  RemoteEnd(RemoteEnd&& other) noexcept;
  ~RemoteEnd();  // closes its stdin, and ends it if that does not

  int in() const { return output_.get(); }  // what it says
  int out() const { return input_.get(); }
  // Closes both and waits: its exit code, or 128 and the number of the signal that ended it.
  int wait();

 private:
  RemoteEnd(int pid, Fd input, Fd output) : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

  int pid_;
  Fd input_, output_;
};

// A place as a person names it: [user@]host:path, or a path.
struct SyncPlace {
  std::string host;  // empty: here
  std::string path;
};
SyncPlace parse_sync_place(const std::string& text);

// For a POSIX shell.
std::string shell_quoted(const std::string& word);

}  // namespace kin::cmd

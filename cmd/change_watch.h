// ChangeWatch: what changes below some directories, from the moment that it is made. Directories that come
// later are not watched, but their coming is a change. One thread.
#pragma once

#include "lib/base/file.h"

#include <stop_token>
#include <string>
#include <vector>

namespace kin::cmd {

class ChangeWatch {
 public:
  explicit ChangeWatch(const std::vector<std::string>& roots);

  // Until something has changed, or the time is over. Where nothing can be watched, that is all it waits for.
  void wait(unsigned seconds, const std::stop_token& stop);
  // Readable when something may have changed; -1: nothing can be watched.
  int fd() const { return watch_ ? watch_.get() : -1; }
  // Whether it has. Then it returns a moment later: a mail program that has begun is let to finish.
  bool has_changed();

 private:
  void add(const std::string& root);
  bool read_events();

  const Fd watch_;
};

}  // namespace kin::cmd

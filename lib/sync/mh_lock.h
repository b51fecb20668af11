// The lock of an MH folder's sequences, as nmh takes it. One thread at a time.
#pragma once

#include "lib/base/file.h"
#include "lib/sync/mh_profile.h"

#include <optional>
#include <string>

namespace kin::sync {

class MhLock {
 public:
  // Nothing, if someone else has it at this moment. `file` is .mh_sequences in `folder`, of that path; it is
  // to be closed when this goes. Where there are no locks at all, no one else has one either.
  static Result<std::optional<MhLock>> try_take(MhProfile::Locking locking, int folder, int file,
                                                bool is_shared, const std::string& path);
  MhLock() = default;
  MhLock(MhLock&&) noexcept = default;
  MhLock& operator=(MhLock&& other) noexcept;
  ~MhLock() { release(); }

 private:
  explicit MhLock(Fd folder) : folder_(std::move(folder)) {}
  static Result<std::optional<MhLock>> try_dotlock(int folder, bool is_shared, const std::string& path);
  void release();

  Fd folder_;  // in which there is a file of ours
};

}  // namespace kin::sync

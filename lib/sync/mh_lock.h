// The lock of an MH folder's sequences, as nmh takes it. One thread at a time.
#pragma once

#include "lib/sync/dotlock.h"
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

 private:
  explicit MhLock(Dotlock dotlock) : dotlock_(std::move(dotlock)) {}

  std::optional<Dotlock> dotlock_;
};

}  // namespace kin::sync

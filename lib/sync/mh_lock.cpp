#include "lib/sync/mh_lock.h"

#include "lib/sync/mh_sequences.h"

#include <fcntl.h>
#include <sys/file.h>

namespace kin::sync {
namespace {

bool is_busy(int why) { return why == EAGAIN || why == EWOULDBLOCK || why == EACCES || why == EINTR; }
bool has_no_locks(int why) { return why == EINVAL || why == ENOSYS || why == EOPNOTSUPP || why == ENOLCK; }

}  // namespace

Result<std::optional<MhLock>> MhLock::try_take(MhProfile::Locking locking, int folder, int file,
                                               bool is_shared, const std::string& path) {
  if (locking == MhProfile::Locking::dot) {
    // Whoever only reads a store that he may not write to has to do without.
    KIN_TRY_ASSIGN(auto dotlock,
                   Dotlock::try_take({folder, std::string(kMhSequencesName) + ".lock", path}, is_shared));
    return dotlock ? std::optional(MhLock(*std::move(dotlock))) : std::nullopt;
  }
  int failed = 0;
  if (locking == MhProfile::Locking::flock) {
    failed = ::flock(file, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
  } else {
    struct flock lock {};
    lock.l_type = is_shared ? F_RDLCK : F_WRLCK;
    lock.l_whence = SEEK_SET;
    failed = ::fcntl(file, F_OFD_SETLK, &lock);
  }
  if (failed == 0 || has_no_locks(errno)) return std::optional(MhLock());
  if (is_busy(errno)) return std::optional<MhLock>();
  return errno_error("cannot lock", path);
}

}  // namespace kin::sync

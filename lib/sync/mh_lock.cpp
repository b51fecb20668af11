#include "lib/sync/mh_lock.h"

#include "lib/base/text.h"
#include "lib/sync/mh_sequences.h"
#include "lib/sync/store_files.h"

#include <sys/file.h>
#include <unistd.h>

namespace kin::sync {
namespace {

const std::string kDotlockName = std::string(kMhSequencesName) + ".lock";
constexpr std::int64_t kStaleSeconds = 300;  // as for liblockfile, by which nmh does it

bool is_busy(int why) { return why == EAGAIN || why == EWOULDBLOCK || why == EACCES || why == EINTR; }
bool has_no_locks(int why) { return why == EINVAL || why == ENOSYS || why == EOPNOTSUPP || why == ENOLCK; }

}  // namespace

MhLock& MhLock::operator=(MhLock&& other) noexcept {
  release();
  folder_ = std::move(other.folder_);
  return *this;
}

void MhLock::release() {
  if (folder_) ::unlinkat(folder_.get(), kDotlockName.c_str(), 0);
  folder_ = Fd();
}

Result<std::optional<MhLock>> MhLock::try_take(MhProfile::Locking locking, int folder, int file,
                                               bool is_shared, const std::string& path) {
  if (locking == MhProfile::Locking::dot) return try_dotlock(folder, is_shared, path);
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

Result<std::optional<MhLock>> MhLock::try_dotlock(int folder, bool is_shared, const std::string& path) {
  const Fd made(::openat(folder, kDotlockName.c_str(), kMakeFile, 0644));
  if (made) {
    Fd own(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
    if (!own) {
      const int why = errno;
      ::unlinkat(folder, kDotlockName.c_str(), 0);
      return errno_error("cannot lock", path, why);
    }
    MhLock lock(std::move(own));
    KIN_TRY(write_all(made.get(), as_bytes(std::to_string(::getpid()) + "\n"), path));
    return std::optional(std::move(lock));
  }
  // Whoever only reads a store that he may not write to has to do without.
  if (is_shared && (errno == EACCES || errno == EPERM || errno == EROFS)) return std::optional(MhLock());
  if (errno != EEXIST) return errno_error("cannot lock", path);
  struct stat info {};
  if (::fstatat(folder, kDotlockName.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      now().seconds - info.st_mtim.tv_sec > kStaleSeconds)
    ::unlinkat(folder, kDotlockName.c_str(), 0);
  return std::optional<MhLock>();
}

}  // namespace kin::sync

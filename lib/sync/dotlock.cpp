#include "lib/sync/dotlock.h"

#include "lib/base/random.h"
#include "lib/base/text.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <charconv>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

namespace kin::sync {
namespace {

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

std::optional<struct stat> look_at(int directory, const std::string& name) {
  struct stat info {};
  return ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? std::optional(info)
                                                                             : std::nullopt;
}

// Of nobody else; hidden, so that no program takes it for a mailbox.
std::string name_of_ours(const DotlockPlace& place) {
  return fmt::format("{}{}.kin-{:016x}", place.name.starts_with('.') ? "" : ".", place.name, random_number());
}

// Where a process has its number: on which machine, since when it runs, and in which container.
std::string process_space() {
  const auto boot = read_file("/proc/sys/kernel/random/boot_id", 100);
  char container[100];
  const ssize_t size = ::readlink("/proc/self/ns/pid", container, sizeof container);
  if (!boot || boot->empty() || size <= 0) return "";
  return fmt::format("{} {}", as_text(ByteView(*boot).first(boot->size() - 1)),
                     std::string_view(container, static_cast<std::size_t>(size)));
}

std::string text_of_ours() { return fmt::format("{}\nkin {}\n", ::getpid(), process_space()); }

// One of a kin on this machine that was killed.
bool is_abandoned(const DotlockPlace& place) {
  const Fd fd(::openat(place.directory, place.name.c_str(), kOpenFile));
  Bytes bytes(300);
  const auto size = fd ? read_up_to_at(fd.get(), bytes, 0, place.path) : Result<std::size_t>(0);
  if (!size) return false;
  const std::string_view text = as_text(ByteView(bytes).first(*size));
  pid_t process = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process);
  return error == std::errc() && process > 0 && !process_space().empty() &&
         text.substr(static_cast<std::size_t>(end - text.data())) ==
             fmt::format("\nkin {}\n", process_space()) &&
         ::kill(process, 0) != 0 && errno == ESRCH;
}

// By the clock of whoever keeps the files; ours, where nothing can be made.
std::int64_t time_there(const DotlockPlace& place) {
  const std::string name = name_of_ours(place);
  const Fd fd(::openat(place.directory, name.c_str(), kMakeFile, 0600));
  struct stat info {};
  const bool is_known = fd && ::fstat(fd.get(), &info) == 0;
  if (fd) ::unlinkat(place.directory, name.c_str(), 0);
  return is_known ? info.st_mtim.tv_sec : now().seconds;
}

bool is_stale(const DotlockPlace& place, const struct stat& info) {
  if (is_abandoned(place)) return true;
  const std::int64_t changed = info.st_mtim.tv_sec, age = now().seconds - changed;
  // Each look would make a file else, many times a second.
  const bool is_clear = age >= 0 && age <= place.stale.count();
  return !is_clear && time_there(place) - changed > place.stale.count();
}

// Of two kin that do so at a time, one does: by a lock on the lock. Other programs do not know of that one,
// so what was renamed is looked at again.
void break_lock(const DotlockPlace& place, const struct stat& info) {
  const Fd broken(::openat(place.directory, place.name.c_str(), kOpenFile));
  if (broken && ::flock(broken.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  const auto there = look_at(place.directory, place.name);
  if (!there || !is_same(*there, info)) return;
  const std::string name = name_of_ours(place);
  if (::renameat(place.directory, place.name.c_str(), place.directory, name.c_str()) != 0) return;
  const auto renamed = look_at(place.directory, name);
  const bool is_another = renamed && !is_same(*renamed, info);  // somebody was quicker, and this is his lock
  if (is_another && rename_to_free_name(place.directory, name, place.directory, place.name) == 0) return;
  ::unlinkat(place.directory, name.c_str(), 0);
}

}  // namespace

Result<std::optional<Dotlock>> Dotlock::try_take(const DotlockPlace& place, bool may_do_without) {
  constexpr int kMostBroken = 3;
  for (int broken = 0;; ++broken) {
    const Fd made(::openat(place.directory, place.name.c_str(), kMakeFile, 0644));
    if (made) {
      struct stat info {};
      Fd own(::fcntl(place.directory, F_DUPFD_CLOEXEC, 0));
      if (!own || ::fstat(made.get(), &info) != 0) {
        const int why = errno;
        ::unlinkat(place.directory, place.name.c_str(), 0);
        return errno_error("cannot lock", place.path, why);
      }
      Dotlock lock(std::move(own), place.name, info);
      KIN_TRY(write_all(made.get(), as_bytes(text_of_ours()), place.path));
      return std::optional<Dotlock>(std::move(lock));
    }
    if (may_do_without && (errno == EACCES || errno == EPERM || errno == EROFS))
      return std::optional<Dotlock>(Dotlock());
    if (errno != EEXIST) return errno_error("cannot lock", place.path);
    const auto other = look_at(place.directory, place.name);
    if (broken == kMostBroken || (other && !is_stale(place, *other))) return std::optional<Dotlock>();
    if (other) break_lock(place, *other);
  }
}

Dotlock& Dotlock::operator=(Dotlock&& other) noexcept {
  release();
  directory_ = std::move(other.directory_);
  name_ = std::move(other.name_);
  info_ = other.info_;
  return *this;
}

// If somebody took it for stale, it is not ours to remove.
void Dotlock::release() {
  const auto there = directory_ ? look_at(directory_.get(), name_) : std::nullopt;
  if (there && is_same(*there, info_)) ::unlinkat(directory_.get(), name_.c_str(), 0);
  directory_ = Fd();
}

bool is_dotlocked(const DotlockPlace& place) {
  const auto there = look_at(place.directory, place.name);
  return there && !is_stale(place, *there);
}

}  // namespace kin::sync

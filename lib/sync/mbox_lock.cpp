#include "lib/sync/mbox_lock.h"

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/base/wire.h"
#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <unordered_set>

namespace kin::sync::mbox {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookAgainMilliseconds = 20;
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::uint64_t kCopyMagic = 0x31786f626d6e696b;  // "kinmbox1"
constexpr std::size_t kCopyHashBytes = 16;
constexpr std::size_t kTrailerBytes = 3 * 8 + kCopyHashBytes;

std::string copy_name(const Place& place) { return "." + place.name + ".kin-new"; }

DotlockPlace dotlock_of(const Place& place, const Options& options) {
  return {place.directory, place.name + ".lock", place.path, options.dotlock_stale};
}

Error locked_by_other(const Place& place) {
  return Error(ErrorCode::busy, printable(place.path) + " is locked by another program");
}

bool wait_a_little(Clock::time_point until) {
  if (Clock::now() >= until) return false;
  ::poll(nullptr, 0, kLookAgainMilliseconds);
  return true;
}

// Of the open file, not of the process: another descriptor of ours that is closed would drop the lock. They
// exclude those of other programs all the same.
Result<void> lock_file(int fd, short type, const Place& place, Clock::time_point until) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  for (int command = F_OFD_SETLK;;) {
    if (::fcntl(fd, command, &lock) == 0) return {};
    if (errno == EINVAL && command == F_OFD_SETLK) {
      command = F_SETLK;
    } else if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS) {
      return {};  // this file system has none, for nobody
    } else if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
      return errno_error("cannot lock", place.path);
    } else if (!wait_a_little(until)) {
      return locked_by_other(place);
    }
  }
}

bool is_still_there(const Place& place, const std::string& name, const struct stat& info) {
  struct stat found {};
  return ::fstatat(place.directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         found.st_ino == info.st_ino && found.st_dev == info.st_dev;
}

struct Copy {
  Fd fd;
  std::uint64_t size = 0;  // of the content
  std::vector<std::uint64_t> known;
};

// corrupt if it is not whole: then it was cut while it was written, and the file is as it was.
Result<Copy> open_copy(const Place& place) {
  const Place copy_place{place.directory, copy_name(place), place.path + ": its copy"};
  struct stat info {};
  Copy copy;
  KIN_TRY_ASSIGN(copy.fd, open_regular(copy_place, O_RDONLY, info));
  // In a spool directory that all may write to, anybody could leave one for us.
  if (info.st_uid != ::geteuid())
    return Error(ErrorCode::busy, printable(place.path) + " has a copy beside it that is another user's");
  const Error is_cut(ErrorCode::corrupt, "the copy is not whole");
  const auto total = static_cast<std::uint64_t>(info.st_size);
  if (total < kTrailerBytes) return is_cut;
  Bytes trailer(kTrailerBytes);
  KIN_TRY(read_up_to_at(copy.fd.get(), trailer, total - kTrailerBytes, copy_place.path));
  WireReader in(trailer);
  const std::uint64_t magic = in.u64(), known = (copy.size = in.u64(), in.u64());
  if (magic != kCopyMagic || copy.size > total || known > total / 8 ||
      copy.size + known * 8 + kTrailerBytes != total)
    return is_cut;
  Hasher hasher;
  Bytes piece(kPieceBytes);
  FileView source(copy.fd.get(), copy_place.path, total - kCopyHashBytes);
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t n, source.read(piece));
    hasher.add(ByteView(piece).first(n));
    if (n < piece.size()) break;
  }
  const Digest digest = hasher.finish();
  if (!equal(ByteView(digest).first(kCopyHashBytes), in.raw(kCopyHashBytes))) return is_cut;
  Bytes hashes(static_cast<std::size_t>(known * 8));
  KIN_TRY(read_up_to_at(copy.fd.get(), hashes, copy.size, copy_place.path));
  WireReader hash_reader(hashes);
  while (hash_reader.left() > 0) copy.known.push_back(hash_reader.u64());
  return copy;
}

// Over the file, from its beginning on: so it is at any time new up to a place, and old from there.
Result<void> copy_over(const Place& place, int fd, const Copy& copy, ByteView tail) {
  Bytes piece(kPieceBytes);
  FileView source(copy.fd.get(), place.path, copy.size);
  std::uint64_t at = 0;
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t n, source.read(piece));
    KIN_TRY(write_all_at(fd, ByteView(piece).first(n), at, place.path));
    at += n;
    if (n < piece.size()) break;
  }
  KIN_TRY(write_all_at(fd, tail, at, place.path));
  if (::fsync(fd) != 0 || ::ftruncate(fd, static_cast<off_t>(at + tail.size())) != 0 || ::fsync(fd) != 0)
    return errno_error("cannot write", place.path);
  return {};
}

// Synced, since a copy that is there again after a crash would be written over what came since.
Result<void> drop_copy(const Place& place) {
  if (::unlinkat(place.directory, copy_name(place).c_str(), 0) != 0 || ::fsync(place.directory) != 0)
    return errno_error("cannot remove the copy of", place.path);
  return {};
}

Result<Bytes> read_sized(int fd, std::uint64_t size, const std::string& path) {
  Bytes out(static_cast<std::size_t>(size));
  KIN_TRY_ASSIGN(const std::size_t n, read_up_to_at(fd, out, 0, path));
  out.resize(n);
  return out;
}

// What came to the file after the copy was made: messages that are neither in the copy nor were in the file
// before. `file` is the copy up to some place, and from there on what was left of the old file, or nothing;
// and then what came.
Bytes find_new_mail(ByteView file, ByteView copy, std::span<const std::uint64_t> known) {
  std::unordered_set<std::uint64_t> old(known.begin(), known.end());
  if (begins_as_mbox(as_text(copy)))
    for (const Range& range : find_messages(copy))
      old.insert(message_hash(copy.subspan(range.header, range.end - range.header)));
  const auto differs = std::mismatch(file.begin(), file.end(), copy.begin(), copy.end()).first;
  auto at = static_cast<std::size_t>(differs - file.begin());
  const std::string_view text = as_text(file);
  // The message in which the place is has parts of two; the next one is the first to look at. Where the copy
  // was cut in a line there may be no empty one before it.
  while (at < text.size() && !begins_as_mbox(text.substr(at, kMostEnvelope))) {
    const std::size_t next = text.find("\nFrom ", at);
    at = next == std::string_view::npos ? text.size() : next + 1;
  }
  const ByteView rest = file.subspan(at);
  const std::vector<Range> ranges = find_messages(rest);
  Bytes out;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (old.contains(message_hash(rest.subspan(range.header, range.end - range.header)))) continue;
    const std::uint64_t end = i + 1 < ranges.size() ? ranges[i + 1].begin : rest.size();
    append(out, rest.subspan(range.begin, end - range.begin));
  }
  return out;
}

}  // namespace

std::uint64_t message_hash(ByteView message) {
  const Digest digest = hash(content_of(message));
  return WireReader(digest).u64();
}

Error cannot_hold(const std::string& path, std::string_view why) {
  return Error(ErrorCode::unsupported, fmt::format("{} {}", printable(path), why));
}

Result<Fd> open_regular(const Place& place, int flags, struct stat& info) {
  flags |= O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd fd(::openat(place.directory, place.name.c_str(), flags | O_NOATIME));
  if (!fd && errno == EPERM) fd = Fd(::openat(place.directory, place.name.c_str(), flags));
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno_error("cannot open", place.path);
  if (!S_ISREG(info.st_mode))
    return Error(ErrorCode::unsupported, printable(place.path) + " is no regular file");
  return fd;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && fingerprint_of(a) == fingerprint_of(b) &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

bool has_copy(const Place& place) {
  struct stat info {};
  return ::fstatat(place.directory, copy_name(place).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Fd> write_copy(const Place& place, ByteSource& content, std::span<const std::uint64_t> known) {
  const std::string name = copy_name(place);
  Fd fd(::openat(place.directory, name.c_str(), kMakeFile, 0600));
  if (!fd) return errno_error("cannot make a copy of", place.path);
  const auto write = [&]() -> Result<void> {
    Hasher hasher;
    Bytes piece(kPieceBytes);
    std::uint64_t size = 0;
    for (;;) {
      KIN_TRY_ASSIGN(const std::size_t n, content.read(piece));
      hasher.add(ByteView(piece).first(n));
      KIN_TRY(write_all(fd.get(), ByteView(piece).first(n), place.path));
      size += n;
      if (n < piece.size()) break;
    }
    WireWriter trailer;
    for (const std::uint64_t hash : known) trailer.u64(hash);
    trailer.u64(kCopyMagic);
    trailer.u64(size);
    trailer.u64(known.size());
    hasher.add(trailer.bytes());
    trailer.raw(ByteView(hasher.finish()).first(kCopyHashBytes));
    KIN_TRY(write_all(fd.get(), trailer.bytes(), place.path));
    if (::fsync(fd.get()) != 0 || ::fsync(place.directory) != 0)
      return errno_error("cannot write", place.path);
    return {};
  };
  if (auto written = write(); !written) {
    ::unlinkat(place.directory, name.c_str(), 0);
    return std::move(written).error();
  }
  return fd;
}

Result<LockedBox> LockedBox::open(const Place& place, const Options& options) {
  const Clock::time_point until = Clock::now() + options.lock_wait;
  for (;;) {
    struct stat info {};
    KIN_TRY_ASSIGN(Fd fd, open_regular(place, O_RDWR, info));
    KIN_TRY(lock_file(fd.get(), F_WRLCK, place, until));
    // A program that replaces the file may have done so while we waited.
    if (!is_still_there(place, place.name, info)) {
      if (!wait_a_little(until)) return locked_by_other(place);
      continue;
    }
    LockedBox box(place, std::move(fd), info);
    KIN_TRY(box.take_dotlock(options, until));
    if (::fstat(box.fd(), &box.info_) != 0) return errno_error("cannot read", place.path);
    if (has_copy(place)) KIN_TRY(box.finish_copy(options));
    return box;
  }
}

Result<void> LockedBox::take_dotlock(const Options& options, Clock::time_point until) {
  do {
    KIN_TRY_ASSIGN(dotlock_, Dotlock::try_take(dotlock_of(place_, options), true));
    if (dotlock_) return {};
  } while (wait_a_little(until));
  return locked_by_other(place_);
}

Result<void> LockedBox::finish_copy(const Options& options) {
  auto copy = open_copy(place_);
  if (!copy && copy.error().code() == ErrorCode::corrupt) return drop_copy(place_);
  if (!copy) return std::move(copy).error();
  const auto size = static_cast<std::uint64_t>(info_.st_size);
  Bytes tail;
  if (size <= options.most_bytes && copy->size <= options.most_bytes) {
    KIN_TRY_ASSIGN(const Bytes file, read_sized(fd(), size, place_.path));
    KIN_TRY_ASSIGN(const Bytes content, read_sized(copy->fd.get(), copy->size, place_.path));
    if (equal(file, content)) return drop_copy(place_);
    tail = find_new_mail(file, content, copy->known);
  }
  KIN_TRY(copy_over(place_, fd(), *copy, tail));
  if (::fstat(fd(), &info_) != 0) return errno_error("cannot read", place_.path);
  return drop_copy(place_);
}

Result<Bytes> LockedBox::read_all() const {
  return read_sized(fd(), static_cast<std::uint64_t>(info_.st_size), place_.path);
}

Result<void> LockedBox::append(ByteView bytes) {
  auto written = write_all_at(fd(), bytes, static_cast<std::uint64_t>(info_.st_size), place_.path);
  if (written && ::fsync(fd()) != 0) written = errno_error("cannot write", place_.path);
  if (written) return {};
  if (::ftruncate(fd(), info_.st_size) != 0 || ::fsync(fd()) != 0)
    return std::move(written).error().context("a part of a message is at its end");
  return written;
}

Result<void> LockedBox::replace(ByteSource& content, std::span<const std::uint64_t> known) {
  Copy copy;
  KIN_TRY_ASSIGN(copy.fd, write_copy(place_, content, known));
  struct stat info {};
  if (::fstat(copy.fd.get(), &info) != 0) return errno_error("cannot read", place_.path);
  copy.size = static_cast<std::uint64_t>(info.st_size) - kTrailerBytes - known.size() * 8;
  // Room for what is longer than before, so that a full disk shows now. Not every file system can tell.
  if (copy.size > static_cast<std::uint64_t>(info_.st_size) &&
      ::fallocate(fd(), FALLOC_FL_KEEP_SIZE, info_.st_size, static_cast<off_t>(copy.size) - info_.st_size) !=
          0 &&
      errno != EOPNOTSUPP && errno != ENOSYS) {
    Error error = errno_error("cannot write", place_.path);
    KIN_TRY(drop_copy(place_));
    return error;
  }
  KIN_TRY(copy_over(place_, fd(), copy, {}));
  return drop_copy(place_);
}

void LockedBox::keep_times(bool has_new_mail) {
  timespec times[2] = {info_.st_atim, info_.st_mtim};
  if (++times[1].tv_nsec == 1'000'000'000) times[1] = {times[1].tv_sec + 1, 0};
  if (has_new_mail) times[1].tv_nsec = UTIME_OMIT;
  ::futimens(fd(), times);  // only the owner may; then it looks like new mail, which is no loss
}

Result<void> LockedBox::unlink() {
  if (::unlinkat(place_.directory, place_.name.c_str(), 0) != 0 || ::fsync(place_.directory) != 0)
    return errno_error("cannot remove", place_.path);
  return {};
}

Result<Bytes> read_quiet(const Place& place, const Options& options, struct stat& info) {
  const Clock::time_point until = Clock::now() + options.lock_wait;
  for (;; wait_a_little(until)) {
    if (has_copy(place)) {
      KIN_TRY(LockedBox::open(place, options));  // which finishes it
    }
    KIN_TRY_ASSIGN(const Fd fd, open_regular(place, O_RDONLY, info));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size > options.most_bytes)
      return Error(ErrorCode::unsupported, printable(place.path) + " is too large to be read as an mbox");
    KIN_TRY(lock_file(fd.get(), F_RDLCK, place, until));
    const DotlockPlace dotlock = dotlock_of(place, options);
    if (!is_dotlocked(dotlock)) {
      if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", place.path);
      KIN_TRY_ASSIGN(Bytes file, read_sized(fd.get(), size, place.path));
      struct stat after {};
      if (::fstat(fd.get(), &after) != 0) return errno_error("cannot read", place.path);
      // Those that have only dotlocks may have begun meanwhile.
      if (same_file(info, after) && static_cast<std::uint64_t>(after.st_size) == file.size() &&
          !has_copy(place) && !is_dotlocked(dotlock))
        return file;
    }
    if (Clock::now() >= until) return locked_by_other(place);
  }
}

}  // namespace kin::sync::mbox

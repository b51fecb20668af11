// LockedBox: an mbox file that no other program may change for now, and the ways to change it that lose
// nothing.
//
// Locks: fcntl first, then the file FILE.lock, as Debian has it for all programs. Where the directory cannot
// be written to there is only the first. Other programs keep the file open, so it must remain the same inode:
// it is never replaced by rename. What is added goes to the end. Any other change is first written to
// ".FILE.kin-new", whole and synced, and then over the file; if that is cut, whoever locks the file next
// finds the copy and finishes it. The hashes of what was in the file before are in the copy too: so a message
// that came in between, from a program that knows nothing of all this, is told apart from what was to go, and
// kept.
#pragma once

#include "lib/base/file.h"
#include "lib/container/byte_source.h"
#include "lib/sync/dotlock.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace kin::sync::mbox {

struct Options {
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  // of an mbox: a larger one is kept as a whole
  std::chrono::milliseconds lock_wait{5000};          // for all locks of a file together
  std::chrono::seconds dotlock_stale{300};            // since it was last changed
};

// A file, by its directory, which is borrowed. `path` is for messages.
struct Place {
  int directory = -1;
  std::string name;
  std::string path;
};

// unsupported
Error cannot_hold(const std::string& path, std::string_view why);

// Regular files only, and no symlink; reading leaves the access time as it is, where that is allowed.
Result<Fd> open_regular(const Place& place, int flags, struct stat& info);

// Whether it is the same file with nothing written to it.
bool same_file(const struct stat& a, const struct stat& b);

class LockedBox {
 public:
  // busy if others hold it until the time is over. A change that was cut is finished first.
  static Result<LockedBox> open(const Place& place, const Options& options);
  LockedBox(LockedBox&& other) noexcept = default;
  LockedBox& operator=(LockedBox&&) = delete;

  int fd() const { return fd_.get(); }
  // As it was when it was locked.
  const struct stat& info() const { return info_; }

  Result<Bytes> read_all() const;
  // On the disk when this returns; at a failure the file is as it was.
  Result<void> append(ByteView bytes);
  // `known`: see write_copy(). At a failure the file is as it was, or the next one to lock it finishes this.
  Result<void> replace(ByteSource& content, std::span<const std::uint64_t> known);
  // New mail is what was written later than it was read: so the access time is set back, and unless messages
  // came, the other one too, but for the last digit.
  void keep_times(bool has_new_mail);
  // The file is gone from its directory with the lock.
  Result<void> unlink();

 private:
  LockedBox(const Place& place, Fd fd, const struct stat& info)
      : place_(place), fd_(std::move(fd)), info_(info) {}

  Result<void> take_dotlock(const Options& options, std::chrono::steady_clock::time_point until);
  Result<void> finish_copy(const Options& options);

  Place place_;
  Fd fd_;
  struct stat info_;
  std::optional<Dotlock> dotlock_;
};

// The whole file while nobody changes it, and what it was then; busy if somebody does until the time is over.
// Takes no dotlock. unsupported if the file is larger than options.most_bytes.
Result<Bytes> read_quiet(const Place& place, const Options& options, struct stat& info);

// Whether a change was cut, or is being made.
bool has_copy(const Place& place);
// The copy: `content`, the `known` hashes (message_hash() of each message that the file has until now), and a
// trailer. Synced, and returned open. Tests leave such copies behind.
Result<Fd> write_copy(const Place& place, ByteSource& content, std::span<const std::uint64_t> known);

std::uint64_t message_hash(ByteView message);  // of its content_of()

}  // namespace kin::sync::mbox

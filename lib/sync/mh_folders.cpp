#include "lib/sync/mh_folders.h"

#include "lib/base/pause.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync::mh {
namespace {

constexpr int kDeepestFolder = 16;

bool is_readable(int directory, const std::string& name, const struct stat& info) {
  const uid_t user = ::geteuid();
  if (user == 0 || (info.st_uid == user && (info.st_mode & S_IRUSR) != 0)) return true;
  return ::faccessat(directory, name.c_str(), R_OK, AT_EACCESS) == 0;
}

Timestamp time_of(const Fingerprint& fingerprint) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = fingerprint.modified_ns / kSecond, rest = fingerprint.modified_ns % kSecond;
  if (rest < 0) --seconds, rest += kSecond;
  return {seconds, static_cast<std::uint32_t>(rest)};
}

bool has_all_of(const std::vector<Seen>& seen, const std::vector<Seen>& wanted) {
  std::size_t at = 0;
  for (const Seen& one : wanted) {
    while (at < seen.size() && seen[at] < one) ++at;
    if (at == seen.size() || !seen[at].is_same_file(one)) return false;
  }
  return true;
}

}  // namespace

bool is_directory(int parent, std::string_view name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat info {};
  return ::fstatat(parent, std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(info.st_mode);
}

Result<void> check_folder(const std::string& folder) {
  const std::vector<std::string> names = components_of(folder);
  const bool is_good = std::ssize(names) <= kDeepestFolder &&
                       std::all_of(names.begin(), names.end(),
                                   [](const std::string& name) { return !name.empty() && name[0] != '.'; });
  if (is_good) return {};
  return Error(ErrorCode::unsupported, fmt::format("an MH folder cannot be named {}", printable(folder)));
}

std::pair<std::uint64_t, std::uint32_t> Seen::sort_key() const {
  std::uint64_t padded = number;
  while (padded < 1'000'000'000) padded *= 10;
  return {padded, number};
}

Result<std::vector<Seen>> look_at_messages(int directory, const std::string& path) {
  std::vector<Seen> out;
  KIN_TRY(for_each_name(directory, path, [&](std::string_view name, unsigned char type) {
    Seen seen;
    seen.number = mh_number(name);
    if (seen.number == 0 || type == DT_DIR) return true;
    struct stat info {};
    if (::fstatat(directory, std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      seen.state = errno == ENOENT ? Seen::State::gone : Seen::State::unreadable;
    else if (S_ISDIR(info.st_mode))
      return true;
    else if (!S_ISREG(info.st_mode))
      seen.state = Seen::State::not_regular;
    else if (!is_readable(directory, std::string(name), info))
      seen.state = Seen::State::unreadable;
    seen.fingerprint = fingerprint_of(info);
    out.push_back(seen);
    return true;
  }));
  std::sort(out.begin(), out.end());
  // Some file systems say a name twice if the directory changes.
  out.erase(
      std::unique(out.begin(), out.end(), [](const Seen& a, const Seen& b) { return a.number == b.number; }),
      out.end());
  return out;
}

// A listing during a rename may show the file under neither of its names. So what is seen counts if the
// directory did not change, or if all that a look before saw is still where it was.
Result<std::vector<Seen>> look_until_stable(int directory, const std::string& path) {
  constexpr int kMostLooks = 10;
  constexpr auto kClockStep = std::chrono::milliseconds(20);  // times of files are not finer than about 4 ms
  const auto changed_at = [&] {
    struct stat info {};
    return ::fstat(directory, &info) == 0 ? fingerprint_of(info).modified_ns : 0;
  };
  const auto is_recent = [&](std::int64_t changed_ns) {
    const Timestamp time = now();
    const std::int64_t now_ns = time.seconds * 1'000'000'000 + time.nanoseconds;
    return changed_ns <= now_ns && changed_ns > now_ns - std::chrono::nanoseconds(kClockStep).count();
  };
  std::optional<std::vector<Seen>> last;
  for (int look = 0; look < kMostLooks; ++look) {
    const std::int64_t before = changed_at();
    // Another change within the same step of the clock would not be seen.
    if (is_recent(before)) {
      pause_for(kClockStep);
      if (changed_at() != before) continue;
    }
    KIN_TRY_ASSIGN(std::vector<Seen> seen, look_at_messages(directory, path));
    if (changed_at() == before) return seen;
    if (last && has_all_of(seen, *last)) return seen;
    last = std::move(seen);
  }
  return Error(ErrorCode::busy, fmt::format("{} does not stop changing", printable(path)));
}

void describe(std::uint32_t number, const Fingerprint& fingerprint, const MhSequences& sequences,
              Entry& entry) {
  MhMarks marks = sequences.marks_of(number);
  entry.local = std::to_string(number);
  entry.fingerprint = fingerprint;
  entry.item.size = fingerprint.size;
  entry.item.time = time_of(fingerprint);
  entry.item.flags = marks.flags;
  entry.item.words = std::move(marks.words);
}

Result<Fd> Directories::open(const std::string& folder, bool make) const {
  KIN_TRY(check_folder(folder));
  if (make) KIN_TRY(make_root(root_));
  Fd directory(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // it may be behind a symlink
  if (!directory) return errno_error("cannot open", root_);
  for (const std::string& name : components_of(folder)) {
    Fd below(::openat(directory.get(), name.c_str(), kOpenDirectory));
    if (!below && errno == ENOENT && make) {
      if (::mkdirat(directory.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
        return errno_error("cannot make directory", path(folder));
      KIN_TRY(sync_directory(directory.get(), path(folder)));
      below = Fd(::openat(directory.get(), name.c_str(), kOpenDirectory));
    }
    if (!below) return errno_error("cannot open", path(folder));
    directory = std::move(below);
  }
  return directory;
}

Result<void> Directories::walk(const OnFolder& on_folder, const SyncStore::OnSkipped& on_skipped) const {
  const auto directory = open("", false);
  if (!directory && directory.error().code() == ErrorCode::not_found) return {};
  if (!directory) return directory.error();
  return walk(directory->get(), "", 0, on_folder, on_skipped);
}

// An error is of this directory alone.
Result<void> Directories::walk(int directory, const std::string& folder, int depth, const OnFolder& on_folder,
                               const SyncStore::OnSkipped& on_skipped) const {
  std::vector<std::string> below;
  Look look{directory, folder, false, {}};
  const Timestamp time = now();
  KIN_TRY(for_each_name(directory, path(folder), [&](std::string_view name, unsigned char type) {
    if (name[0] == '.') return true;
    if (is_directory(directory, name, type))
      below.emplace_back(name);
    else if (is_stale_mh_temporary(name, time))
      look.stale.emplace_back(name);
    else
      look.has_messages |= mh_number(name) != 0;
    return true;
  }));
  on_folder(look);
  if (depth == kDeepestFolder) return {};
  for (const std::string& name : below) {
    const std::string folder_below = join_path(folder, name);
    if (folder_below.size() > kMostFolderBytes) {
      on_skipped(folder_below, errno_error("cannot open", path(folder_below), ENAMETOOLONG));
      continue;
    }
    const Fd opened(::openat(directory, name.c_str(), kOpenDirectory));
    if (!opened && errno == ENOENT) continue;
    const Result<void> walked = opened ? walk(opened.get(), folder_below, depth + 1, on_folder, on_skipped)
                                       : Result<void>(errno_error("cannot open", path(folder_below)));
    if (!walked) on_skipped(folder_below, walked.error());
  }
  return {};
}

Result<void> Directories::remove(const std::string& folder) const {
  const auto ok_if_gone = [](Error error) -> Result<void> {
    if (error.code() == ErrorCode::not_found) return {};
    return error;
  };
  const std::size_t slash = folder.rfind('/');
  const bool is_below_root = slash == std::string::npos;
  const std::string name = is_below_root ? folder : folder.substr(slash + 1);
  auto parent = open(is_below_root ? "" : folder.substr(0, slash), false);
  if (!parent) return ok_if_gone(std::move(parent).error());
  const Fd directory(::openat(parent->get(), name.c_str(), kOpenDirectory));
  if (!directory) return ok_if_gone(errno_error("cannot open", path(folder)));
  bool is_empty = true;
  KIN_TRY(for_each_name(directory.get(), path(folder), [&](std::string_view entry, int) {
    is_empty = entry == kMhSequencesName;
    return is_empty;
  }));
  if (!is_empty) return {};
  ::unlinkat(directory.get(), kMhSequencesName, 0);
  if (::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST &&
      errno != ENOENT && errno != EBUSY)
    return errno_error("cannot remove", path(folder));
  return sync_directory(parent->get(), path(folder));
}

}  // namespace kin::sync::mh

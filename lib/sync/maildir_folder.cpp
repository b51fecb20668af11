#include "lib/sync/maildir_folder.h"

#include "lib/base/pause.h"
#include "lib/base/text.h"
#include "lib/sync/item.h"
#include "lib/sync/maildir_name.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/store_files.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace kin::sync::maildir {
namespace {

constexpr int kMostDepth = 16;
constexpr const char* kFolderMark = "maildirfolder";  // by which Maildir++ tells its folders

bool is_inner(std::string_view name) { return name == "cur" || name == "new" || name == "tmp"; }

// What mail programs keep in a folder to be quick; without the folder it means nothing.
bool is_known_file(std::string_view name) {
  constexpr std::string_view kWhole[] = {kFolderMark, "maildirsize", "dovecot-uidlist", "dovecot-keywords",
                                         ".uidvalidity"};
  constexpr std::string_view kPrefixes[] = {"dovecot.index", "dovecot.list.index", "dovecot-uidvalidity",
                                            "courierimap",   ".isyncuidmap.db",    ".mbsyncstate"};
  return std::find(std::begin(kWhole), std::end(kWhole), name) != std::end(kWhole) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Likewise, with files alone in it.
bool is_known_directory(std::string_view name) { return name == "courierimapkeywords"; }

Result<Fd> open_root(const std::string& root) {
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // the root itself may be behind a symlink
  if (!fd) return errno_error("cannot open", root);
  return fd;
}

Result<Fd> open_below(int directory, const std::string& name, const std::string& path) {
  Fd fd(::openat(directory, name.c_str(), kOpenDirectory));
  if (!fd) return errno_error("cannot open", path + "/" + name);
  return fd;
}

bool has_directory(int directory, const char* name) {
  struct stat status {};
  return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

// An error is of this directory alone.
Result<void> find_below(int directory, const std::string& root, const std::string& name, int depth,
                        std::vector<std::string>& found, const SyncStore::OnSkipped& on_skipped) {
  const std::string path = name.empty() ? root : root + "/" + name;
  // First: where it cannot be listed, neither can be seen whether it has a cur.
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(directory, path));
  if (has_directory(directory, "cur")) found.push_back(name);
  if (depth == kMostDepth) return {};
  for (const std::string& below : names) {
    if (is_inner(below)) continue;
    const Fd fd(::openat(directory, below.c_str(), kOpenDirectory));
    if (!fd && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT)) continue;
    const std::string full = name.empty() ? below : name + "/" + below;
    const Result<void> listed = !fd ? Result<void>(errno_error("cannot open", path + "/" + below))
                                : is_good_folder(full)
                                    ? find_below(fd.get(), root, full, depth + 1, found, on_skipped)
                                    : Result<void>();
    if (!listed) on_skipped(full, listed.error());
  }
  return {};
}

Result<bool> make_directory(int directory, const std::string& name, const std::string& path) {
  if (::mkdirat(directory, name.c_str(), 0700) == 0) return true;
  if (errno == EEXIST) return false;
  return errno_error("cannot make", path + "/" + name);
}

// Whether all that is in it may go with it.
Result<bool> holds_nothing_foreign(const Folder& folder, bool& has_folders) {
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(folder.self.get(), folder.path));
  for (const std::string& name : names) {
    struct stat status {};
    if (::fstatat(folder.self.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("cannot look at", folder.path + "/" + name);
    if (!S_ISDIR(status.st_mode)) {
      if (!is_known_file(name)) return false;
      continue;
    }
    KIN_TRY_ASSIGN(const Fd below, open_below(folder.self.get(), name, folder.path));
    if (is_inner(name)) {
      KIN_TRY_ASSIGN(const std::vector<std::string> inside,
                     list_directory(below.get(), folder.path + "/" + name));
      if (!inside.empty()) return false;
      continue;
    }
    if (is_known_directory(name)) {
      KIN_TRY_ASSIGN(const std::vector<std::string> inside,
                     list_directory(below.get(), folder.path + "/" + name));
      if (std::any_of(inside.begin(), inside.end(),
                      [&](const std::string& each) { return has_directory(below.get(), each.c_str()); }))
        return false;
      continue;
    }
    std::vector<std::string> folders;
    bool is_all_seen = true;
    KIN_TRY(find_below(below.get(), folder.path, name, 1, folders,
                       [&](const std::string&, const Error&) { is_all_seen = false; }));
    if (folders.empty() || !is_all_seen) return false;
    has_folders = true;
  }
  return true;
}

Result<void> remove_known_directory(const Folder& folder, const std::string& name) {
  KIN_TRY_ASSIGN(const Fd directory, open_below(folder.self.get(), name, folder.path));
  KIN_TRY_ASSIGN(const std::vector<std::string> files,
                 list_directory(directory.get(), folder.path + "/" + name));
  for (const std::string& file : files) ::unlinkat(directory.get(), file.c_str(), 0);
  ::unlinkat(folder.self.get(), name.c_str(), AT_REMOVEDIR);
  return {};
}

// When something last happened in a folder's directories.
using Moment = std::array<std::int64_t, 2>;

Result<Moment> moment_of(const Folder& folder) {
  Moment moment{};
  for (const bool is_new : {false, true}) {
    const int directory = folder.directory(is_new);
    if (directory < 0) continue;
    struct stat status {};
    if (::fstat(directory, &status) != 0) return errno_error("cannot look at", folder.path);
    moment[is_new ? 1 : 0] = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
  }
  return moment;
}

std::string key_of(bool is_new, std::string_view name) {
  const std::size_t unique = parse_name(name).unique.size();
  std::string key;
  key.reserve(name.size() + 2);
  key.append(name.substr(0, unique)).append({'\0', is_new ? 'n' : 'c'}).append(name.substr(unique));
  return key;
}

}  // namespace

bool is_good_folder(std::string_view name) {
  if (name.size() > kMostFolderBytes || name.find('\0') != name.npos) return false;
  const std::vector<std::string> components = components_of(name);
  return components.size() <= kMostDepth &&
         std::none_of(components.begin(), components.end(), [](const std::string& component) {
           return component.empty() || component == "." || component == ".." ||
                  component.size() > kMostNameBytes || is_inner(component);
         });
}

Result<std::vector<std::string>> find_folders(const std::string& root,
                                              const SyncStore::OnSkipped& on_skipped) {
  std::vector<std::string> found;
  const auto directory = open_root(root);
  if (!directory && directory.error().code() == ErrorCode::not_found) return found;
  if (!directory) return directory.error();
  KIN_TRY(find_below(directory->get(), root, "", 0, found, on_skipped));
  std::sort(found.begin(), found.end());
  return found;
}

Result<Folder> open_folder(const std::string& root, const std::string& name) {
  if (!is_good_folder(name))
    return Error(ErrorCode::invalid_argument, "no folder can have the name " + printable(name));
  Folder folder;
  folder.path = root;
  KIN_TRY_ASSIGN(folder.self, open_root(root));
  for (const std::string& component : components_of(name)) {
    KIN_TRY_ASSIGN(folder.self, open_below(folder.self.get(), component, folder.path));
    folder.path += "/" + component;
  }
  auto cur = open_below(folder.self.get(), "cur", folder.path);
  if (!cur && !(name.empty() && cur.error().code() == ErrorCode::not_found)) return std::move(cur).error();
  if (cur) folder.cur = *std::move(cur);
  auto fresh = open_below(folder.self.get(), "new", folder.path);
  if (!fresh && fresh.error().code() != ErrorCode::not_found) return std::move(fresh).error();
  if (fresh) folder.fresh = *std::move(fresh);
  return folder;
}

Result<Folder> make_folder(const std::string& root, const std::string& name) {
  if (!is_good_folder(name))
    return Error(ErrorCode::invalid_argument, "no folder can have the name " + printable(name));
  KIN_TRY(make_root(root));
  std::string path = root;
  KIN_TRY_ASSIGN(Fd directory, open_root(root));
  for (const std::string& component : components_of(name)) {
    KIN_TRY_ASSIGN(const bool made, make_directory(directory.get(), component, path));
    if (made) KIN_TRY(sync_directory(directory.get(), path));
    KIN_TRY_ASSIGN(directory, open_below(directory.get(), component, path));
    path += "/" + component;
  }
  const bool was_one = has_directory(directory.get(), "cur");
  if (!was_one && name.starts_with('.') && name.find('/') == name.npos) {
    const Fd mark(::openat(directory.get(), kFolderMark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!mark && errno != EEXIST) return errno_error("cannot make", path + "/" + kFolderMark);
  }
  bool made_any = false;
  for (const char* const inner : {"tmp", "new", "cur"}) {  // cur last: with it, it is a folder
    KIN_TRY_ASSIGN(const bool made, make_directory(directory.get(), inner, path));
    made_any |= made;
  }
  if (made_any) KIN_TRY(sync_directory(directory.get(), path));
  KIN_TRY_ASSIGN(Folder folder, open_folder(root, name));
  KIN_TRY_ASSIGN(folder.tmp, open_below(folder.self.get(), "tmp", folder.path));
  return folder;
}

Result<void> remove_folder(const std::string& root, const std::string& name) {
  if (name.empty()) return Error(ErrorCode::invalid_argument, "the root of a Maildir cannot be removed");
  auto opened = open_folder(root, name);
  if (!opened && opened.error().code() == ErrorCode::not_found) return {};
  KIN_TRY_ASSIGN(const Folder folder, std::move(opened));
  const int self = folder.self.get();
  bool has_folders = false;
  KIN_TRY_ASSIGN(const bool may_go, holds_nothing_foreign(folder, has_folders));
  if (!may_go) return {};
  // tmp first: without it nobody can deliver. Where a message came before, all is made as it was.
  std::vector<const char*> gone;
  for (const char* const inner : {"tmp", "new", "cur"}) {
    if (::unlinkat(self, inner, AT_REMOVEDIR) == 0) {
      gone.push_back(inner);
    } else if (errno != ENOENT) {
      const int why = errno;
      for (const char* const again : gone) KIN_TRY(make_directory(self, again, folder.path));
      if (why == ENOTEMPTY || why == EEXIST) return {};
      return errno_error("cannot remove", folder.path + "/" + inner, why);
    }
  }
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(self, folder.path));
  for (const std::string& each : names) {  // if anything fails, the directory stays
    if (is_known_directory(each) && has_directory(self, each.c_str()))
      KIN_TRY(remove_known_directory(folder, each));
    else if (is_known_file(each))
      ::unlinkat(self, each.c_str(), 0);
  }
  KIN_TRY(sync_directory(self, folder.path));
  if (has_folders) return {};
  KIN_TRY_ASSIGN(const Fd parent, open_below(self, "..", folder.path));
  const std::string last = components_of(name).back();
  if (::unlinkat(parent.get(), last.c_str(), AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return errno_error("cannot remove", folder.path);
  return sync_directory(parent.get(), folder.path + "/..");
}

Place Listing::place_of(std::string_view key) {
  const std::size_t end = key.find('\0');
  return {key[end + 1] == 'n', std::string(key.substr(0, end)).append(key.substr(end + 2))};
}

std::size_t Listing::position_after(std::string_view unique) const {
  const std::string end = std::string(unique) + '\1';
  return static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), end) - keys_.begin());
}

// One listing. Whether nothing can have happened meanwhile: then it is all that there is, else it comes on
// top.
Result<bool> Listing::look_again(const Folder& folder) {
  // The clock of file systems goes in steps of up to 10 ms, and two changes within one cannot be told apart.
  constexpr std::int64_t kClockStepNs = 20'000'000;
  const Timestamp time = now();
  const std::int64_t start_ns = time.seconds * 1'000'000'000 + time.nanoseconds;
  KIN_TRY_ASSIGN(const Moment before, moment_of(folder));
  std::vector<std::string> names;
  delimiters_.clear();
  for (const bool is_new : {false, true}) {
    const int directory = folder.directory(is_new);
    if (directory < 0) continue;
    KIN_TRY_ASSIGN(std::vector<std::string> listed, list_directory(directory, folder.path));
    names.reserve(names.size() + listed.size());
    for (std::string& name : listed)
      if (name.front() != '.') {
        names.push_back(key_of(is_new, std::exchange(name, {})));
        count_delimiter(names.back());
      }
  }
  std::sort(names.begin(), names.end());
  KIN_TRY_ASSIGN(const Moment after, moment_of(folder));
  const bool is_still =
      before == after && std::all_of(before.begin(), before.end(), [&](std::int64_t changed_ns) {
        return std::abs(start_ns - changed_ns) > kClockStepNs;
      });
  listed_ = true;
  if (is_still) {
    keys_ = std::move(names);
    added_.clear();
    return true;
  }
  names.insert(names.end(), added_.begin(), added_.end());
  std::sort(names.begin(), names.end());
  std::vector<std::string> all;
  std::set_union(std::make_move_iterator(keys_.begin()), std::make_move_iterator(keys_.end()),
                 std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()),
                 std::back_inserter(all));
  keys_ = std::move(all);
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
  return false;
}

Result<void> Listing::refresh(const Folder& folder) {
  constexpr int kMostAttempts = 20;
  keys_.clear();
  added_.clear();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt > 0) pause_for(std::chrono::milliseconds(10));
    KIN_TRY_ASSIGN(const bool is_still, look_again(folder));
    if (is_still) break;
  }
  return {};
}

Result<void> Listing::list_once(const Folder& folder) {
  if (!listed_) KIN_TRY(look_again(folder));
  return {};
}

void Listing::add(const Place& place) {
  const auto [key, is_new] = added_.insert(key_of(place.is_new, place.name));
  if (is_new) count_delimiter(*key);
}

void Listing::count_delimiter(std::string_view key) {
  const std::string_view info = key.substr(key.find('\0') + 2);
  if (!info.empty()) ++delimiters_[info.find(":2,") != info.npos ? ':' : info.front()];
}

std::optional<char> Listing::delimiter() const {
  const auto most = std::max_element(delimiters_.begin(), delimiters_.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == delimiters_.end() ? std::nullopt : std::optional(most->first);
}

std::vector<Place> Listing::places_of(std::string_view unique) const {
  const std::string start = std::string(unique) + '\0';
  std::set<std::string> keys;
  for (auto at = std::lower_bound(keys_.begin(), keys_.end(), start);
       at != keys_.end() && at->starts_with(start); ++at)
    keys.insert(*at);
  for (auto at = added_.lower_bound(start); at != added_.end() && at->starts_with(start); ++at)
    keys.insert(*at);
  std::vector<Place> places;
  for (const std::string& key : keys) places.push_back(place_of(key));
  return places;
}

std::uint32_t Listing::keywords_in_use() const {
  std::uint32_t letters = 0;
  const auto add_those_of = [&](const std::string& key) {
    letters |= keywords_in(parse_name(place_of(key).name).letters);
  };
  for (const std::string& key : keys_) add_those_of(key);
  for (const std::string& key : added_) add_those_of(key);
  return letters;
}

std::vector<Listing::Seen> Listing::look_at(const Folder& folder, std::string_view unique,
                                            bool* some_are_gone) const {
  std::vector<Seen> there;
  for (Place& place : places_of(unique)) {
    Seen seen{std::move(place), {}};
    const int directory = folder.directory(seen.place.is_new);
    if (::fstatat(directory, seen.place.name.c_str(), &seen.status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (some_are_gone != nullptr) *some_are_gone = true;
      continue;
    }
    // Under two names: it was renamed meanwhile, or someone renames by link and unlink.
    const bool is_known = std::any_of(there.begin(), there.end(), [&](const Seen& other) {
      return other.status.st_ino == seen.status.st_ino;
    });
    if (!is_known) there.push_back(std::move(seen));
  }
  return there;
}

Result<std::optional<Listing::Seen>> Listing::seek(const Folder& folder, std::string_view unique,
                                                   const Accept& accept) {
  constexpr int kMostAttempts = 50;
  const std::string wanted(unique);  // it may be of a key
  KIN_TRY(list_once(folder));
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt > 3) pause_for(std::chrono::milliseconds(2));
    bool is_still = false;
    if (attempt > 0) {
      KIN_TRY_ASSIGN(is_still, look_again(folder));
    }
    bool some_are_gone = false;
    for (Seen& seen : look_at(folder, wanted, &some_are_gone))
      if (accept(seen)) return std::optional<Seen>(std::move(seen));
    // One that is gone since the listing may have another name by now.
    if (is_still && !some_are_gone) return std::optional<Seen>();
  }
  return Error(ErrorCode::busy, printable(folder.path) + " changes all the time");
}

}  // namespace kin::sync::maildir

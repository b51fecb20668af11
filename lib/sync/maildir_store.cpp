// The Maildir kind. A message is found again by the unique part of its name: what follows it are flags, which
// any program may change at any time by a rename. So every name is looked up anew, and checked by inode, size
// and time of the file, which no rename changes.
#include "lib/sync/maildir_changes.h"
#include "lib/sync/maildir_entries.h"
#include "lib/sync/maildir_folder.h"
#include "lib/sync/maildir_name.h"
#include "lib/sync/maildir_words.h"
#include "lib/sync/sync_store.h"

#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {
namespace maildir {
namespace {

// Why it is no message that can be read; nothing if it is one.
std::optional<Error> why_not(const Folder& folder, const Seen& seen) {
  const std::string path = folder.path + "/" + seen.place.path();
  if (!S_ISREG(seen.status.st_mode)) return Error(ErrorCode::io, printable(path) + " is not a regular file");
  const bool is_ours_to_read = seen.status.st_uid == ::geteuid() && (seen.status.st_mode & S_IRUSR) != 0;
  if (!is_ours_to_read &&
      ::faccessat(folder.directory(seen.place.is_new), seen.place.name.c_str(), R_OK, AT_EACCESS) != 0)
    return errno_error("cannot read", path);
  return std::nullopt;
}

class MaildirStore final : public SyncStore {
 public:
  explicit MaildirStore(std::string root) : root_(std::move(root)) {}

  const char* kind() const override { return "maildir"; }
  Result<std::vector<std::string>> folders(const OnSkipped& on_skipped) override;
  Result<std::optional<std::uint64_t>> folder_fingerprint(const std::string& folder) override;
  Result<void> scan(const std::string& folder, const OnEntry& on_entry, const OnSkipped& on_skipped) override;
  Result<std::unique_ptr<ByteSource>> read(const std::string& folder, const Entry& entry) override;
  std::vector<Result<Entry>> apply(std::vector<StoreChange> changes) override {
    return changes_.apply(std::move(changes));
  }
  std::string path_of(const std::string& folder, const Entry& entry) const override;

 private:
  const std::string root_;
  Listings listings_;
  Changes changes_{root_, listings_};
};

Result<std::vector<std::string>> MaildirStore::folders(const OnSkipped& on_skipped) {
  KIN_TRY_ASSIGN(std::vector<std::string> found, find_folders(root_, on_skipped));
  struct stat status {};
  if ((found.empty() || !found.front().empty()) &&
      ::lstat((root_ + "/" + kSubscriptionsFile).c_str(), &status) == 0 && S_ISREG(status.st_mode))
    found.insert(found.begin(), "");
  return found;
}

// Messages never change, so only the directories need a look; and the files that say what words are meant.
Result<std::optional<std::uint64_t>> MaildirStore::folder_fingerprint(const std::string& name) {
  constexpr std::int64_t kStepOfAnyClockSeconds = 3;  // of a file system: what is that new may change unseen
  KIN_TRY_ASSIGN(const Folder folder, open_folder(root_, name));
  WireWriter out;
  const std::int64_t newest = now().seconds - kStepOfAnyClockSeconds;
  for (const char* const part : {"cur", "new", kKeywordsFile, kSubscriptionsFile}) {
    struct stat status {};
    if (::fstatat(folder.self.get(), part, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)
      return errno_error("cannot look at", folder.path + "/" + part);
    if (status.st_ctim.tv_sec > newest) return std::optional<std::uint64_t>();
    for (const std::int64_t number :
         {std::int64_t(status.st_ino), std::int64_t(status.st_ctim.tv_sec),
          std::int64_t(status.st_ctim.tv_nsec), std::int64_t(status.st_mtim.tv_nsec)})
      out.signed_varint(number);
  }
  const Digest digest = hash(out.bytes());
  return std::optional<std::uint64_t>(WireReader(digest).u64());
}

// One scan of a folder.
class Scan {
 public:
  Scan(const std::string& name, const Folder& folder, Listing& listing, const SyncStore::OnEntry& on_entry,
       const SyncStore::OnSkipped& on_skipped)
      : name_(name), folder_(folder), listing_(listing), on_entry_(on_entry), on_skipped_(on_skipped) {}

  Result<void> run();

 private:
  struct Apart {
    std::string unique;
    ino_t inode = 0;
  };

  void set_apart();
  Result<void> emit(const std::string& local, const std::string& unique, const Listing::Accept& accept);
  Result<void> emit_apart(const std::string& local, const Apart& what);

  const std::string& name_;
  const Folder& folder_;
  Listing& listing_;
  const SyncStore::OnEntry& on_entry_;
  const SyncStore::OnSkipped& on_skipped_;
  Keywords keywords_;
  std::uint32_t unnamed_letters_ = 0;   // that have none even in the file as it is now
  std::map<std::string, Apart> apart_;  // by `local`
  std::set<ino_t> inodes_apart_;
};

// Of files with the same unique part the first has that for its `local`, and each other one its name.
void Scan::set_apart() {
  const std::vector<std::string>& keys = listing_.keys();
  for (std::size_t i = 0; i < keys.size();) {
    const std::string_view unique = Listing::unique_of(keys[i]);
    std::size_t end = i + 1;
    while (end < keys.size() && Listing::unique_of(keys[end]) == unique) ++end;
    const bool is_always = is_always_set_apart(name_, unique);
    if (is_always || end - i > 1) {
      const std::vector<Seen> there = listing_.look_at(folder_, unique);
      for (std::size_t k = is_always ? 0 : 1; k < there.size(); ++k) {
        apart_[there[k].place.path()] = {std::string(unique), there[k].status.st_ino};
        inodes_apart_.insert(there[k].status.st_ino);
      }
    }
    i = end;
  }
}

Result<void> Scan::emit(const std::string& local, const std::string& unique, const Listing::Accept& accept) {
  const auto found = listing_.seek(folder_, unique, accept);
  if (!found) {
    on_skipped_(local, found.error());
    return {};
  }
  if (!*found) return {};
  const Seen& seen = **found;
  if (const std::optional<Error> error = why_not(folder_, seen)) {
    on_skipped_(local, *error);
    return {};
  }
  const std::uint32_t unnamed = keywords_in(parse_name(seen.place.name).letters) & ~keywords_.named();
  if ((unnamed & ~unnamed_letters_) != 0) {
    KIN_TRY_ASSIGN(keywords_, Keywords::load(folder_.self.get(), folder_.path));
    unnamed_letters_ |= unnamed;
  }
  return on_entry_(entry_of(name_, local, seen, keywords_));
}

Result<void> Scan::emit_apart(const std::string& local, const Apart& what) {
  if (local != kSubscriptionsFile)
    return emit(local, what.unique, [&](const Seen& seen) { return seen.status.st_ino == what.inode; });
  auto subscriptions = find_subscriptions(folder_);
  if (!subscriptions) on_skipped_(local, subscriptions.error());
  return subscriptions && *subscriptions ? on_entry_(**std::move(subscriptions)) : Result<void>();
}

Result<void> Scan::run() {
  KIN_TRY(listing_.refresh(folder_));
  // After the names: what a letter means is written down before it is used.
  KIN_TRY_ASSIGN(keywords_, Keywords::load(folder_.self.get(), folder_.path));
  set_apart();
  if (name_.empty()) apart_[kSubscriptionsFile] = {};
  auto apart = apart_.begin();
  for (std::size_t i = 0; i < listing_.keys().size();) {
    const std::string unique(Listing::unique_of(listing_.keys()[i]));
    for (; apart != apart_.end() && apart->first < unique; ++apart)
      KIN_TRY(emit_apart(apart->first, apart->second));
    if (!is_always_set_apart(name_, unique)) {
      KIN_TRY(emit(unique, unique,
                   [&](const Seen& seen) { return !inodes_apart_.contains(seen.status.st_ino); }));
    }
    i = listing_.position_after(unique);
  }
  for (; apart != apart_.end(); ++apart) KIN_TRY(emit_apart(apart->first, apart->second));
  return {};
}

Result<void> MaildirStore::scan(const std::string& name, const OnEntry& on_entry,
                                const OnSkipped& on_skipped) {
  KIN_TRY_ASSIGN(const Folder folder, open_folder(root_, name));
  struct stat status {};
  if (!folder.cur && ::fstatat(folder.self.get(), kSubscriptionsFile, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error("cannot open", folder.path + "/cur", ENOENT);
  const std::shared_ptr<Listing> listing = listings_.of(name);
  return Scan(name, folder, *listing, on_entry, on_skipped).run();
}

Result<std::unique_ptr<ByteSource>> MaildirStore::read(const std::string& name, const Entry& entry) {
  KIN_TRY_ASSIGN(const Folder folder, open_folder(root_, name));
  for (int attempt = 0;; ++attempt) {
    KIN_TRY_ASSIGN(const Seen seen, listings_.find(name, folder, entry));
    const std::string path = folder.path + "/" + seen.place.path();
    Fd file(::openat(folder.directory(seen.place.is_new), seen.place.name.c_str(), kOpenFile));
    if (!file && errno == ENOENT && attempt < kMostRenamesMeanwhile) continue;
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) return errno_error("cannot open", path);
    if (!S_ISREG(status.st_mode) || fingerprint_of(status) != entry.fingerprint) return not_as_it_was(path);
    return file_source(std::move(file), path, entry.fingerprint);
  }
}

std::string MaildirStore::path_of(const std::string& folder, const Entry& entry) const {
  const std::string path = root_ + "/" + (folder.empty() ? "" : folder + "/");
  if (entry.item.type != ItemType::message || is_set_apart(entry.local)) return path + entry.local;
  const std::shared_ptr<const Listing> listing = listings_.known_of(folder);
  const std::vector<Place> places = listing ? listing->places_of(entry.local) : std::vector<Place>();
  return path + (places.empty() ? entry.local : places.front().path());
}

bool is_maildir(int directory) {
  for (const char* const inner : {"cur", "new", "tmp"}) {
    struct stat status {};
    if (::fstatat(directory, inner, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
      return false;
  }
  return true;
}

// Whether one is up to `levels` below. Looks at so many names at most.
bool is_maildir_below(int directory, const std::string& path, int levels, int& names_left) {
  const auto names = list_directory(directory, path);
  if (!names) return false;
  for (const std::string& name : *names) {
    if (names_left-- <= 0) return false;
    const Fd below(::openat(directory, name.c_str(), kOpenDirectory));
    if (!below) continue;
    if (is_maildir(below.get())) return true;
    if (levels > 1 && is_maildir_below(below.get(), path + "/" + name, levels - 1, names_left)) return true;
  }
  return false;
}

}  // namespace
}  // namespace maildir

// Declared where they are listed, in store_kinds.cpp.
int detect_maildir(const std::string& root);
Result<std::unique_ptr<SyncStore>> open_maildir(const std::string& root);

int detect_maildir(const std::string& root) {
  const Fd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return 0;
  if (maildir::is_maildir(directory.get())) return 90;
  int names_left = 10'000;
  return maildir::is_maildir_below(directory.get(), root, 2, names_left) ? 60 : 0;
}

Result<std::unique_ptr<SyncStore>> open_maildir(const std::string& root) {
  struct stat status {};
  if (::stat(root.c_str(), &status) != 0 && errno != ENOENT) return errno_error("cannot open", root);
  if (status.st_mode != 0 && !S_ISDIR(status.st_mode)) return errno_error("cannot open", root, ENOTDIR);
  return std::unique_ptr<SyncStore>(std::make_unique<maildir::MaildirStore>(root));
}

}  // namespace kin::sync

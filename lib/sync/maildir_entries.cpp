#include "lib/sync/maildir_entries.h"

#include "lib/sync/maildir_name.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace kin::sync::maildir {
namespace {

// Names of other folders are forgotten beyond this.
constexpr std::size_t kMostNamesKept = 1'000'000;

std::string unique_in_local(const std::string& local) {
  const std::size_t slash = local.find('/');
  return slash == local.npos ? local
                             : std::string(parse_name(std::string_view(local).substr(slash + 1)).unique);
}

}  // namespace

bool is_set_apart(std::string_view local) { return local.find('/') != local.npos; }

bool is_always_set_apart(const std::string& folder, std::string_view unique) {
  return unique.empty() || (folder.empty() && unique == kSubscriptionsFile);
}

Entry entry_of(const std::string& folder, std::string local, const Seen& seen, const Keywords& keywords) {
  const NameView name = parse_name(seen.place.name);
  Entry entry;
  entry.local = std::move(local);
  entry.fingerprint = fingerprint_of(seen.status);
  entry.item.folder = folder;
  entry.item.name = without_uid(name.unique);
  entry.item.size = entry.fingerprint.size;
  entry.item.flags = flags_in(name.letters);
  entry.item.words = keywords.words_for(keywords_in(name.letters));
  entry.item.time = {seen.status.st_mtim.tv_sec, static_cast<std::uint32_t>(seen.status.st_mtim.tv_nsec)};
  return entry;
}

Result<std::optional<Entry>> find_subscriptions(const Folder& root) {
  const std::string path = root.path + "/" + kSubscriptionsFile;
  // Looked at first: if it changes meanwhile, the next scan sees that.
  struct stat status {};
  if (::fstatat(root.self.get(), kSubscriptionsFile, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<Entry>();
    return errno_error("cannot look at", path);
  }
  KIN_TRY_ASSIGN(const std::optional<Bytes> content,
                 read_words_file(root.self.get(), kSubscriptionsFile, root.path));
  if (!content) return std::optional<Entry>();
  std::optional<std::vector<std::string>> words = parse_subscriptions(*content);
  if (!words) return Error(ErrorCode::io, printable(path) + " has too many lines");
  Entry entry;
  entry.local = kSubscriptionsFile;
  entry.fingerprint = fingerprint_of(status);
  entry.item.type = ItemType::words;
  entry.item.name = kSubscriptionsFile;
  entry.item.words = *std::move(words);
  return std::optional<Entry>(std::move(entry));
}

std::shared_ptr<Listing> Listings::of(const std::string& folder) {
  const auto known = listings_.find(folder);
  if (known != listings_.end()) return known->second;
  std::size_t names = 0;
  for (const auto& [name, listing] : listings_) names += listing->keys().size();
  if (names > kMostNamesKept) listings_.clear();
  return listings_[folder] = std::make_shared<Listing>();
}

std::shared_ptr<const Listing> Listings::known_of(const std::string& folder) const {
  const auto known = listings_.find(folder);
  return known == listings_.end() ? nullptr : known->second;
}

Result<Seen> Listings::find(const std::string& name, const Folder& folder, const Entry& entry) {
  bool is_another_there = false;
  KIN_TRY_ASSIGN(std::optional<Seen> seen,
                 of(name)->seek(folder, unique_in_local(entry.local), [&](const Seen& candidate) {
                   const bool is_it = S_ISREG(candidate.status.st_mode) &&
                                      fingerprint_of(candidate.status) == entry.fingerprint;
                   is_another_there |= !is_it;
                   return is_it;
                 }));
  if (seen) return *std::move(seen);
  const std::string message = printable(folder.path) + " no longer has message " + printable(entry.local);
  return Error(is_another_there ? ErrorCode::busy : ErrorCode::not_found, message + " as it was");
}

}  // namespace kin::sync::maildir

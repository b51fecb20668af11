#include "lib/sync/mbox_folders.h"

#include "lib/sync/mbox_file.h"
#include "lib/sync/mbox_message.h"
#include "lib/sync/store_files.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace kin::sync::mbox {
namespace {

constexpr std::size_t kMostDepth = 16;

Result<Class> class_of(const Place& place, const Options& options) {
  struct stat info {};
  return class_of(place, options, info);
}

}  // namespace

bool is_ignored(std::string_view name) {
  return name.starts_with('.') || name.ends_with(".lock") || name.ends_with(".msf") || name.ends_with('~');
}

Class class_of_content(std::string_view head, std::uint64_t size, const Options& options) {
  if (size == 0) return Class::box;
  if (!head.starts_with(kEnvelopeStart)) return Class::other;
  return size > options.most_bytes || !begins_as_mbox(head) ? Class::opaque : Class::box;
}

Result<Class> class_of(const Place& place, const Options& options, struct stat& info) {
  if (::fstatat(place.directory, place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error("cannot look at", place.path);
  if (S_ISDIR(info.st_mode)) return Class::directory;
  if (!S_ISREG(info.st_mode)) return Class::other;
  if (info.st_size == 0) return Class::box;
  const auto fd = open_regular(place, O_RDONLY, info);
  if (!fd) return fd.error().code() == ErrorCode::not_found ? Result<Class>(fd.error()) : Class::box;
  Bytes head(kMostEnvelope);
  const auto size = read_up_to_at(fd->get(), head, 0, place.path);
  if (!size) return Class::box;
  return class_of_content(as_text(ByteView(head).first(*size)), static_cast<std::uint64_t>(info.st_size),
                          options);
}

Result<Class> settled_class_of(const Place& place, const Options& options, struct stat& info) {
  if (has_copy(place)) KIN_TRY(LockedBox::open(place, options));
  return class_of(place, options, info);
}

Result<bool> Folders::root_is_file() const {
  struct stat info {};
  if (::stat(root_.c_str(), &info) == 0) return !S_ISDIR(info.st_mode);
  if (errno != ENOENT) return errno_error("cannot look at", root_);
  return missing_root_is_file_;
}

Result<Fd> Folders::open_root(bool make) const {
  KIN_TRY_ASSIGN(const bool is_file, root_is_file());
  const std::string directory = is_file ? std::filesystem::path(root_).parent_path().string() : root_;
  if (make) KIN_TRY(make_root(directory));
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error("cannot open", directory);
  return fd;
}

Result<Fd> Folders::open_directory(const std::string& folder) const {
  if (folder.empty()) return open_root(false);
  KIN_TRY_ASSIGN(const Spot spot, spot_of(folder, false));
  return enter(spot.place, false);
}

// Into a directory. An empty mbox gives way to one: where folders come one by one, it is not known at first
// that there will be others below.
Result<Fd> Folders::enter(const Place& place, bool make) const {
  Fd fd(::openat(place.directory, place.name.c_str(), kOpenDirectory));
  if (fd) return fd;
  if (!make) return errno_error("cannot open", place.path, errno == ENOTDIR ? ENOENT : errno);
  if (errno == ENOTDIR) {
    struct stat info {};
    if (::fstatat(place.directory, place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode) || info.st_size > 0)
      return cannot_hold(place.path, "is no directory, so it cannot hold folders");
    KIN_TRY_ASSIGN(LockedBox box, LockedBox::open(place, options_));
    if (box.info().st_size > 0) return cannot_hold(place.path, "is an mbox, so it cannot hold folders");
    KIN_TRY(box.unlink());
  } else if (errno != ENOENT) {
    return errno_error("cannot open", place.path);
  }
  if (::mkdirat(place.directory, place.name.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error("cannot make directory", place.path);
  KIN_TRY(sync_directory(place.directory, place.path));
  fd = Fd(::openat(place.directory, place.name.c_str(), kOpenDirectory));
  if (!fd) return errno_error("cannot open", place.path);
  return fd;
}

Result<Spot> Folders::spot_of(const std::string& path, bool make) const {
  KIN_TRY_ASSIGN(const bool is_file, root_is_file());
  if (is_file && !path.empty())
    return make ? cannot_hold(root_, "is one mbox, so it cannot hold folders")
                : errno_error("cannot open", join_path(root_, path), ENOENT);
  if (!is_file && path.empty())
    return cannot_hold(root_, "is a directory of mbox files, so it cannot hold messages");
  std::vector<std::string> names =
      is_file ? std::vector{std::filesystem::path(root_).filename().string()} : components_of(path);
  std::string so_far = is_file ? "" : root_;
  if (!is_file && names.size() > kMostDepth) return cannot_hold(join_path(root_, path), "is too deep");
  KIN_TRY_ASSIGN(Fd directory, open_root(make));
  for (std::size_t i = 0; i < names.size(); ++i) {
    // Such a name would not be seen again, so it must not come to be.
    if (!is_file && (names[i].empty() || is_ignored(names[i]) || names[i].find('\0') != std::string::npos))
      return cannot_hold(join_path(root_, path), "has a name that mbox files cannot have");
    so_far = is_file ? root_ : so_far + "/" + names[i];
    const int fd = directory.get();
    if (i + 1 == names.size()) return Spot{std::move(directory), {fd, names[i], so_far}};
    KIN_TRY_ASSIGN(directory, enter({fd, names[i], so_far}, make));
  }
  return cannot_hold(root_, "has no such folder");
}

Result<Spot> Folders::spot_of_file(const std::string& folder, const std::string& name, bool make) const {
  KIN_TRY_ASSIGN(const bool is_file, root_is_file());
  return spot_of(is_file && folder.empty() && name == kRootFileName ? "" : join_path(folder, name), make);
}

// All directories on the way are folders too: so none is missing when something is to be put below it
// elsewhere. An error is of this directory alone.
Result<void> Folders::walk(const Fd& directory, const std::string& path, std::size_t depth,
                           std::set<std::string>& out, const SyncStore::OnSkipped& on_skipped) const {
  KIN_TRY_ASSIGN(const std::vector<std::string> names,
                 list_directory(directory.get(), join_path(root_, path)));
  for (const std::string& name : names) {
    const std::string inner = join_path(path, name);
    if (is_ignored(name) || inner.size() > kMostFolderBytes) continue;
    const Place place{directory.get(), name, root_ + "/" + inner};
    const auto found = class_of(place, options_);
    if (!found && found.error().code() == ErrorCode::not_found) continue;
    std::optional<Error> unseen;
    if (!found) unseen = found.error();
    if (found && *found == Class::directory && depth < kMostDepth) {
      const Fd fd(::openat(directory.get(), name.c_str(), kOpenDirectory));
      if (!fd && errno != ENOENT && errno != ENOTDIR) unseen = errno_error("cannot open", place.path);
      const Result<void> walked = fd ? walk(fd, inner, depth + 1, out, on_skipped) : Result<void>();
      if (!walked) unseen = walked.error();
    }
    if (unseen) on_skipped(inner, *unseen);
    if (!unseen && *found != Class::box && *found != Class::opaque) continue;
    if (!unseen && *found == Class::box) out.insert(inner);
    if (!unseen && *found == Class::opaque) out.insert(path);
    for (std::size_t slash = path.size(); slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1))
      out.insert(path.substr(0, slash));
  }
  return {};
}

Result<std::vector<std::string>> Folders::all(const SyncStore::OnSkipped& on_skipped) const {
  struct stat info {};
  if (::stat(root_.c_str(), &info) != 0 && errno == ENOENT) return std::vector<std::string>();
  KIN_TRY_ASSIGN(const bool is_file, root_is_file());
  if (is_file) return std::vector<std::string>{""};
  KIN_TRY_ASSIGN(const Fd directory, open_root(false));
  std::set<std::string> out;
  KIN_TRY(walk(directory, "", 1, out, on_skipped));
  return std::vector<std::string>(out.begin(), out.end());
}

Result<void> Folders::make_box(const Place& place) const {
  for (int attempt = 0;; ++attempt) {
    const Fd fd(::openat(place.directory, place.name.c_str(), kMakeFile, 0600));
    if (fd) return sync_directory(place.directory, place.path);
    if (errno != EEXIST) return errno_error("cannot make", place.path);
    struct stat info {};
    if (::fstatat(place.directory, place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("cannot look at", place.path);
    if (!S_ISDIR(info.st_mode)) return {};
    // Folders were below it once, perhaps.
    if (attempt > 0 || ::unlinkat(place.directory, place.name.c_str(), AT_REMOVEDIR) != 0)
      return cannot_hold(place.path, "is a directory, so it cannot hold messages");
  }
}

Result<Entry> Folders::apply(const StoreChange& change) const {
  const bool is_remove = change.kind == StoreChange::Kind::remove;
  const Item& item = is_remove ? change.entry.item : change.item;
  Entry answer = is_remove ? change.entry : Entry{item.name, {}, item};
  if (change.kind == StoreChange::Kind::update) return answer;
  const auto spot = spot_of(item.name, !is_remove);
  if (!spot && is_remove && spot.error().code() == ErrorCode::not_found) return answer;
  if (!spot) return spot.error();
  const Place& place = spot->place;
  const auto found = class_of(place, options_);
  if (!found && found.error().code() != ErrorCode::not_found) return found.error();
  if (!is_remove) {
    if (!found) KIN_TRY(make_box(place));
    if (found && *found != Class::box && *found != Class::directory)
      return cannot_hold(place.path, "is there and is no mbox");
    return answer;
  }
  if (!found) return answer;
  const Error is_used(ErrorCode::busy, printable(place.path) + " is not empty, so it remains");
  if (*found == Class::directory) {
    if (::unlinkat(place.directory, place.name.c_str(), AT_REMOVEDIR) != 0) {
      if (errno == ENOTEMPTY || errno == EEXIST) return is_used;
      return errno_error("cannot remove", place.path);
    }
    KIN_TRY(sync_directory(place.directory, place.path));
    return answer;
  }
  KIN_TRY_ASSIGN(LockedBox box, LockedBox::open(place, options_));
  if (box.info().st_size > 0) return is_used;
  KIN_TRY(box.unlink());
  return answer;
}

}  // namespace kin::sync::mbox

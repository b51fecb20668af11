#include "lib/sync/mbox_opaque.h"

#include "lib/base/random.h"
#include "lib/sync/mbox_file.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace kin::sync::mbox {
namespace {

constexpr std::string_view kFilePrefix = "file:";

// Whether a scan would show it as a file, and not as a folder of messages.
Result<bool> has_opaque_content(const StoreChange& change, const Options& options) {
  std::uint64_t size = change.content.size();
  struct stat info {};
  if (!change.content_path.empty()) {
    if (::stat(change.content_path.c_str(), &info) != 0)
      return errno_error("cannot look at", change.content_path);
    size = static_cast<std::uint64_t>(info.st_size);
  }
  KIN_TRY_ASSIGN(const auto source, content_source(change));
  Bytes head(kMostEnvelope);
  KIN_TRY_ASSIGN(const std::size_t n, source->read(head));
  return class_of_content(as_text(ByteView(head).first(n)), size, options) == Class::opaque;
}

Result<void> set_attributes(int fd, const Item& item, const std::string& path) {
  const timespec times[2] = {{0, UTIME_OMIT},
                             {static_cast<time_t>(item.time.seconds), item.time.nanoseconds}};
  if ((item.mode != 0 && ::fchmod(fd, item.mode & 0777) != 0) || ::futimens(fd, times) != 0)
    return errno_error("cannot set mode and time of", path);
  return {};
}

Result<Entry> add_file(const StoreChange& change, const Place& place) {
  const std::string temporary = fmt::format(".kin-{:016x}", random_number());
  const Fd fd(::openat(place.directory, temporary.c_str(), kMakeFile, 0600));
  if (!fd) return errno_error("cannot make", place.path);
  const auto write = [&]() -> Result<void> {
    KIN_TRY(write_content(change, fd.get(), place.path));
    KIN_TRY(set_attributes(fd.get(), change.item, place.path));
    if (::fsync(fd.get()) != 0) return errno_error("cannot write", place.path);
    if (::linkat(place.directory, temporary.c_str(), place.directory, place.name.c_str(), 0) != 0)
      return errno == EEXIST ? Error(ErrorCode::busy, printable(place.path) + " is there already")
                             : errno_error("cannot make", place.path);
    return {};
  };
  const auto written = write();
  ::unlinkat(place.directory, temporary.c_str(), 0);
  if (!written) return written.error();
  KIN_TRY(sync_directory(place.directory, place.path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot look at", place.path);
  return entry_of_file(change.item.folder, change.item.name, info);
}

}  // namespace

Entry entry_of_file(const std::string& folder, const std::string& name, const struct stat& info) {
  Entry entry{std::string(kFilePrefix) + name, fingerprint_of(info), {}};
  entry.item.type = ItemType::file;
  entry.item.folder = folder;
  entry.item.name = name;
  entry.item.size = static_cast<std::uint64_t>(info.st_size);
  entry.item.mode = info.st_mode & 0777;
  entry.item.time = {info.st_mtim.tv_sec, static_cast<std::uint32_t>(info.st_mtim.tv_nsec)};
  return entry;
}

Result<void> scan_files(const Folders& folders, const std::string& folder, const SyncStore::OnEntry& on_entry,
                        const SyncStore::OnSkipped& on_skipped) {
  KIN_TRY_ASSIGN(const Fd directory, folders.open_directory(folder));
  KIN_TRY_ASSIGN(std::vector<std::string> names, list_directory(directory.get(), folders.path(folder)));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (is_ignored(name)) continue;
    struct stat info {};
    const Place place{directory.get(), name, folders.path(join_path(folder, name))};
    const auto found = settled_class_of(place, folders.options(), info);
    if (!found && found.error().code() != ErrorCode::not_found)
      on_skipped(std::string(kFilePrefix) + name, found.error());
    if (!found || *found != Class::opaque) continue;
    KIN_TRY(on_entry(entry_of_file(folder, name, info)));
  }
  return {};
}

Result<std::unique_ptr<ByteSource>> read_file_entry(const Folders& folders, const std::string& folder,
                                                    const Entry& entry) {
  KIN_TRY_ASSIGN(const Spot spot, folders.spot_of_file(folder, entry.item.name, false));
  struct stat info {};
  KIN_TRY_ASSIGN(Fd fd, open_regular(spot.place, O_RDONLY, info));
  if (fingerprint_of(info) != entry.fingerprint || has_copy(spot.place))
    return not_as_it_was(spot.place.path);
  return file_source(std::move(fd), spot.place.path, entry.fingerprint);
}

Result<Entry> apply_file(const Folders& folders, const StoreChange& change) {
  const Options& options = folders.options();
  using Kind = StoreChange::Kind;
  const bool is_add = change.kind == Kind::add;
  const std::string& folder = is_add ? change.item.folder : change.folder;
  const std::string& name = is_add ? change.item.name : change.entry.item.name;
  if (change.kind == Kind::move)
    return cannot_hold(folders.path(join_path(folder, name)), "is no message, so it cannot be moved");
  const auto spot = folders.spot_of_file(folder, name, is_add);
  const bool is_remove = change.kind == Kind::remove;
  if (!spot && is_remove && spot.error().code() == ErrorCode::not_found) return change.entry;
  if (!spot) return spot.error();
  const Place& place = spot->place;
  if (is_add || (change.kind == Kind::update && change.has_content)) {
    // It would be ignored by the next scan, or be a folder.
    KIN_TRY_ASSIGN(const bool is_opaque, has_opaque_content(change, options));
    if (!is_opaque) return cannot_hold(place.path, "would not be seen as a file among mbox files");
  }
  if (is_add) {
    struct stat found {};
    const auto what = class_of(place, options, found);
    if (!what && what.error().code() == ErrorCode::not_found) return add_file(change, place);
    if (!what) return what.error();
    if (*what != Class::opaque) return not_as_it_was(place.path);
    KIN_TRY_ASSIGN(const Fd fd, open_regular(place, O_RDONLY, found));
    FileView source(fd.get(), place.path);
    KIN_TRY_ASSIGN(const auto wanted, content_source(change));
    KIN_TRY_ASSIGN(const bool is_same, same_bytes(source, *wanted));
    return is_same ? Result<Entry>(entry_of_file(folder, name, found)) : not_as_it_was(place.path);
  }
  auto locked = LockedBox::open(place, options);
  if (!locked && is_remove && locked.error().code() == ErrorCode::not_found) return change.entry;
  KIN_TRY_ASSIGN(LockedBox box, std::move(locked));
  if (fingerprint_of(box.info()) != change.entry.fingerprint) return not_as_it_was(place.path);
  if (is_remove) {
    KIN_TRY(box.unlink());
    return change.entry;
  }
  if (change.has_content) {
    KIN_TRY_ASSIGN(const auto source, content_source(change));
    KIN_TRY(box.replace(*source, {}));
  }
  KIN_TRY(set_attributes(box.fd(), change.item, place.path));
  struct stat info {};
  if (::fsync(box.fd()) != 0 || ::fstat(box.fd(), &info) != 0) return errno_error("cannot write", place.path);
  return entry_of_file(folder, name, info);
}

}  // namespace kin::sync::mbox

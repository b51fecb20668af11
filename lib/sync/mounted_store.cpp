#include "lib/sync/mounted_store.h"

#include "lib/base/file.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::sync {
namespace {

constexpr std::size_t kMostMountInfoBytes = 16 << 20;
constexpr std::size_t kMountPointWord = 4;
constexpr char kNote = 'd';  // of a mount: the path behind it, and how it was as an entry

bool is_at_or_below(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

// Spaces and the like are \040 there.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) &&
                           is_octal(text[i + 2]) && is_octal(text[i + 3]);
    if (!is_escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

Result<bool> is_empty(int directory, const std::string& path) {
  bool has_any = false;
  KIN_TRY(for_each_name(directory, path, [&](std::string_view, unsigned char) {
    has_any = true;
    return false;
  }));
  return !has_any;
}

// What a server or the system mounts only when it is asked for.
void mount_on_demand(const std::string& path) { const Fd opened(::open(path.c_str(), kOpenDirectory)); }

constexpr const char* kNothingIsGone = " (nothing of it counts as deleted)";

Error cannot_look_at(const std::string& path, int why) {
  return Error(ErrorCode::busy, fmt::format("{} was on another disk, and cannot be looked at: {}{}",
                                            printable(path), std::strerror(why), kNothingIsGone));
}

Error not_mounted(const std::string& path) {
  return Error(ErrorCode::busy,
               fmt::format("{} was on another disk, and is empty: is that mounted? (nothing of it counts as "
                           "deleted, unless the directory is deleted too)",
                           printable(path)));
}

Error perhaps_not_mounted(const std::string& path, const Error& why) {
  return Error(ErrorCode::busy, fmt::format("{}; what is mounted could not be found out: {}",
                                            not_mounted(path).message(), why.message()));
}

Error mounted_meanwhile(const std::string& path) {
  return Error(ErrorCode::busy, fmt::format("{} was mounted or unmounted while it was looked at{}",
                                            printable(path), kNothingIsGone));
}

}  // namespace

std::vector<std::string> mounts_below(const std::string& root, std::string_view mountinfo) {
  const std::string above = root.ends_with('/') ? root : root + "/";
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const auto words = split_words(mountinfo.substr(0, end), kMountPointWord + 1);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    if (words.size() <= kMountPointWord) continue;
    const std::string path = unescaped(words[kMountPointWord]);
    if (path.starts_with(above) && path.size() > above.size()) out.push_back(path.substr(above.size()));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<std::unique_ptr<MountedStore>> MountedStore::open(std::unique_ptr<SyncStore> store, std::string root,
                                                         Replica& replica, std::string mounts_file) {
  std::unique_ptr<MountedStore> out(
      new MountedStore(std::move(store), std::move(root), replica, std::move(mounts_file)));
  KIN_TRY(out->load());
  return out;
}

Result<void> MountedStore::load() {
  const Bytes prefix{static_cast<std::uint8_t>(kNote)};
  KIN_TRY(replica_.for_each_note(prefix, [&](ByteView key, ByteView value) -> Result<void> {
    WireReader in(value);
    Look look;
    look.fingerprint.inode = in.u64();
    look.fingerprint.modified_ns = in.signed_varint();
    look.mode = static_cast<std::uint32_t>(in.varint_up_to(kAllModes));
    Mount mount;
    if (look.fingerprint.inode != 0) mount.last_look = look;
    if (!in.failed()) mounts_[std::string(as_text(key.subspan(1)))] = mount;
    return {};
  }));
  return {};
}

// What is mounted by now, and of what was, what is away.
void MountedStore::look() {
  for (const auto& one : mounts_) mount_on_demand(root_ + "/" + one.first);
  const auto text = read_file(mounts_file_, kMostMountInfoBytes);
  const std::vector<std::string> listed =
      text ? mounts_below(root_, as_text(*text)) : std::vector<std::string>();
  for (const std::string& path : listed) mounts_.try_emplace(path);
  for (auto& [path, mount] : mounts_)
    mount.now = look_at(root_ + "/" + path, std::binary_search(listed.begin(), listed.end(), path),
                        text ? nullptr : &text.error());
}

// `why_unknown`: no list could be read.
MountedStore::Now MountedStore::look_at(const std::string& path, bool is_listed, const Error* why_unknown) {
  Now now;
  struct stat info {};
  const auto is_there = [&] {
    now.device = info.st_dev;
    now.inode = info.st_ino;
    return now;
  };
  if (::lstat(path.c_str(), &info) != 0) {
    now.is_something_else = errno == ENOENT || errno == ENOTDIR;
    if (!now.is_something_else) now.away = cannot_look_at(path, errno);
    return now;
  }
  if (!S_ISDIR(info.st_mode)) {
    now.is_something_else = !is_listed;
    return is_listed ? is_there() : now;
  }
  const Fd directory(::open(path.c_str(), kOpenDirectory));
  if (!directory) {
    // What is mounted and not for us to read the store itself tells of.
    if (is_listed && (errno == EACCES || errno == EPERM)) return is_there();
    now.away = cannot_look_at(path, errno);
    return now;
  }
  if (::fstat(directory.get(), &info) != 0) {  // by opening it, it may have become something else
    now.away = cannot_look_at(path, errno);
    return now;
  }
  if (is_listed) return is_there();
  const auto empty = is_empty(directory.get(), path);
  if (!empty)
    now.away = Error(ErrorCode::busy, empty.error().message() + kNothingIsGone);
  else if (*empty)
    now.away = why_unknown == nullptr ? not_mounted(path) : perhaps_not_mounted(path, *why_unknown);
  else if (why_unknown != nullptr)
    return is_there();
  else
    now.is_something_else = true;
  return now;
}

const Error* MountedStore::why_away(const std::string& path) const {
  for (const auto& [at, mount] : mounts_)
    if (mount.now.away && is_at_or_below(path, at)) return &*mount.now.away;
  return nullptr;
}

Result<std::vector<std::string>> MountedStore::folders(const OnSkipped& on_skipped) {
  look();
  KIN_TRY_ASSIGN(std::vector<std::string> out, store_->folders(on_skipped));
  std::erase_if(out, [&](const std::string& folder) { return why_away(folder) != nullptr; });
  KIN_TRY_ASSIGN(const auto known, replica_.folders());
  const std::vector<std::string> listed = out;
  for (const auto& [path, mount] : mounts_) {
    if (!mount.now.away) continue;
    on_skipped(path, *mount.now.away);
    // A kind of store may take a directory for a folder only for what is on the disk.
    for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      const std::string above = path.substr(0, end);
      const bool is_missed =
          known.contains(above) && !std::binary_search(listed.begin(), listed.end(), above);
      if (is_missed && Fd(::open((root_ + "/" + above).c_str(), kOpenDirectory))) out.push_back(above);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<void> MountedStore::scan(const std::string& folder, const OnEntry& on_entry,
                                const OnSkipped& on_skipped) {
  const auto as_mounted = [&](Entry entry) -> Result<void> {
    const auto found =
        entry.item.type == ItemType::directory ? mounts_.find(join_path(folder, entry.local)) : mounts_.end();
    if (found == mounts_.end()) return on_entry(std::move(entry));
    Mount& mount = found->second;
    if (!mount.now.away) {
      mount.last_look = {entry.fingerprint, entry.item.mode};
    } else if (!mount.last_look) {
      on_skipped(entry.local, *mount.now.away);
      return {};
    } else {
      entry.fingerprint = mount.last_look->fingerprint;
      entry.item.mode = mount.last_look->mode;
    }
    return on_entry(std::move(entry));
  };
  if (const Error* const away = why_away(folder)) return *away;
  KIN_TRY(mounts_.empty() ? store_->scan(folder, on_entry, on_skipped)
                          : store_->scan(folder, as_mounted, on_skipped));
  return check_same_mount(folder);
}

// It may have gone while it was looked at, and may have come back.
Result<void> MountedStore::check_same_mount(const std::string& folder) const {
  for (const auto& [path, mount] : mounts_) {
    if (mount.now.device == 0 || !is_at_or_below(folder, path)) continue;
    struct stat info {};
    if (::lstat((root_ + "/" + path).c_str(), &info) != 0 || info.st_dev != mount.now.device ||
        info.st_ino != mount.now.inode)
      return mounted_meanwhile(root_ + "/" + path);
  }
  return {};
}

std::vector<Result<Entry>> MountedStore::apply(std::vector<StoreChange> changes) {
  look();
  const auto why_not = [&](const StoreChange& change) -> const Error* {
    const bool is_message = change.item.type == ItemType::message;
    const std::string to = is_message ? change.item.folder : join_path(change.item.folder, change.item.name);
    const std::string from = is_message ? change.folder : join_path(change.folder, change.entry.local);
    if (const Error* const away = why_away(to)) return away;
    return change.kind == StoreChange::Kind::add ? nullptr : why_away(from);
  };
  std::vector<std::optional<Error>> refused;
  std::vector<StoreChange> possible;
  for (StoreChange& change : changes) {
    const Error* const away = why_not(change);
    refused.push_back(away != nullptr ? std::optional(*away) : std::nullopt);
    if (away == nullptr) possible.push_back(std::move(change));
  }
  std::vector<Result<Entry>> made = store_->apply(std::move(possible)), answers;
  auto next = made.begin();
  for (const std::optional<Error>& error : refused)
    answers.push_back(error ? Result<Entry>(*error) : std::move(*next++));
  return answers;
}

Result<void> MountedStore::remember() {
  // Below one that is away others may be, which cannot be looked at.
  std::erase_if(mounts_, [&](const auto& one) {
    return one.second.now.is_something_else && why_away(one.first) == nullptr;
  });
  const Bytes prefix{static_cast<std::uint8_t>(kNote)};
  std::vector<Bytes> old;
  KIN_TRY(replica_.for_each_note(prefix, [&](ByteView key, ByteView) -> Result<void> {
    if (!mounts_.contains(std::string(as_text(key.subspan(1))))) old.emplace_back(key.begin(), key.end());
    return {};
  }));
  for (const Bytes& key : old) replica_.set_note(key, std::nullopt);
  for (const auto& [path, mount] : mounts_) {
    Bytes key = prefix;
    append(key, as_bytes(path));
    const Look look = mount.last_look.value_or(Look{});  // inode 0: there is none
    WireWriter out;
    out.u64(look.fingerprint.inode);
    out.signed_varint(look.fingerprint.modified_ns);
    out.varint(look.mode & kAllModes);
    replica_.set_note(key, out.take());
  }
  return replica_.commit(true);
}

}  // namespace kin::sync

#include "lib/sync/mounted_store.h"

#include "lib/base/file.h"
#include "lib/sync/store_files.h"

#include <fmt/core.h>

#include <algorithm>
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

bool is_empty(const std::string& path) {
  const Fd directory(::open(path.c_str(), kOpenDirectory));
  if (!directory) return false;
  bool has_any = false;
  const auto listed = for_each_name(directory.get(), path, [&](std::string_view, unsigned char) {
    has_any = true;
    return false;
  });
  return listed && !has_any;
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
    Mount mount;
    mount.fingerprint.inode = in.u64();
    mount.fingerprint.modified_ns = in.signed_varint();
    mount.mode = static_cast<std::uint32_t>(in.varint_up_to(kAllModes));
    if (!in.failed()) mounts_[std::string(as_text(key.subspan(1)))] = mount;
    return {};
  }));
  return {};
}

// What is mounted by now, and of what was, what is away.
void MountedStore::look() {
  const auto text = read_file(mounts_file_, kMostMountInfoBytes);
  for (auto& [path, mount] : mounts_) mount.device = 0;
  for (const std::string& path : text ? mounts_below(root_, as_text(*text)) : std::vector<std::string>()) {
    struct stat info {};
    if (::lstat((root_ + "/" + path).c_str(), &info) != 0) continue;
    mounts_[path].device = info.st_dev;
    mounts_[path].inode = info.st_ino;
  }
  for (auto& [path, mount] : mounts_) mount.is_away = mount.device == 0 && is_empty(root_ + "/" + path);
}

const std::string* MountedStore::away_mount_of(const std::string& path) const {
  for (const auto& [at, mount] : mounts_)
    if (mount.is_away && is_at_or_below(path, at)) return &at;
  return nullptr;
}

Error MountedStore::not_mounted(const std::string& path) const {
  return Error(ErrorCode::busy,
               fmt::format("{} was on another disk, and is empty: is that mounted? (nothing of it counts as "
                           "deleted, unless the directory is deleted too)",
                           printable(root_ + "/" + path)));
}

Result<std::vector<std::string>> MountedStore::folders(const OnSkipped& on_skipped) {
  look();
  KIN_TRY_ASSIGN(std::vector<std::string> out, store_->folders(on_skipped));
  std::erase_if(out, [&](const std::string& folder) { return away_mount_of(folder) != nullptr; });
  for (const auto& [path, mount] : mounts_)
    if (mount.is_away) on_skipped(path, not_mounted(path));
  return out;
}

Result<void> MountedStore::scan(const std::string& folder, const OnEntry& on_entry,
                                const OnSkipped& on_skipped) {
  const auto as_mounted = [&](Entry entry) -> Result<void> {
    const auto mount =
        entry.item.type == ItemType::directory ? mounts_.find(join_path(folder, entry.local)) : mounts_.end();
    if (mount != mounts_.end() && mount->second.is_away) {
      entry.fingerprint = mount->second.fingerprint;
      entry.item.mode = mount->second.mode;
    } else if (mount != mounts_.end()) {
      mount->second.fingerprint = entry.fingerprint;
      mount->second.mode = entry.item.mode;
    }
    return on_entry(std::move(entry));
  };
  KIN_TRY(mounts_.empty() ? store_->scan(folder, on_entry, on_skipped)
                          : store_->scan(folder, as_mounted, on_skipped));
  // It may have gone while it was looked at.
  for (const auto& [path, mount] : mounts_) {
    if (mount.device == 0 || !is_at_or_below(folder, path)) continue;
    struct stat info {};
    if (::lstat((root_ + "/" + path).c_str(), &info) != 0 || info.st_dev != mount.device ||
        info.st_ino != mount.inode)
      return not_mounted(path);
  }
  return {};
}

std::vector<Result<Entry>> MountedStore::apply(std::vector<StoreChange> changes) {
  look();
  const auto why_not = [&](const StoreChange& change) -> const std::string* {
    const bool is_message = change.item.type == ItemType::message;
    const std::string to = is_message ? change.item.folder : join_path(change.item.folder, change.item.name);
    const std::string from = is_message ? change.folder : join_path(change.folder, change.entry.local);
    if (const std::string* const away = away_mount_of(to)) return away;
    return change.kind == StoreChange::Kind::add ? nullptr : away_mount_of(from);
  };
  std::vector<std::optional<Error>> refused;
  std::vector<StoreChange> possible;
  for (StoreChange& change : changes) {
    const std::string* const away = why_not(change);
    refused.push_back(away != nullptr ? std::optional(not_mounted(*away)) : std::nullopt);
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
    return one.second.device == 0 && away_mount_of(one.first) == nullptr;
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
    WireWriter out;
    out.u64(mount.fingerprint.inode);
    out.signed_varint(mount.fingerprint.modified_ns);
    out.varint(mount.mode & kAllModes);
    replica_.set_note(key, out.take());
  }
  return replica_.commit(true);
}

}  // namespace kin::sync

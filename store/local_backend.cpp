#include "store/local_backend.h"

#include "lib/base/text.h"

#include <fmt/core.h>

#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::store {
namespace {

constexpr std::size_t kReserveBytes = 8 << 20;
// Larger than any file that kin writes.
constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30;

std::string_view folder_of(FileKind kind) {
  switch (kind) {
    case FileKind::config:
      return "";
    case FileKind::key:
      return "keys";
    case FileKind::pack:
      return "packs";
    case FileKind::index:
      return "index";
    case FileKind::snapshot:
      return "snapshots";
  }
  return "";
}

bool is_small_and_vital(FileKind kind) { return kind != FileKind::pack; }

Result<void> sync_directory(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return {};  // nothing was ever written there
  if (!fd) return errno_error("cannot open", path);
  // Some network file systems cannot flush a directory and say so with EINVAL; there is nothing more that we
  // could do.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_error("cannot flush", path);
  return {};
}

Result<void> list_folder(const std::string& path, std::vector<FileInfo>& out) {
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) {
    if (errno == ENOENT) return {};
    return errno_error("cannot list", path);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(directory, ::closedir);
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(directory);
    if (entry == nullptr && errno != 0) return errno_error("cannot list", path);
    if (entry == nullptr) return {};
    struct stat info {};
    if (!is_file_name(entry->d_name) || ::fstatat(::dirfd(directory), entry->d_name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    out.push_back({entry->d_name, static_cast<std::uint64_t>(info.st_size)});
  }
}

}  // namespace

LocalBackend::LocalBackend(std::string directory) : directory_(std::move(directory)) {}

LocalBackend::~LocalBackend() {
  std::error_code ignored;
  MutexLock lock(mutex_);
  if (!own_temporary_.empty()) std::filesystem::remove_all(own_temporary_, ignored);
}

std::string LocalBackend::path_of(const FileName& name) const {
  if (name.kind == FileKind::config) return directory_ + "/config";
  if (name.kind == FileKind::pack)
    return fmt::format("{}/packs/{}/{}", directory_, name.name.substr(0, 2), name.name);
  return fmt::format("{}/{}/{}", directory_, folder_of(name.kind), name.name);
}

Result<void> LocalBackend::prepare_to_write() {
  if (prepared_) return {};
  for (const FileKind kind : kAllFileKinds)
    KIN_TRY(make_directories(fmt::format("{}/{}", directory_, folder_of(kind)), 0700));
  KIN_TRY(make_directories(directory_ + "/tmp", 0700));
  sweep_temporary_files();
  KIN_TRY(make_own_temporary());
  make_reserve();
  prepared_ = true;
  return {};
}

Result<void> LocalBackend::make_own_temporary() {
  for (;;) {
    std::string path = directory_ + "/tmp/XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error("cannot make a directory in", directory_ + "/tmp");
    // The lock is held until the process ends, however it ends: this is how a sweeper knows that the folder
    // is in use.
    Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    const bool locked =
        lock && ::flock(lock.get(), LOCK_EX) == 0 && ::fstat(lock.get(), &info) == 0 && info.st_nlink > 0;
    if (!locked && ::access(path.c_str(), F_OK) != 0)
      continue;  // a sweeper came in between; it will not come again so soon
    own_temporary_ = std::move(path);
    own_lock_ = std::move(lock);
    return {};
  }
}

void LocalBackend::sweep_temporary_files() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/tmp", ignored)) {
    const Fd folder(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

void LocalBackend::make_reserve() {
  const std::string path = directory_ + "/reserve";
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && info.st_size == static_cast<off_t>(kReserveBytes)) return;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // No room for it, or a file system that cannot reserve: then there is none, and nothing depends on it.
  if (fd && ::fallocate(fd.get(), 0, 0, kReserveBytes) != 0) ::unlink(path.c_str());
}

Result<LocalBackend::Pending> LocalBackend::write_temporary(ByteView bytes) {
  Pending pending;
  pending.temporary_path = fmt::format("{}/{}", own_temporary_, next_temporary_++);
  pending.fd = Fd(::open(pending.temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!pending.fd) return errno_error("cannot create", pending.temporary_path);
  if (auto written = write_all(pending.fd.get(), bytes, pending.temporary_path); !written) {
    ::unlink(pending.temporary_path.c_str());
    return std::move(written).error();
  }
  // Starts the disk now, so that the flush in sync() finds little left to do.
  ::sync_file_range(pending.fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  return pending;
}

Result<void> LocalBackend::put(const FileName& name, ByteView bytes) {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  KIN_TRY(prepare_to_write());
  Result<Pending> pending = write_temporary(bytes);
  const bool full = !pending && pending.error().code() == ErrorCode::no_space;
  if (full && is_small_and_vital(name.kind) && ::unlink((directory_ + "/reserve").c_str()) == 0)
    pending = write_temporary(bytes);
  if (!pending) return std::move(pending).error().context(name.text());
  Pending& entry = pending_[name];
  if (!entry.temporary_path.empty()) ::unlink(entry.temporary_path.c_str());
  entry = *std::move(pending);
  return {};
}

Result<void> LocalBackend::sync() {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  std::set<std::string> folders;
  for (auto& [name, pending] : pending_) {
    if (!pending.fd) continue;  // flushed by a sync that failed later
    if (::fsync(pending.fd.get()) != 0) {
      broken_ = errno_error("cannot flush", pending.temporary_path).context(name.text());
      return *broken_;
    }
    KIN_TRY(pending.fd.close(pending.temporary_path));
  }
  while (!pending_.empty()) {
    const auto& [name, pending] = *pending_.begin();
    const std::string path = path_of(name);
    const std::string folder = path.substr(0, path.rfind('/'));
    if (folders.insert(folder).second && ::mkdir(folder.c_str(), 0700) == 0)
      folders.insert(folder.substr(0, folder.rfind('/')));
    // A file of this name that another process wrote meanwhile has the same content.
    if (::rename(pending.temporary_path.c_str(), path.c_str()) != 0)
      return errno_error("cannot create", path);
    pending_.erase(pending_.begin());
  }
  for (const std::string& folder : folders) KIN_TRY(sync_directory(folder));
  return {};
}

Result<Fd> LocalBackend::open_file(const FileName& name) {
  MutexLock lock(mutex_);
  const auto pending = pending_.find(name);
  const std::string path = pending == pending_.end() ? path_of(name) : pending->second.temporary_path;
  // A FIFO in its place would make us wait for ever.
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return errno_error("cannot open", path).context(name.text());
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", name.text());
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > kMostFileBytes)
    return Error(ErrorCode::corrupt, name.text() + " is not a file that kin wrote");
  return fd;
}

Result<Bytes> LocalBackend::get(const FileName& name) {
  KIN_TRY_ASSIGN(const Fd fd, open_file(name));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", name.text());
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > kMostFileBytes)
    return Error(ErrorCode::corrupt, name.text() + " is not a file that kin wrote");
  Bytes out(static_cast<std::size_t>(info.st_size));
  KIN_TRY_ASSIGN(const std::size_t n, read_up_to(fd.get(), out, name.text()));
  out.resize(n);
  return out;
}

Result<Bytes> LocalBackend::get_range(const FileName& name, std::uint64_t offset, std::size_t size) {
  KIN_TRY_ASSIGN(const Fd fd, open_file(name));
  const Error cut_short(ErrorCode::corrupt, fmt::format("{} is cut short: it ends before {} bytes at {}",
                                                        name.text(), size, offset));
  if (offset > kMostFileBytes || size > kMostFileBytes) return cut_short;
  Bytes out(size);
  KIN_TRY_ASSIGN(const std::size_t n, read_up_to_at(fd.get(), out, offset, name.text()));
  if (n < size) return cut_short;
  return out;
}

Result<std::vector<FileInfo>> LocalBackend::list(FileKind kind) {
  std::vector<FileInfo> out;
  const std::string folder = fmt::format("{}/{}", directory_, folder_of(kind));
  if (kind != FileKind::pack) {
    KIN_TRY(list_folder(folder, out));
    return out;
  }
  for (int prefix = 0; prefix < 256; ++prefix)
    KIN_TRY(list_folder(fmt::format("{}/{:02x}", folder, prefix), out));
  return out;
}

Result<void> LocalBackend::remove(const FileName& name) {
  MutexLock lock(mutex_);
  if (const auto pending = pending_.find(name); pending != pending_.end()) {
    ::unlink(pending->second.temporary_path.c_str());
    pending_.erase(pending);
  }
  const std::string path = path_of(name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("cannot remove", path);
  return sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace kin::store

#include "store/local_backend.h"

#include "lib/base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kin::store {
namespace {

// Room for some snapshots and the folders they need. A segment that does not fit costs the next writer a look
// at the packs.
constexpr std::size_t kReserveBytes = 64 << 10;
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
    case FileKind::forgotten:
      return "forgotten";
    case FileKind::mark:
      return "marks";
    case FileKind::parity:
      return "parity";
  }
  return "";
}

bool is_small_and_vital(FileKind kind) { return kind != FileKind::pack && kind != FileKind::parity; }

// What a damaged repository has in a file's or a folder's place: a loop of links, a file in the path, a
// socket.
bool is_damage(int error_number) {
  return error_number == ELOOP || error_number == ENOTDIR || error_number == EISDIR || error_number == ENXIO;
}

// While writing, a folder that is gone is a failure like others, not something that the user named wrongly.
Error write_error(std::string_view doing, std::string_view path) {
  const Error error = errno_error(doing, path);
  return error.code() == ErrorCode::not_found ? Error(ErrorCode::io, error.message()) : error;
}

Result<void> sync_directory(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return {};  // nothing was ever written there
  if (!fd) return errno_error("cannot open", path);
  // Some network file systems cannot flush a directory and say so with EINVAL; there is nothing more that we
  // could do.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_error("cannot flush", path);
  return {};
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<void> list_folder(const std::string& path, std::map<std::string, std::uint64_t>& sizes) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    if (errno == ENOENT) return {};
    if (is_damage(errno)) return Error(ErrorCode::corrupt, printable(path) + " is not a folder");
    return errno_error("cannot list", path);
  }
  KIN_TRY_ASSIGN(const std::vector<std::string> names, list_directory(folder.get(), path));
  for (const std::string& name : names) {
    if (!is_file_name(name)) continue;
    struct stat info {};
    const bool found = ::fstatat(folder.get(), name.c_str(), &info, 0) == 0;
    // Removed since it was listed. A link to nowhere is not: it stands where a file should.
    if (!found && ::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
      continue;
    const bool readable = found && S_ISREG(info.st_mode);
    sizes[name] = readable ? static_cast<std::uint64_t>(info.st_size) : 0;
  }
  return {};
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
  if (!gave_up_reserve_) make_reserve();
  prepared_ = true;
  return {};
}

Result<void> LocalBackend::make_own_temporary() {
  for (int tries = 0; tries < 100; ++tries) {
    std::string path = directory_ + "/tmp/XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return write_error("cannot make a directory in", directory_ + "/tmp");
    // The lock is held until the process ends, however it ends: this is how a sweeper knows that the folder
    // is in use. A file system without locks has no sweepers either.
    Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock && errno != ENOENT) return errno_error("cannot open", path);
    while (lock && ::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    // Did a sweeper come in between? Link counts do not tell: not every file system keeps those of folders.
    struct stat held {};
    struct stat named {};
    if (!lock || ::fstat(lock.get(), &held) != 0 || ::stat(path.c_str(), &named) != 0 ||
        !same_file(held, named))
      continue;  // it will not come again so soon
    own_temporary_ = std::move(path);
    own_lock_ = std::move(lock);
    return {};
  }
  return Error(ErrorCode::io, fmt::format("cannot keep a directory in {}: someone removes them",
                                          printable(directory_ + "/tmp")));
}

void LocalBackend::sweep_temporary_files() {
  const std::string parent = directory_ + "/tmp";
  const Fd all(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!all) return;
  const auto names = list_directory(all.get(), parent);
  if (!names) return;  // a later writer will
  for (const std::string& name : *names) {
    std::error_code ignored;
    const std::string path = fmt::format("{}/{}", parent, name);
    const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(path, ignored);
  }
}

void LocalBackend::make_reserve() {
  const std::string path = directory_ + "/reserve";
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && info.st_size == static_cast<off_t>(kReserveBytes)) return;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // No room for it, or a file system that cannot reserve: then there is none, and nothing depends on it.
  // Earlier versions had a larger one.
  if (fd && (::ftruncate(fd.get(), kReserveBytes) != 0 || ::fallocate(fd.get(), 0, 0, kReserveBytes) != 0))
    ::unlink(path.c_str());
}

Result<LocalBackend::Pending> LocalBackend::make_temporary() {
  KIN_TRY(prepare_to_write());
  Pending pending;
  pending.temporary_path = fmt::format("{}/{}", own_temporary_, next_temporary_++);
  pending.fd = Fd(::open(pending.temporary_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!pending.fd) return write_error("cannot create", pending.temporary_path);
  return pending;
}

Result<LocalBackend::Pending> LocalBackend::write_temporary(ByteView bytes) {
  KIN_TRY_ASSIGN(Pending pending, make_temporary());
  if (auto written = write_all(pending.fd.get(), bytes, pending.temporary_path); !written) {
    ::unlink(pending.temporary_path.c_str());
    return std::move(written).error();
  }
  pending.size = bytes.size();
  return pending;
}

void LocalBackend::keep(const FileName& name, Pending pending) {
  // Starts the disk now, so that the flush in sync() finds little left to do.
  ::sync_file_range(pending.fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  Pending& entry = pending_[name];
  if (!entry.temporary_path.empty()) ::unlink(entry.temporary_path.c_str());
  entry = std::move(pending);
  entry.order = next_temporary_++;
}

bool LocalBackend::give_up_reserve() {
  gave_up_reserve_ = true;
  return ::unlink((directory_ + "/reserve").c_str()) == 0;
}

Result<void> LocalBackend::put(const FileName& name, ByteView bytes) {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  Result<Pending> pending = write_temporary(bytes);
  const bool full = !pending && pending.error().code() == ErrorCode::no_space;
  if (full && is_small_and_vital(name.kind) && give_up_reserve()) pending = write_temporary(bytes);
  if (!pending) return std::move(pending).error().context(name.text());
  keep(name, *std::move(pending));
  return {};
}

// In a temporary file from the start. Writing is left to the system's cache, as with put().
class LocalDraft : public Draft {
 public:
  LocalDraft(LocalBackend& backend, LocalBackend::Pending file) : backend_(backend), file_(std::move(file)) {}
  ~LocalDraft() override {
    if (file_.fd) ::unlink(file_.temporary_path.c_str());
  }

  Result<void> append(ByteView bytes) override {
    if (auto written = write_all_at(file_.fd.get(), bytes, file_.size, file_.temporary_path); !written) {
      // The room that a part of it has taken may be what others need now; who cannot have it back writes over
      // it.
      [[maybe_unused]] const int cut = ::ftruncate(file_.fd.get(), static_cast<off_t>(file_.size));
      return std::move(written).error();
    }
    file_.size += bytes.size();
    return {};
  }

  Result<Bytes> get_range(std::uint64_t offset, std::size_t size) override {
    const Error cut_short(ErrorCode::corrupt, printable(file_.temporary_path) + " is cut short");
    if (offset > file_.size || size > file_.size - offset) return cut_short;
    Bytes out(size);
    KIN_TRY_ASSIGN(const std::size_t n, read_up_to_at(file_.fd.get(), out, offset, file_.temporary_path));
    if (n < size) return cut_short;
    return out;
  }

  Result<void> put(const FileName& name) override {
    MutexLock lock(backend_.mutex_);
    if (backend_.broken_) return *backend_.broken_;
    // What an append that failed may have left behind the end.
    if (::ftruncate(file_.fd.get(), static_cast<off_t>(file_.size)) != 0)
      return write_error("cannot write", file_.temporary_path).context(name.text());
    backend_.keep(name, std::move(file_));
    return {};
  }

 private:
  LocalBackend& backend_;
  LocalBackend::Pending file_;
};

Result<std::unique_ptr<Draft>> LocalBackend::begin() {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  KIN_TRY_ASSIGN(Pending file, make_temporary());
  return std::unique_ptr<Draft>(std::make_unique<LocalDraft>(*this, std::move(file)));
}

Result<void> LocalBackend::move_into_place(const FileName& name, const Pending& pending) {
  const std::string path = path_of(name);
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return write_error("cannot make directory", folder);
  // Who made it, another process perhaps, need not have flushed its name yet.
  if (folder != directory_ && used_folders_.insert(folder).second)
    unflushed_folders_.insert(folder.substr(0, folder.rfind('/')));
  // A file of this name that another process wrote meanwhile has the same content. A directory there is none
  // of ours, and no loss if it is empty.
  const char* const from = pending.temporary_path.c_str();
  if (::rename(from, path.c_str()) != 0 &&
      (errno != EISDIR || ::rmdir(path.c_str()) != 0 || ::rename(from, path.c_str()) != 0))
    return write_error("cannot create", path);
  unflushed_folders_.insert(folder);
  return {};
}

Result<void> LocalBackend::sync() {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  for (auto& [name, pending] : pending_) {
    if (!pending.fd) continue;  // flushed by a sync that failed later
    if (::fsync(pending.fd.get()) != 0) {
      broken_ = errno_error("cannot flush", pending.temporary_path).context(name.text());
      return *broken_;
    }
    KIN_TRY(pending.fd.close(pending.temporary_path));
  }
  // In the order in which they were put, so that what a crash leaves leans on little that is gone.
  std::vector<std::map<FileName, Pending>::iterator> in_order;
  for (auto at = pending_.begin(); at != pending_.end(); ++at) in_order.push_back(at);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a->second.order < b->second.order; });
  for (const auto& at : in_order) {
    const auto& [name, pending] = *at;
    auto moved = move_into_place(name, pending);
    // A name may need room, too.
    if (!moved && moved.error().code() == ErrorCode::no_space && give_up_reserve())
      moved = move_into_place(name, pending);
    if (!moved) return std::move(moved).error().context(name.text());
    pending_.erase(at);
  }
  return flush_folders();
}

Result<void> LocalBackend::put_durably(const FileName& name, ByteView bytes) {
  MutexLock lock(mutex_);
  if (broken_) return *broken_;
  Result<Pending> file = write_temporary(bytes);
  if (!file) return std::move(file).error().context(name.text());
  const auto put = [&]() KIN_REQUIRES(mutex_) -> Result<void> {
    // Nobody counts on it yet, so that its failure says nothing of others.
    if (::fsync(file->fd.get()) != 0) return errno_error("cannot flush", file->temporary_path);
    KIN_TRY(file->fd.close(file->temporary_path));
    return move_into_place(name, *file);
  };
  if (auto done = put(); !done) {
    ::unlink(file->temporary_path.c_str());
    return std::move(done).error().context(name.text());
  }
  return flush_folders();
}

Result<void> LocalBackend::flush_folders() {
  while (!unflushed_folders_.empty()) {
    if (auto flushed = sync_directory(*unflushed_folders_.begin()); !flushed) {
      broken_ = std::move(flushed).error();
      return *broken_;
    }
    unflushed_folders_.erase(unflushed_folders_.begin());
  }
  return {};
}

Result<Fd> LocalBackend::open_file(const FileName& name) {
  MutexLock lock(mutex_);
  const auto pending = pending_.find(name);
  const std::string path = pending == pending_.end() ? path_of(name) : pending->second.temporary_path;
  const Error not_ours(ErrorCode::corrupt, name.text() + " is not a file that kin wrote");
  // A FIFO in its place would make us wait for ever.
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd) {
    const int error_number = errno;
    // Below something that is no folder there is no config: the place was never a repository.
    if (error_number == ENOTDIR && name.kind == FileKind::config)
      return errno_error("cannot open", path, ENOENT).context(name.text());
    // A link to nowhere stands where a file should. A file there has come since.
    if (is_damage(error_number) ||
        (error_number == ENOENT && ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)))
      return not_ours;
    return errno_error("cannot open", path, error_number).context(name.text());
  }
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", name.text());
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > kMostFileBytes) return not_ours;
  return fd;
}

Result<Bytes> LocalBackend::get(const FileName& name) {
  KIN_TRY_ASSIGN(const Fd fd, open_file(name));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", name.text());
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
  if (kind == FileKind::config) return std::vector<FileInfo>();
  // Our own first: what another thread syncs meanwhile is then seen in one place or in both, never in none.
  std::map<std::string, std::uint64_t> own, sizes;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, pending] : pending_)
      if (name.kind == kind && is_file_name(name.name)) own[name.name] = pending.size;
  }
  const std::string folder = fmt::format("{}/{}", directory_, folder_of(kind));
  if (kind != FileKind::pack) KIN_TRY(list_folder(folder, sizes));
  for (int prefix = 0; kind == FileKind::pack && prefix < 256; ++prefix)
    KIN_TRY(list_folder(fmt::format("{}/{:02x}", folder, prefix), sizes));
  for (const auto& [name, size] : own) sizes[name] = size;
  std::vector<FileInfo> out;
  for (const auto& [name, size] : sizes) out.push_back({name, size});
  return out;
}

Result<void> LocalBackend::remove(const FileName& name) {
  MutexLock lock(mutex_);
  if (const auto pending = pending_.find(name); pending != pending_.end()) {
    ::unlink(pending->second.temporary_path.c_str());
    pending_.erase(pending);
  }
  const std::string path = path_of(name);
  // Not unlink: an empty folder in the file's place goes, too.
  if (std::remove(path.c_str()) != 0 && errno != ENOENT) return errno_error("cannot remove", path);
  return sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace kin::store

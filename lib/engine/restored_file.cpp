#include "lib/engine/restored_file.h"

#include "lib/engine/node_io.h"
#include "lib/engine/target_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace kin {
namespace {

constexpr std::size_t kHoleBytes = 4096;

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

RestoredFile::RestoredFile(std::shared_ptr<const Fd> directory, Node node, std::string path, bool sparse)
    : directory_(std::move(directory)), node_(std::move(node)), path_(std::move(path)), sparse_(sparse) {}

RestoredFile::~RestoredFile() {
  MutexLock lock(mutex_);
  if (fd_ && !finished) ::unlinkat(directory_->get(), written_name_.c_str(), 0);
}

Result<void> RestoredFile::open() {
  if (fd_) return {};
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  written_name_ = node_.name;
  fd_ = Fd(::openat(directory_->get(), written_name_.c_str(), kFlags, 0600));
  for (int attempt = 0; !fd_ && errno == EEXIST && attempt < 100; ++attempt) {
    written_name_ = temporary_name(node_.inode + static_cast<std::uint64_t>(attempt) + 1);
    fd_ = Fd(::openat(directory_->get(), written_name_.c_str(), kFlags, 0600));
  }
  if (!fd_) return errno_error("cannot create", path_);
  return {};
}

Result<void> RestoredFile::write(ByteView bytes, std::uint64_t offset) {
  int fd;
  {
    MutexLock lock(mutex_);
    KIN_TRY(open());
    fd = fd_.get();
  }
  if (!sparse_) return write_all_at(fd, bytes, offset, path_);
  while (!bytes.empty()) {
    // Pieces end where the file's pages do, so that what is left out becomes a hole.
    const std::size_t size = std::min<std::size_t>(bytes.size(), kHoleBytes - offset % kHoleBytes);
    if (!all_zero(bytes.first(size))) KIN_TRY(write_all_at(fd, bytes.first(size), offset, path_));
    bytes = bytes.subspan(size);
    offset += size;
  }
  return {};
}

Result<void> RestoredFile::finish(const std::function<Result<void>(const Fd&)>& prove,
                                  const std::function<Result<void>()>& make_room) {
  MutexLock lock(mutex_);
  KIN_TRY(open());
  const bool holes =
      sparse_ || std::any_of(node_.content.begin(), node_.content.end(), [](const Extent& extent) {
        return extent.kind == Extent::Kind::hole || extent.kind == Extent::Kind::list;
      });
  if (holes && ::ftruncate(fd_.get(), static_cast<off_t>(node_.size)) != 0)
    return errno_error("cannot set the size of", path_);
  if (prove) KIN_TRY(prove(fd_));
  // The new file has the node's name before its metadata is set, or a read-only directory's sticky bit could
  // keep it from being renamed.
  if (written_name_ != node_.name &&
      ::renameat(directory_->get(), written_name_.c_str(), directory_->get(), node_.name.c_str()) != 0) {
    if (errno != EISDIR) return errno_error("cannot replace", path_);
    KIN_TRY(make_room());
    if (::renameat(directory_->get(), written_name_.c_str(), directory_->get(), node_.name.c_str()) != 0)
      return errno_error("cannot replace", path_);
  }
  written_name_ = node_.name;
  finished = true;
  KIN_TRY(apply_metadata(directory_->get(), node_.name, node_));
  return fd_.close(path_);
}

}  // namespace kin

#include "lib/delta/file_vcdiff_base.h"

#include "lib/base/text.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

namespace kin {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
constexpr std::size_t kMostBlocks = 66;  // 64 MiB, where they begin within a block, and the one ahead

}  // namespace

Result<std::unique_ptr<FileVcdiffBase>> FileVcdiffBase::open(const std::string& path) {
  // Not waiting for a writer of what may be a FIFO.
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return errno_error("cannot open", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("cannot read", path);
  if (!S_ISREG(info.st_mode))
    return Error(ErrorCode::invalid_argument,
                 printable(path) + " cannot be a base: that must be a regular file");
  return std::unique_ptr<FileVcdiffBase>(
      new FileVcdiffBase(std::move(fd), path, static_cast<std::uint64_t>(info.st_size)));
}

std::size_t FileVcdiffBase::block_size() const { return kBlockBytes; }

Result<ByteView> FileVcdiffBase::block(std::uint64_t number) {
  if (number > size_ / kBlockBytes) return ByteView();
  const auto found = std::ranges::find(blocks_, number, &Block::number);
  if (found != blocks_.end()) {
    found->last_use = ++uses_;
    return ByteView(found->bytes);
  }
  const std::uint64_t offset = number * kBlockBytes;
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size_ - offset));
  if (blocks_.size() < kMostBlocks) blocks_.emplace_back();
  Block& block = *std::ranges::min_element(blocks_, {}, &Block::last_use);
  block.number = kNoBlock;  // until it is read
  block.bytes.resize(wanted);
  KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(fd_.get(), block.bytes, offset, path_));
  // The library relies on the size that it was told.
  if (got != wanted) return Error(ErrorCode::io, printable(path_) + " became shorter while it was read");
  block.number = number;
  block.last_use = ++uses_;
  return ByteView(block.bytes);
}

}  // namespace kin

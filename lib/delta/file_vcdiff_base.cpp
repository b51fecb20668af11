#include "lib/delta/file_vcdiff_base.h"

#include "lib/base/text.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

namespace kin {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;
// 64 MiB, where they begin within a block, and the one ahead. Below 256, for places_.
constexpr std::size_t kMostBlocks = 66;

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

FileVcdiffBase::FileVcdiffBase(Fd fd, std::string path, std::uint64_t size)
    : fd_(std::move(fd)), path_(std::move(path)), size_(size), places_(size / kBlockBytes + 1) {}

std::size_t FileVcdiffBase::block_size() const { return kBlockBytes; }

Result<ByteView> FileVcdiffBase::block(std::uint64_t number) {
  if (number >= places_.size()) return ByteView();
  if (const std::size_t place = places_[number]; place > 0) {
    Block& found = blocks_[place - 1];
    found.last_use = ++uses_;
    return ByteView(found.bytes);
  }
  if (blocks_.size() < kMostBlocks) blocks_.emplace_back();
  const auto oldest = std::ranges::min_element(blocks_, {}, &Block::last_use);
  if (oldest->last_use > 0) places_[oldest->number] = 0;
  oldest->last_use = 0;  // until it is read
  const std::uint64_t offset = number * kBlockBytes;
  oldest->bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size_ - offset)));
  KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(fd_.get(), oldest->bytes, offset, path_));
  // The library relies on the size that it was told.
  if (got != oldest->bytes.size())
    return Error(ErrorCode::io, printable(path_) + " became shorter while it was read");
  oldest->number = number;
  oldest->last_use = ++uses_;
  places_[number] = static_cast<std::uint8_t>(oldest - blocks_.begin() + 1);
  return ByteView(oldest->bytes);
}

}  // namespace kin

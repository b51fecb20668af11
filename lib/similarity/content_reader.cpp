#include "lib/similarity/content_reader.h"

#include "lib/base/check.h"
#include "lib/base/text.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

namespace kin {
namespace {

const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

Error not_a_file(const std::string& path, mode_t mode) {
  return Error(ErrorCode::invalid_argument,
               printable(path) + " is " + kind_of_file(mode) + ", and only files are compared");
}

}  // namespace

Result<std::unique_ptr<FileContent>> FileContent::open(const std::string& path, std::stop_token stop) {
  // First by its name alone: to open a FIFO waits for a writer, and a tape rewinds.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_error("cannot open", path);
  if (!S_ISREG(info.st_mode)) return not_a_file(path, info.st_mode);
  return open_with(path, 0, std::move(stop));
}

Result<std::unique_ptr<FileContent>> FileContent::open_found(const std::string& path, std::stop_token stop) {
  return open_with(path, O_NOFOLLOW, std::move(stop));
}

Result<std::unique_ptr<FileContent>> FileContent::open_with(const std::string& path, int flags,
                                                            std::stop_token stop) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno_error("cannot open", path);
  if (!S_ISREG(info.st_mode)) return not_a_file(path, info.st_mode);  // it was replaced meanwhile
  return std::unique_ptr<FileContent>(
      new FileContent(std::move(fd), path, static_cast<std::uint64_t>(info.st_size), std::move(stop)));
}

Result<std::size_t> FileContent::read_at(std::uint64_t offset, std::span<std::uint8_t> into) {
  if (stop_.stop_requested()) return interrupted();
  return read_up_to_at(fd_.get(), into, offset, path_);
}

Result<std::size_t> MemoryContent::read_at(std::uint64_t offset, std::span<std::uint8_t> into) {
  if (offset >= bytes_.size()) return std::size_t{0};
  const ByteView from = bytes_.subspan(static_cast<std::size_t>(offset));
  const std::size_t size = std::min(from.size(), into.size());
  std::copy_n(from.begin(), size, into.begin());
  return size;
}

Result<void> for_each_piece(ContentReader& content, std::size_t overlap, const VisitPiece& visit) {
  KIN_CHECK(overlap < kContentPieceBytes);
  // Small files are most files: they get a small buffer. One more byte than they have shows that they end.
  Bytes buffer(static_cast<std::size_t>(
      std::clamp<std::uint64_t>(content.size() + 1, overlap + 4096, kContentPieceBytes)));
  std::uint64_t offset = 0;
  std::size_t kept = 0;
  for (;;) {
    KIN_TRY_ASSIGN(const std::size_t read, content.read_at(offset + kept, std::span(buffer).subspan(kept)));
    if (read == 0) return {};
    visit(ByteView(buffer).first(kept + read), offset);
    if (kept + read < buffer.size()) return {};
    const std::size_t keep = std::min(overlap, kept + read);
    std::copy_n(buffer.end() - static_cast<std::ptrdiff_t>(keep), keep, buffer.begin());
    offset += kept + read - keep;
    kept = keep;
  }
}

}  // namespace kin

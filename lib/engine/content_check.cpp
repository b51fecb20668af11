#include "lib/engine/content_check.h"

#include "lib/container/content_source.h"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace kin {
namespace {

constexpr std::uint64_t kStepBytes = 256 << 10;

// Reads only what the file system does not know to be a hole.
Result<bool> is_zero(int fd, std::uint64_t offset, std::uint64_t size, const std::string& path,
                     const std::stop_token& stop) {
  Bytes buffer;
  for (const std::uint64_t end = offset + size; offset < end;) {
    if (stop.stop_requested()) return interrupted();
    const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return true;  // only a hole is left
    if (data >= 0) offset = static_cast<std::uint64_t>(data);
    if (offset >= end) return true;
    buffer.resize(static_cast<std::size_t>(std::min(kStepBytes, end - offset)));
    KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(fd, buffer, offset, path));
    if (got < buffer.size() ||
        std::any_of(buffer.begin(), buffer.end(), [](std::uint8_t b) { return b != 0; }))
      return false;
    offset += got;
  }
  return true;
}

// Whether these bytes of the file are what the container's recipe gives.
Result<bool> has_container(BlockStore& store, const Formats& formats, const Extent& extent, int fd,
                           std::uint64_t offset, const std::string& path, const std::stop_token& stop) {
  ContentSource source(store, formats, {extent});
  Bytes wanted(static_cast<std::size_t>(kStepBytes)), buffer(wanted.size());
  for (;;) {
    if (stop.stop_requested()) return interrupted();
    KIN_TRY_ASSIGN(const std::size_t size, source.read(wanted));
    KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(fd, std::span(buffer).first(size), offset, path));
    if (!equal(ByteView(wanted).first(size), ByteView(buffer).first(got))) return false;
    offset += size;
    if (size < wanted.size()) return true;
  }
}

}  // namespace

Result<bool> has_content(BlockStore& store, const Formats& formats, const Fd& file, const std::string& path,
                         const Node& node, const std::stop_token& stop) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_error("cannot read", path);
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) != node.size) return false;
  bool same = true;
  KIN_TRY(for_each_extent(
      store, node.content,
      [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
        if (!same) return {};
        if (stop.stop_requested()) return interrupted();
        if (extent.kind == Extent::Kind::hole) {
          KIN_TRY_ASSIGN(same, is_zero(file.get(), offset, extent.size, path, stop));
          return {};
        }
        if (extent.kind == Extent::Kind::container) {
          KIN_TRY_ASSIGN(same, has_container(store, formats, extent, file.get(), offset, path, stop));
          return {};
        }
        if (extent.size > kMostBlockBytes)
          return Error(ErrorCode::corrupt, "object " + extent.id.short_hex() + " is larger than kin stores");
        Bytes bytes(static_cast<std::size_t>(extent.size));
        KIN_TRY_ASSIGN(const std::size_t got, read_up_to_at(file.get(), bytes, offset, path));
        same = got == bytes.size() && store.id_of(bytes) == extent.id;
        return {};
      },
      [&](const ObjectId&) { return same; }));
  return same;
}

}  // namespace kin

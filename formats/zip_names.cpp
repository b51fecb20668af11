#include "formats/zip_names.h"

#include "formats/fields.h"
#include "lib/base/file.h"

#include <algorithm>
#include <optional>

namespace kin::formats {
namespace {

constexpr std::string_view kLocal = "PK\x03\x04", kCentral = "PK\x01\x02", kEnd = "PK\x05\x06",
                           kEnd64 = "PK\x06\x06", kEnd64Place = "PK\x06\x07";
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                      kEnd64PlaceBytes = 20;
constexpr std::uint64_t kTailBytes = 16 << 10;  // in which libarchive looks for the end
constexpr std::uint32_t kIn64 = 0xffff'ffff;
constexpr std::uint16_t kExtra64 = 0x0001, kExtraName = 0x7075;
constexpr std::uint8_t kUtf8Mark = 0x08;  // of the second byte of an entry's flags

class ZipFile {
 public:
  ZipFile(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

  // Nothing if the file does not reach that far. Valid until the next call.
  std::optional<ByteView> at(std::uint64_t offset, std::size_t size) {
    if (offset > size_ || size > size_ - offset) return std::nullopt;
    buffer_.resize(size);
    const auto got = read_up_to_at(fd_, buffer_, offset, "");
    return got && *got == size ? std::optional<ByteView>(buffer_) : std::nullopt;
  }
  std::uint64_t size() const { return size_; }

 private:
  const int fd_;
  const std::uint64_t size_;
  Bytes buffer_;
};

bool begins(ByteView record, std::string_view magic) { return as_text(record).starts_with(magic); }

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t shift = 0;  // of all offsets, by what stands before the archive
};

std::optional<Directory> find_directory(ZipFile& file) {
  const std::uint64_t tail_bytes = std::min(kTailBytes, file.size());
  const std::uint64_t tail_at = file.size() - tail_bytes;
  const auto read = file.at(tail_at, tail_bytes);
  if (!read) return std::nullopt;
  const std::size_t found = as_text(*read).rfind(kEnd);
  if (found == std::string_view::npos || tail_bytes - found < kEndBytes) return std::nullopt;
  const ByteView end = read->subspan(found, kEndBytes);
  const std::uint64_t size = little_endian(end.subspan(12, 4)), offset = little_endian(end.subspan(16, 4));
  const std::uint64_t end_at = tail_at + found;
  if (found >= kEnd64PlaceBytes && begins(read->subspan(found - kEnd64PlaceBytes), kEnd64Place)) {
    const auto end64 = file.at(little_endian(read->subspan(found - kEnd64PlaceBytes + 8, 8)), kEnd64Bytes);
    if (end64 && begins(*end64, kEnd64)) return Directory{little_endian(end64->subspan(48, 8)), 0};
  }
  const auto first = file.at(offset, kCentral.size());
  if (first && begins(*first, kCentral)) return Directory{offset, 0};
  if (size > end_at || end_at - size < offset) return std::nullopt;
  return Directory{end_at - size, end_at - size - offset};
}

// The content of a field. Its place is relative to `extra`.
std::optional<ByteView> find_extra(ByteView extra, std::uint16_t id) {
  while (extra.size() >= 4) {
    const std::size_t size = little_endian(extra.subspan(2, 2));
    if (size > extra.size() - 4) return std::nullopt;
    if (little_endian(extra.first(2)) == id) return extra.subspan(4, size);
    extra = extra.subspan(4 + size);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> local_offset(ByteView central, ByteView extra) {
  const std::uint64_t offset = little_endian(central.subspan(42, 4));
  if (offset != kIn64) return offset;
  const auto field = find_extra(extra, kExtra64);
  if (!field) return std::nullopt;
  // Only what did not find room is there, and both sizes come first.
  std::size_t at = 0;
  for (const std::size_t size_at : {std::size_t{24}, std::size_t{20}})
    if (little_endian(central.subspan(size_at, 4)) == kIn64) at += 8;
  if (field->size() < at + 8) return std::nullopt;
  return little_endian(field->subspan(at, 8));
}

void add_local_marks(ZipFile& file, std::uint64_t at, std::vector<ByteMask>& marks) {
  const auto header = file.at(at, kLocalBytes);
  if (!header || !begins(*header, kLocal)) return;
  if (((*header)[7] & kUtf8Mark) != 0) marks.push_back({at + 7, static_cast<std::uint8_t>(~kUtf8Mark)});
  const std::size_t name_bytes = little_endian(header->subspan(26, 2));
  const std::size_t extra_bytes = little_endian(header->subspan(28, 2));
  const auto rest = file.at(at + kLocalBytes, name_bytes + extra_bytes);
  if (!rest) return;
  const auto field = find_extra(rest->subspan(name_bytes), kExtraName);
  // A version and a checksum, then the name. An id without its second byte is unknown to libarchive.
  if (field && field->size() >= 5 && equal(field->subspan(5), rest->first(name_bytes)))
    marks.push_back({at + kLocalBytes + static_cast<std::uint64_t>(field->data() - rest->data()) - 3, 0});
}

}  // namespace

std::vector<ByteMask> utf8_marks_of_zip(int fd, std::uint64_t file_bytes) {
  ZipFile file(fd, file_bytes);
  std::vector<ByteMask> marks;
  const auto directory = find_directory(file);
  if (!directory) return marks;
  for (std::uint64_t at = directory->offset;;) {
    const auto read = file.at(at, kCentralBytes);
    if (!read || !begins(*read, kCentral)) break;
    const Bytes central(read->begin(), read->end());
    const std::size_t name_bytes = little_endian(ByteView(central).subspan(28, 2));
    const std::size_t extra_bytes = little_endian(ByteView(central).subspan(30, 2));
    const auto extra = file.at(at + kCentralBytes + name_bytes, extra_bytes);
    if (!extra) break;
    const bool marked = (central[9] & kUtf8Mark) != 0;
    const bool named = find_extra(*extra, kExtraName).has_value();
    const auto local = local_offset(central, *extra);
    if (marked) marks.push_back({at + 9, static_cast<std::uint8_t>(~kUtf8Mark)});
    if ((marked || named) && local) add_local_marks(file, *local + directory->shift, marks);
    at += kCentralBytes + name_bytes + extra_bytes + little_endian(ByteView(central).subspan(32, 2));
  }
  std::sort(marks.begin(), marks.end(),
            [](const ByteMask& a, const ByteMask& b) { return a.offset < b.offset; });
  return marks;
}

}  // namespace kin::formats

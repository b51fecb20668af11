// What in a zip file makes libarchive convert its names: it takes those that are marked as UTF-8 through
// Unicode's normal form C, so that they come out as other bytes, and two different ones may come out as one.
// Without the marks it leaves them alone; and so the file is read as if it had none.
#pragma once

#include <cstdint>
#include <vector>

namespace kin::formats {

struct ByteMask {
  std::uint64_t offset;  // in the file
  std::uint8_t keep;     // the bits of that byte that count
};

// By offset, in ascending order. Found by the directory at the end; what is damaged there has none. Names of
// an extra field (Info-ZIP's 0x7075) that are other than the entry's own stay as they are.
std::vector<ByteMask> utf8_marks_of_zip(int fd, std::uint64_t file_bytes);

}  // namespace kin::formats

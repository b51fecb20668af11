// SevenZipNames: the names in a 7z archive, as it has them. libarchive takes them through Unicode's normal
// form C, so that they come out as other ones, and two different ones may come out as one; and it can not be
// told otherwise. What its header is compressed with is libarchive's matter all the same. One thread at a
// time.
#pragma once

#include "lib/base/bytes.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kin::formats {

class SevenZipNames {
 public:
  // Leaves the file's position where it likes. Without names if that cannot be read: what is wrong with the
  // archive is for libarchive to say.
  static SevenZipNames read(int fd, std::uint64_t file_bytes);

  // Of the next entry, in the order of the archive, in UTF-8. Nothing if it cannot be told: that it is no
  // UTF-16, or there are no more.
  std::optional<std::string> next();

 private:
  explicit SevenZipNames(Bytes names) : names_(std::move(names)) {}

  Bytes names_;  // UTF-16, each with a zero behind it
  std::size_t at_ = 0;
};

}  // namespace kin::formats

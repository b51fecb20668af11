// The names in 7z and zip files, from anywhere: names end, and marks are within the file and in order.
#include "formats/seven_zip_names.h"
#include "formats/zip_names.h"
#include "lib/base/check.h"

#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("archive", MFD_CLOEXEC);
  KIN_CHECK(fd >= 0 && ::write(fd, data, size) == static_cast<ssize_t>(size));
  auto names = kin::formats::SevenZipNames::read(fd, size);
  while (const auto name = names.next()) KIN_CHECK(name->find('\0') == std::string::npos);
  std::uint64_t after = 0;
  for (const kin::formats::ByteMask& mask : kin::formats::utf8_marks_of_zip(fd, size)) {
    KIN_CHECK(mask.offset >= after && mask.offset < size);
    after = mask.offset;
  }
  ::close(fd);
  return 0;
}

// Files of patterns from anywhere, against paths: the first line of the input is the path, the rest patterns.
// What a pattern takes, the same one behind a '!' gives back; and what is below a path that one takes, it
// takes too.
#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/engine/path_filter.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kin;
  const std::string_view input = as_text(ByteView(data, size));
  const std::size_t end = std::min(input.find('\n'), size);
  const std::string path(input.substr(0, end)), patterns(input.substr(std::min(end + 1, size)));
  static const int fd = ::memfd_create("patterns", MFD_CLOEXEC);
  KIN_CHECK(fd >= 0 && ::ftruncate(fd, 0) == 0 &&
            ::pwrite(fd, patterns.data(), patterns.size(), 0) == static_cast<ssize_t>(patterns.size()));
  PathFilter filter;
  KIN_CHECK(filter.add_file("/proc/self/fd/" + std::to_string(fd), (size & 1) != 0).has_value());
  static_cast<void>(filter.matches(path));
  if (patterns.find('\n') != std::string::npos || patterns.find('\0') != std::string::npos) return 0;
  if (patterns.empty() || patterns[0] == '!' || patterns[0] == '#') return 0;
  PathFilter one;
  one.add(patterns);
  const bool taken = one.matches(path);
  if (taken) KIN_CHECK(one.matches(path + "/below"));
  one.add("!" + patterns);
  KIN_CHECK(!one.matches(path));
  return 0;
}

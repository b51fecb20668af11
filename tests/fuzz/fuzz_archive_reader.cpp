// Archives for kin import, from anywhere, by libarchive: entries with safe paths, and runs that do not
// overlap.
#include "formats/archive_reader.h"
#include "lib/base/check.h"

#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace kin;

bool is_safe_path(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (!is_safe_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
    if (path.empty()) return false;
  }
  return true;
}

// Dictionaries may be as large as these say (formats/archive_reader.h), which is no finding.
bool may_take_much(ByteView input) {
  for (const std::string_view magic : {"7z\xbc\xaf", "Rar!",
                                       "\xfd"
                                       "7zXZ",
                                       "LZIP", "\x5d", "\x28\xb5\x2f\xfd"})
    if (as_text(input).find(magic) != std::string_view::npos) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (may_take_much({data, size})) return 0;
  const int fd = ::memfd_create("archive", MFD_CLOEXEC);
  KIN_CHECK(fd >= 0 && ::write(fd, data, size) == static_cast<ssize_t>(size) &&
            ::lseek(fd, 0, SEEK_SET) == 0);
  {
    formats::ArchiveReader reader(fd, "archive", [](const std::string&) {}, {});
    std::size_t left = 4 << 20;
    Bytes buffer(4096);
    for (int entries = 0; entries < 200; ++entries) {
      const auto entry = reader.next();
      if (!entry || !*entry) break;
      KIN_CHECK(is_safe_path((*entry)->path));
      if ((*entry)->link_to) KIN_CHECK(is_safe_path(*(*entry)->link_to));
      // What is taken from an archive, a tree can keep.
      WireWriter out;
      Node node = (*entry)->node;
      node.name = "name";
      encode_node(node, out);
      WireReader in(out.bytes());
      static_cast<void>(decode_node(in));
      KIN_CHECK(in.finish("node").has_value());
      std::uint64_t end = 0;
      for (bool goes_on = node.type == NodeType::file; goes_on;) {
        const auto run = reader.next_run();
        if (!run || !*run) break;
        KIN_CHECK(**run >= end);
        end = **run;
        for (;;) {
          const auto got = reader.read(buffer);
          if (!got || *got > left) {
            goes_on = false;
            break;
          }
          left -= *got;
          end += *got;
          if (*got < buffer.size()) break;
        }
      }
    }
  }
  ::close(fd);
  return 0;
}

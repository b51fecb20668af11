#include "tests/support/separate_mount.h"

#include <climits>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace {

std::string border;          // the directory; empty if there is none
std::string without_colons;  // likewise
std::uint64_t refusals = 0;

std::string path_of(int directory, const char* name) {
  std::string path;
  if (directory != AT_FDCWD && name[0] != '/') {
    char target[PATH_MAX];
    const ssize_t size =
        ::readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), target, sizeof target);
    if (size > 0) path.assign(target, static_cast<std::size_t>(size));
    path += '/';
  }
  return path + name;
}

bool is_beyond(int directory, const char* name) { return path_of(directory, name).starts_with(border + "/"); }

bool is_bad_name(int directory, const char* name) {
  const bool is_bad = !without_colons.empty() && std::strchr(name, ':') != nullptr &&
                      path_of(directory, name).starts_with(without_colons + "/");
  if (is_bad) errno = EINVAL;
  return is_bad;
}

bool is_refused(int from_directory, const char* from, int directory, const char* to) {
  if (border.empty() || is_beyond(from_directory, from) == is_beyond(directory, to)) return false;
  ++refusals;
  errno = EXDEV;
  return true;
}

}  // namespace

// In place of those of the C library, for all of the program.
extern "C" {

int linkat(int from_directory, const char* from, int directory, const char* to, int flags) noexcept {
  if (is_bad_name(directory, to) || is_refused(from_directory, from, directory, to)) return -1;
  return static_cast<int>(::syscall(SYS_linkat, from_directory, from, directory, to, flags));
}

int renameat2(int from_directory, const char* from, int directory, const char* to, unsigned flags) noexcept {
  if (is_bad_name(directory, to) || is_refused(from_directory, from, directory, to)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, directory, to, flags));
}

int renameat(int from_directory, const char* from, int directory, const char* to) noexcept {
  return renameat2(from_directory, from, directory, to, 0);
}
}

namespace kin::testing {

SeparateMount::SeparateMount(std::string directory) { border = std::move(directory); }

SeparateMount::~SeparateMount() {
  border.clear();
  refusals = 0;
}

std::uint64_t SeparateMount::refused() const { return refusals; }

MountWithoutColons::MountWithoutColons(std::string directory) { without_colons = std::move(directory); }

MountWithoutColons::~MountWithoutColons() { without_colons.clear(); }

}  // namespace kin::testing

#include "tests/support/separate_mount.h"

#include <climits>

#include <cerrno>
#include <cstdarg>
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
std::string on_demand, its_disk;  // likewise
std::string without_links;        // likewise

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

// With this errno.
bool is_without_links(int directory, const char* name, int why) {
  const bool is_so = !without_links.empty() && path_of(directory, name).starts_with(without_links + "/");
  if (is_so) errno = why;
  return is_so;
}

bool is_refused(int from_directory, const char* from, int directory, const char* to) {
  if (border.empty() || is_beyond(from_directory, from) == is_beyond(directory, to)) return false;
  ++refusals;
  errno = EXDEV;
  return true;
}

int open_at(int directory, const char* name, int flags, mode_t mode) {
  if (!on_demand.empty() && path_of(directory, name) == on_demand) {
    ::rename(on_demand.c_str(), (its_disk + ".below").c_str());
    ::rename(its_disk.c_str(), std::exchange(on_demand, {}).c_str());
  }
  return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace

// In place of those of the C library, for all of the program.
extern "C" {

int linkat(int from_directory, const char* from, int directory, const char* to, int flags) noexcept {
  if (is_bad_name(directory, to) || is_refused(from_directory, from, directory, to)) return -1;
  if (is_without_links(directory, to, EPERM)) return -1;
  return static_cast<int>(::syscall(SYS_linkat, from_directory, from, directory, to, flags));
}

int renameat2(int from_directory, const char* from, int directory, const char* to, unsigned flags) noexcept {
  if (is_bad_name(directory, to) || is_refused(from_directory, from, directory, to)) return -1;
  if (flags != 0 && is_without_links(directory, to, EINVAL)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, directory, to, flags));
}

int renameat(int from_directory, const char* from, int directory, const char* to) noexcept {
  return renameat2(from_directory, from, directory, to, 0);
}

int openat(int directory, const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_at(directory, name, flags, mode);
}

int open(const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_at(AT_FDCWD, name, flags, mode);
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

MountWithoutLinks::MountWithoutLinks(std::string directory) { without_links = std::move(directory); }

MountWithoutLinks::~MountWithoutLinks() { without_links.clear(); }

MountOnDemand::MountOnDemand(std::string directory, std::string disk) {
  on_demand = std::move(directory);
  its_disk = std::move(disk);
}

MountOnDemand::~MountOnDemand() { on_demand.clear(); }

}  // namespace kin::testing

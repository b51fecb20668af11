// ArchiveKind: the archives that kin writes, known by their names, and what each form of them can hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kin::formats {

// All forms hold names, modes, times to the second, content and symlinks. No form has sockets.
struct ArchiveForm {
  enum class Links { none, by_name, by_inode };

  const char* name;         // the end of a file's name, without its dot
  const char* writer_name;  // libarchive's
  bool compressible;        // as a whole, by a program of its own
  bool owners;              // as numbers
  bool owner_names;
  bool attributes;     // extended ones, and ACLs
  bool holes;          // without taking room
  bool special_files;  // devices and FIFOs
  bool any_names;      // that are not UTF-8 too; libarchive marks all as UTF-8 in zip, and puts ? into 7z
  Links links;         // hard ones
  std::uint32_t time_step_nanoseconds;
  std::uint64_t most_file_bytes;
};

struct ArchiveKind {
  const ArchiveForm* form;  // of a table that is always there
  const char* compression;  // libarchive's name; null: none
};

// By the end of a name: "a.tar.zst", "b.tgz", "c.zip"; that may be all of it: "tar.zst". Whatever the case of
// letters. Nothing if there is no such kind.
std::optional<ArchiveKind> archive_kind(std::string_view name);

// For people: what archive_kind() knows.
std::string known_archive_kinds();

// The pax form of tar, which holds everything.
const ArchiveForm& tar_form();

}  // namespace kin::formats

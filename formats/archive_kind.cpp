#include "formats/archive_kind.h"

#include <fmt/core.h>

#include <limits>

namespace kin::formats {
namespace {

using Links = ArchiveForm::Links;

constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

constexpr ArchiveForm kForms[] = {
    // name, libarchive's,  compressed, owners, names, attributes, holes, special, any names,
    //                                          links, step, most bytes
    {"tar", "pax", true, true, true, true, true, true, true, Links::by_name, 1, kAnySize},
    {"cpio", "newc", true, true, false, false, false, true, true, Links::by_inode, 1'000'000'000,
     0xffff'ffff},
    {"zip", "zip", false, true, false, false, false, false, false, Links::none, 1'000'000'000, kAnySize},
    {"7z", "7zip", false, false, false, false, false, false, false, Links::none, 100, kAnySize},
};

// Those that libarchive has built in; for others it would start programs.
constexpr struct {
  const char* suffix;
  const char* writer_name;
} kCompressions[] = {
    {"gz", "gzip"}, {"bz2", "bzip2"}, {"xz", "xz"},     {"zst", "zstd"},
    {"lz4", "lz4"}, {"lz", "lzip"},   {"lzma", "lzma"}, {"z", "compress"},
};

constexpr struct {
  const char* suffix;
  const char* writer_name;
} kShortTars[] = {
    {"tgz", "gzip"}, {"tbz", "bzip2"}, {"tbz2", "bzip2"}, {"txz", "xz"}, {"tzst", "zstd"},
};

// Takes ".suffix", or "suffix" if nothing else is left, off the end.
bool take_suffix(std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  const std::size_t at = name.size() - suffix.size();
  if (at > 0 && name[at - 1] != '.') return false;
  name.resize(at > 0 ? at - 1 : 0);
  return true;
}

}  // namespace

std::optional<ArchiveKind> archive_kind(std::string_view name) {
  std::string rest(name.substr(name.rfind('/') + 1));
  for (char& c : rest)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  for (const auto& tar : kShortTars)
    if (take_suffix(rest, tar.suffix)) return ArchiveKind{&tar_form(), tar.writer_name};
  const char* compression = nullptr;
  for (const auto& known : kCompressions)
    if (compression == nullptr && take_suffix(rest, known.suffix)) compression = known.writer_name;
  for (const ArchiveForm& form : kForms)
    if ((compression == nullptr || form.compressible) && take_suffix(rest, form.name))
      return ArchiveKind{&form, compression};
  return std::nullopt;
}

std::string known_archive_kinds() {
  std::string forms, compressible, compressions;
  const auto add = [](std::string& list, std::string_view word) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", word);
  };
  for (const ArchiveForm& form : kForms) {
    add(forms, form.name);
    if (form.compressible) add(compressible, form.name);
  }
  for (const auto& known : kCompressions) add(compressions, known.suffix);
  return fmt::format("{}; {} also with {}", forms, compressible, compressions);
}

const ArchiveForm& tar_form() { return kForms[0]; }

}  // namespace kin::formats

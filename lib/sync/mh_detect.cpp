// Whether a directory is an MH store.
//
// MH has no mark of its own: any directory may be a folder, and any file that has a number for a name a
// message. Whoever takes a tree for an MH store leaves all its other files behind, so in doubt it is none.
// Sure are the files that mail programs leave in MH folders, and only there; it is by them that mutt knows
// one too. Without any, the files speak: folders that have nothing but numbered messages, which begin as
// messages do, must be more than directories of other files. Rejected: to go by the names alone, since logs,
// manual pages and versions of a document are numbered as well.
#include "lib/sync/mh_folders.h"
#include "lib/sync/mh_sequences.h"
#include "lib/sync/store_files.h"
#include "lib/sync/sync_store.h"

#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <strings.h>
#include <sys/stat.h>

namespace kin::sync {

int detect_mh(const std::string& root);

namespace mh {
namespace {

constexpr int kMostNamesLooked = 1000;  // in a directory
constexpr std::size_t kMostDirectoriesLooked = 1000, kMostFilesRead = 5, kHeadBytes = 4096;

bool has_mark(int directory) {
  constexpr const char* kMarks[] = {kMhSequencesName, ".xmhcache",       ".mew_cache",  ".mew-cache",
                                    ".mew-summary",   ".sylpheed_cache", ".claws_cache"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](const char* mark) {
    struct stat info {};
    return ::fstatat(directory, mark, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
  });
}

// What MH programs keep in the directory that the folders are in.
bool is_of_root(std::string_view name) {
  return name == "context" || name == "draft" || name.ends_with("comps") || name.ends_with("components") ||
         name.starts_with("mhl.");
}

bool is_known_field(std::string_view name) {
  constexpr std::string_view kFields[] = {
      "from",       "to",       "cc",     "date",         "subject",    "received", "return-path",
      "message-id", "reply-to", "sender", "delivered-to", "newsgroups", "x-mailer", "mime-version"};
  return std::any_of(std::begin(kFields), std::end(kFields), [&](std::string_view field) {
    return field.size() == name.size() && ::strncasecmp(field.data(), name.data(), name.size()) == 0;
  });
}

// The first bytes of a file: lines with fields, one of which all mail has, up to an empty line or, of a
// draft, one of dashes.
bool begins_as_message(std::string_view head) {
  bool is_known = false;
  for (bool is_first = true; !head.empty(); is_first = false) {
    const std::size_t end = head.find('\n');
    if (end == head.npos) break;  // cut, or a file without an end of line
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of('-') == line.npos) break;
    if (is_first && (line.starts_with("From ") || line.starts_with(">From "))) continue;
    if (!is_first && (line.front() == ' ' || line.front() == '\t')) continue;
    const std::string_view name = line.substr(0, line.find(':'));
    const bool is_field = name.size() < line.size() && !name.empty() &&
                          std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
    if (!is_field) return false;
    is_known |= is_known_field(name);
  }
  return is_known;
}

enum class Holds { nothing, messages, others };

Holds look_into(int directory, bool is_root) {
  bool has_others = false;
  std::vector<std::string> numbered;
  int looked = 0;
  const auto listed = for_each_name(directory, "", [&](std::string_view name, unsigned char type) {
    const bool is_file = name[0] != '.' && !is_directory(directory, name, type);
    const bool is_removed = name[0] == ',' || name[0] == '#';
    if (is_file && mh_number(name) != 0) {
      if (numbered.size() < kMostFilesRead) numbered.emplace_back(name);
    } else {
      has_others |= is_file && !is_removed && !(is_root && is_of_root(name));
    }
    return !has_others && ++looked < kMostNamesLooked;
  });
  if (!listed) return Holds::nothing;
  if (has_others) return Holds::others;
  std::size_t messages = 0, others = 0;
  for (const std::string& name : numbered) {
    struct stat info {};
    const Fd file(::openat(directory, name.c_str(), kOpenFile));
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    Bytes head(kHeadBytes);
    const auto size = read_up_to_at(file.get(), head, 0, name);
    if (!size || *size == 0) continue;
    ++(begins_as_message(as_text(ByteView(head).first(*size))) ? messages : others);
  }
  // One that is damaged does not make the others something else.
  return messages > others ? Holds::messages : others > 0 ? Holds::others : Holds::nothing;
}

}  // namespace
}  // namespace mh

int detect_mh(const std::string& root) {
  constexpr int kSure = 80, kLikely = 50;
  const Fd directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return 0;
  bool is_sure = mh::has_mark(directory.get());
  std::size_t folders = 0, others = 0, looked = 0;
  const auto count = [&](mh::Holds holds) {
    folders += holds == mh::Holds::messages ? 1 : 0;
    others += holds == mh::Holds::others ? 1 : 0;
  };
  if (!is_sure) count(mh::look_into(directory.get(), true));
  const auto listed = for_each_name(directory.get(), root, [&](std::string_view name, unsigned char type) {
    if (is_sure || ++looked > mh::kMostDirectoriesLooked) return false;
    const Fd below(name[0] != '.' && mh::is_directory(directory.get(), name, type)
                       ? ::openat(directory.get(), std::string(name).c_str(), kOpenDirectory)
                       : -1);
    if (!below) return true;
    is_sure = mh::has_mark(below.get());
    if (!is_sure) count(mh::look_into(below.get(), false));
    return true;
  });
  if (is_sure) return kSure;
  return listed && folders > others ? kLikely : 0;
}

}  // namespace kin::sync

// Files to be compared with each other: found below paths, and their prints by a detector.
#pragma once

#include "lib/base/result.h"
#include "lib/engine/walker.h"
#include "lib/similarity/detector.h"

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace kin {

// Told of what is left out, a file or a directory with all that is in it, and why. Any thread may call it,
// one at a time.
using OnSkippedFile = std::function<void(const std::string& path, const Error& error)>;

struct ComparedFile {
  std::string path;  // on disk, as it was given
  std::uint64_t size = 0;
  std::uint64_t device = 0, inode = 0;
};

// Which files count.
struct FileRules {
  std::uint64_t least_bytes = 1;  // empty files are all alike
  std::uint64_t most_bytes = UINT64_MAX;
  std::vector<std::string> suffixes;  // ".c"; none: all
};

// "x/y.tar.gz": ".gz"; empty where there is none, as of "x/.profile".
std::string_view file_suffix(std::string_view path);

// All regular files below the sources, in the order of their names; links are not followed. A source that is
// neither file nor directory is told of; such things below a directory are nobody's concern. not_found if
// none of the sources is there.
Result<std::vector<ComparedFile>> find_files(const WalkOptions& sources, const FileRules& rules,
                                             const OnSkippedFile& on_skipped, const std::stop_token& stop);

// Files and their prints, at the same places.
struct PrintedFiles {
  std::vector<ComparedFile> files;
  std::vector<Print> prints;
  std::uint64_t bytes = 0;  // of the files
};

// By `jobs` threads; the order stays, and depends on no thread. Without those that cannot be read.
Result<PrintedFiles> print_files(std::vector<ComparedFile> files, const Detector& detector, unsigned jobs,
                                 const OnSkippedFile& on_skipped, const std::stop_token& stop);

}  // namespace kin

// Two directories by content: which files are the same, under whatever name, and which resemble each other.
#pragma once

#include "lib/engine/file_set.h"

#include <optional>

namespace kin {

struct ContentChange {
  enum class Kind {
    equal,    // the same name and the same bytes
    changed,  // the same name and other bytes
    renamed,  // the same bytes under another name
    similar,  // another name, and other bytes that resemble
    only_a,
    only_b,
    unknown,  // what has this name on one of the sides could not be read
  };
  Kind kind = Kind::equal;
  std::optional<std::uint32_t> a, b;  // places of the files
  double similarity = 0;              // how much of a is in b; changed and similar
};

// `names_a` and `names_b` are the files' names below their directories. Each file is in one change. In the
// order of the files of a, then those that only b has. `index` is empty. `is_unknown` says of a name whether
// it, or a directory above it, was left out on one of the sides; it is asked after the last on_skipped().
Result<std::vector<ContentChange>> compare_by_content(
    const PrintedFiles& a, const std::vector<std::string>& names_a, const PrintedFiles& b,
    const std::vector<std::string>& names_b, double least_similarity, PrintIndex& index,
    const std::function<bool(const std::string& name)>& is_unknown, const OnSkippedFile& on_skipped,
    const std::stop_token& stop);

}  // namespace kin

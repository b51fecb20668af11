// A path in a message: printable, and only so much of it that the rest of the line is still read. Archives
// have paths of any length.
#pragma once

#include "lib/base/text.h"

#include <string>
#include <string_view>

namespace kin {

inline std::string path_text(std::string_view path) {
  constexpr std::size_t kMostBytes = 400, kShownBytes = 150;
  if (path.size() <= kMostBytes) return printable(path);
  return printable(path.substr(0, kShownBytes)) + " ... " + printable(path.substr(path.size() - kShownBytes));
}

}  // namespace kin
